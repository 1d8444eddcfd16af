//! `takt init`: configuration files to begin with.
//!
//! A template is a file in `init/` without words; what its keys do is written beside them, once each, from
//! the table that reads them.

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
        Template::Online => include_str!("init/online.yaml"),
        Template::Concurrency => include_str!("init/concurrency.yaml"),
        Template::Sweep => include_str!("init/sweep.yaml"),
        Template::Offline => include_str!("init/offline.yaml"),
        Template::Accuracy => include_str!("init/accuracy.yaml"),
        Template::Agentic => include_str!("init/agentic.yaml"),
        Template::Raw => include_str!("init/raw.yaml"),
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

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn a_key_is_explained_where_it_comes_first_and_what_the_user_owns_is_not() {
        let lines = explained(text(Template::Sweep));
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
        for text in Template::value_variants().iter().map(|&template| text(template)) {
            let bare = config::Node::from_yaml(text, "t").unwrap().to_json();
            let full = config::Node::from_yaml(&explained(text), "t").unwrap().to_json();
            assert_eq!(bare, full);
        }
    }
}
