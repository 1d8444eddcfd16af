//! `takt init`: configuration files to begin with.
//!
//! A template is a file without words; what its keys do is written beside them, once each, from the table
//! that reads them.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use crate::cli::{InitArgs, Template};
use crate::config;
use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::outcome;

/// Prints or writes a template.
pub(crate) fn init(args: &InitArgs, console: &Console) -> Result<Exit, Failure> {
    let text = explained(text(args.template));
    match &args.file {
        None => outcome::print(&text)?,
        Some(path) => {
            write(path, &text, args.force)?;
            let path = path.display();
            console
                .info(format!("{path} is written; `takt validate {path}` says what it would do"));
        }
    }
    Ok(Exit::Done)
}

fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(!force).create(true).truncate(force);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let shown = path.display();
        Failure::says(
            Exit::Input,
            if error.kind() == std::io::ErrorKind::AlreadyExists {
                format!("{shown}: is there already; --force writes over it")
            } else {
                format!("{shown}: cannot be written: {error}")
            },
        )
    })
}

fn text(template: Template) -> &'static str {
    match template {
        Template::Online => ONLINE,
        Template::Concurrency => CONCURRENCY,
        Template::Sweep => SWEEP,
        Template::Offline => OFFLINE,
        Template::Accuracy => ACCURACY,
        Template::Raw => RAW,
    }
}

/// The template with the meaning of each key beside it, where it comes first.
fn explained(template: &str) -> String {
    let mut text = String::from(HEAD);
    let (mut above, mut said): (Vec<(usize, String)>, Vec<String>) = Default::default();
    for line in template.lines() {
        let item = line.trim_start().starts_with("- ");
        let indent = line.len() - line.trim_start_matches([' ', '-']).len();
        while above.last().is_some_and(|(depth, _)| *depth >= indent) {
            above.pop();
        }
        // The items of a list are below the key of the list.
        if item
            && let Some((_, list)) = above.last_mut()
            && !list.ends_with("[]")
        {
            list.push_str("[]");
        }
        let Some((key, _)) = line.trim_start_matches([' ', '-']).split_once(':') else {
            let _ = writeln!(text, "{line}");
            continue;
        };
        let level = above.iter().map(|(_, key)| key.as_str()).collect::<Vec<_>>().join(".");
        above.push((indent, key.to_owned()));
        let path = format!("{level}.{key}");
        // Writing to a string does not fail.
        let _ = match config::meaning(&level, key) {
            Some(does) if !said.contains(&path) => writeln!(text, "{line:COLUMN$}  # {does}"),
            _ => writeln!(text, "{line}"),
        };
        said.push(path);
    }
    text
}

const HEAD: &str = "\
# For `takt run`; `takt validate` checks it without sending anything. Flags override what is said here,
# `--set key.path=value` overrides both. ${VAR} and ${VAR:-default} come from the environment.

";
/// Where explanations begin.
const COLUMN: usize = 40;

const ONLINE: &str = "\
name: online
endpoint:
  url: ${URL:-http://127.0.0.1:8000}
  api: openai-chat
  model: ${MODEL:-MODEL_NAME}
  api_key: ${OPENAI_API_KEY:-}
  stream: true
  body:
    temperature: 0
    max_tokens: 256
dataset:
  format: synthetic
  prompts: 2000
  words: 64
engine:
  wait: guard
limits:
  connect_timeout: 5s
  request_timeout: 120s
slo:
  ttft_ms:
    p99: 500
  tpot_ms:
    p99: 50
seed: 42
phases:
  - name: warmup
    type: warmup
    load:
      pattern: poisson
      rate: 10
    requests: 50
  - name: rate_10
    type: performance
    load:
      pattern: poisson
      rate: 10
    duration: 60s
    drain_timeout: 120s
";

const CONCURRENCY: &str = "\
name: concurrency
endpoint:
  url: ${URL:-http://127.0.0.1:8000}
  api: openai-chat
  model: ${MODEL:-MODEL_NAME}
  api_key: ${OPENAI_API_KEY:-}
  stream: true
  body:
    temperature: 0
    max_tokens: 256
dataset:
  format: synthetic
  prompts: 2000
  words: 64
limits:
  connect_timeout: 5s
  request_timeout: 120s
phases:
  - name: warmup
    type: warmup
    load:
      pattern: concurrency
      target_concurrency: 16
    requests: 64
  - name: c16
    type: performance
    load:
      pattern: concurrency
      target_concurrency: 16
    duration: 60s
    drain_timeout: 120s
";

const SWEEP: &str = "\
name: sweep
endpoint:
  url: ${URL:-http://127.0.0.1:8000}
  api: openai-chat
  model: ${MODEL:-MODEL_NAME}
  api_key: ${OPENAI_API_KEY:-}
  body:
    temperature: 0
    max_tokens: 256
dataset:
  format: synthetic
  prompts: 2000
  words: 64
connections:
  max: 256
phases:
  - name: warm_c4
    type: warmup
    load:
      pattern: concurrency
      target_concurrency: 4
    requests: 32
  - name: perf_c4
    load:
      pattern: concurrency
      target_concurrency: 4
    duration: 60s
  - name: warm_c16
    type: warmup
    load:
      pattern: concurrency
      target_concurrency: 16
    requests: 64
  - name: perf_c16
    load:
      pattern: concurrency
      target_concurrency: 16
    duration: 60s
  - name: warm_q20
    type: warmup
    load:
      pattern: poisson
      rate: 20
    requests: 100
  - name: perf_q20
    load:
      pattern: poisson
      rate: 20
    duration: 60s
";

const OFFLINE: &str = "\
name: offline
endpoint:
  url: ${URL:-http://127.0.0.1:8000}
  api: openai-chat
  model: ${MODEL:-MODEL_NAME}
  api_key: ${OPENAI_API_KEY:-}
  stream: false
  body:
    temperature: 0
    max_tokens: 256
dataset:
  format: synthetic
  prompts: 2000
  words: 64
order: sequential
phases:
  - name: offline
    type: performance
    load:
      pattern: max_throughput
      max_in_flight: 256
";

const ACCURACY: &str = "\
name: accuracy
endpoint:
  url: ${URL:-http://127.0.0.1:8000}
  api: openai-chat
  model: ${MODEL:-MODEL_NAME}
  api_key: ${OPENAI_API_KEY:-}
  body:
    temperature: 0
    max_tokens: 512
dataset:
  path: ${DATASET:-gsm8k_test.jsonl}
  prompt: question
limits:
  connect_timeout: 5s
  request_timeout: 600s
phases:
  - name: math
    type: accuracy
    load:
      pattern: concurrency
      target_concurrency: 8
    repeats: 3
    score:
      by: numeric
      truth: answer
      after: '####'
      of: content
";

const RAW: &str = "\
name: raw
endpoint:
  url: ${URL:-http://127.0.0.1:8080/echo}
  api: raw
  headers:
    X-Team: perf
  body:
    hello: world
connections:
  retry_stale: true
phases:
  - name: warmup
    type: warmup
    load:
      pattern: concurrency
      target_concurrency: 64
    requests: 1000
  - name: c64
    type: performance
    load:
      pattern: concurrency
      target_concurrency: 64
    duration: 10s
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_explained_where_it_comes_first_and_what_the_user_owns_is_not() {
        let lines = explained(SWEEP);
        let of =
            |start: &str| lines.lines().filter(|l| l.trim_start().starts_with(start)).collect();
        let rates: Vec<&str> = of("rate:");
        assert!(rates[0].contains("# arrivals a second") && !rates[1].contains('#'), "{rates:?}");
        let names: Vec<&str> = of("- name:");
        assert!(names[0].contains('#') && !names[1].contains('#'), "{names:?}");
        let own: Vec<&str> = of("temperature:");
        assert!(!own[0].contains('#'), "{own:?}");
    }

    #[test]
    fn explanations_change_nothing() {
        for text in [ONLINE, CONCURRENCY, SWEEP, OFFLINE, ACCURACY, RAW] {
            let bare = config::Node::from_yaml(text, "t").unwrap().to_json();
            let full = config::Node::from_yaml(&explained(text), "t").unwrap().to_json();
            assert_eq!(bare, full);
        }
    }
}
