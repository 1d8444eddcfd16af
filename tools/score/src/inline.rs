//! Turns of agents against what was recorded in their place, without running anything.
//!
//! A *workflow* turn (its conversation is called `sim_N`) is right when it names one of the recorded intents:
//! the code behind `intent:`, else the last code of the form `I123`, in the reasoning first, then in the text.
//! A *coding* turn is worth the overlap of the programs that it calls by its `bash` tool with those recorded:
//! the size of the common multiset over that of the union. A turn without such a recorded answer has no truth.
//! The manner is that of the reference implementation; the list of programs is our own.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::responses::Response;
use crate::scorer::Judged;

/// What a turn should come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InlineTruth {
    /// One of these intents.
    Intents(Vec<String>),
    /// These programs, each as often as it is called.
    Programs(BTreeMap<String, u32>),
}

impl InlineTruth {
    /// The truth of a turn in `conversation` whose recorded answer is `answer`, an assistant's message in JSON,
    /// with `intents` beside it, a JSON list. `None` when there is nothing to compare with.
    #[must_use]
    pub fn of(conversation: &str, answer: &str, intents: Option<&str>) -> Option<Self> {
        if is_workflow(conversation) {
            let intents: Vec<String> = serde_json::from_str(intents?).ok()?;
            return (!intents.is_empty()).then_some(Self::Intents(intents));
        }
        let answer: Value = serde_json::from_str(answer).ok()?;
        let calls = answer.get("tool_calls")?.as_array()?.iter().filter_map(|call| {
            let function = call.get("function")?;
            Some((function.get("name")?.as_str()?.to_owned(), function.get("arguments")?.clone()))
        });
        let programs = programs(calls);
        (!programs.is_empty()).then_some(Self::Programs(programs))
    }

    /// As it stands among the truths of a run: JSON.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Intents(intents) => json!({ "intents": intents }),
            Self::Programs(programs) => json!({ "programs": programs }),
        }
        .to_string()
    }

    /// Read back from that; `None` of anything else.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let truth: Value = serde_json::from_str(text).ok()?;
        if let Some(intents) = truth.get("intents") {
            return serde_json::from_value(intents.clone()).ok().map(Self::Intents);
        }
        serde_json::from_value(truth.get("programs")?.clone()).ok().map(Self::Programs)
    }

    /// Judges a response; `None` when it says and calls nothing.
    #[must_use]
    pub fn judge(&self, response: &Response) -> Option<Judged> {
        match self {
            Self::Intents(intents) => {
                let silent =
                    response.reasoning.trim().is_empty() && response.content.trim().is_empty();
                let found = intent(&response.reasoning).or_else(|| intent(&response.content));
                let right = found.is_some_and(|found| intents.iter().any(|intent| intent == found));
                let score = if right { 1.0 } else { 0.0 };
                (!silent).then(|| Judged { score, extracted: found.map(str::to_owned) })
            }
            Self::Programs(expected) => {
                let calls = crate::joined_tool_calls(&response.tool_calls);
                let silent = calls.is_empty() && response.content.trim().is_empty();
                let calls = calls.iter().filter_map(|call| {
                    Some((call.get("name")?.as_str()?.to_owned(), call.get("arguments")?.clone()))
                });
                let found = programs(calls);
                let words = found.iter().map(|(name, count)| format!("{name} {count}"));
                let words: Vec<String> = words.collect();
                let extracted = (!words.is_empty()).then(|| words.join(", "));
                (!silent).then(|| Judged { score: overlap(expected, &found), extracted })
            }
        }
    }
}

/// `sim_` and a number.
fn is_workflow(conversation: &str) -> bool {
    let number = conversation.strip_prefix("sim_");
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// The intent that a text names.
fn intent(text: &str) -> Option<&str> {
    let named = text.match_indices(MARK).filter_map(|(at, _)| {
        let rest = text[at + MARK.len()..].trim_start_matches([' ', '*', '`', '"']);
        let code = rest.get(..CODE)?;
        (is_code(code) && !rest[CODE..].starts_with(is_word)).then_some(code)
    });
    let bare = || {
        text.match_indices('I').filter_map(|(at, _)| {
            let code = text.get(at..at + CODE)?;
            let alone = !text[..at].ends_with(is_word) && !text[at + CODE..].starts_with(is_word);
            (is_code(code) && alone).then_some(code)
        })
    };
    named.last().or_else(|| bare().next_back())
}

fn is_code(code: &str) -> bool {
    code.starts_with('I') && code[1..].bytes().all(|byte| byte.is_ascii_digit())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Programs that `bash` calls name, with how often.
fn programs(calls: impl Iterator<Item = (String, Value)>) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    for (_, arguments) in calls.filter(|(name, _)| name.eq_ignore_ascii_case("bash")) {
        let arguments = match &arguments {
            Value::String(text) => serde_json::from_str(text).unwrap_or(Value::Null),
            other => other.clone(),
        };
        let line =
            arguments.get("command").or_else(|| arguments.get("cmd")).and_then(Value::as_str);
        for program in line.into_iter().flat_map(executables) {
            *found.entry(program.to_owned()).or_default() += 1;
        }
    }
    found
}

/// The programs of a command line that are known, each by its one name.
fn executables(line: &str) -> Vec<&'static str> {
    let plain = without_quotes(line);
    let commands = plain.split(['|', '&', ';', '\n']);
    commands
        .filter_map(|command| {
            let mut words = command.split_whitespace();
            let word = words.find(|word| !is_assignment(word) && !WRAPPERS.contains(word))?;
            let base = word.rsplit('/').next().unwrap_or(word).to_lowercase();
            // python3.11 and gcc-12 are python and gcc.
            let short = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
            known(&base).or_else(|| known(short))
        })
        .collect()
}

/// What stands in quotes is blanked: a bar in it separates nothing.
fn without_quotes(line: &str) -> String {
    let mut open = None;
    line.chars()
        .map(|c| match (open, c) {
            (None, '\'' | '"') => {
                open = Some(c);
                ' '
            }
            (Some(quote), c) if c == quote => {
                open = None;
                ' '
            }
            (Some(_), _) => '_',
            (None, c) => c,
        })
        .collect()
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.chars().all(is_word))
}

fn known(name: &str) -> Option<&'static str> {
    PROGRAMS.iter().find(|names| names.contains(&name)).map(|names| names[0])
}

/// Common over all, as multisets.
fn overlap(one: &BTreeMap<String, u32>, other: &BTreeMap<String, u32>) -> f64 {
    let common: u32 = one.iter().map(|(name, n)| other.get(name).map_or(0, |m| *n.min(m))).sum();
    let all = one.values().sum::<u32>() + other.values().sum::<u32>() - common;
    if all == 0 { 1.0 } else { f64::from(common) / f64::from(all) }
}

const MARK: &str = "intent:";
/// `I` and three digits.
const CODE: usize = 4;
/// What stands before a program and is none that counts.
const WRAPPERS: [&str; 6] = ["env", "time", "nice", "sudo", "exec", "command"];
/// Programs, the one name first, then other names of the same.
const PROGRAMS: [&[&str]; 62] = [
    &["ls", "dir"],
    &["cat", "tac"],
    &["grep", "egrep", "fgrep", "rg", "ag"],
    &["find", "fd"],
    &["sed", "gsed"],
    &["awk", "gawk", "mawk"],
    &["head"],
    &["tail"],
    &["sort"],
    &["uniq"],
    &["wc"],
    &["cut"],
    &["tr"],
    &["xargs"],
    &["diff"],
    &["patch"],
    &["cp"],
    &["mv"],
    &["rm"],
    &["mkdir"],
    &["rmdir"],
    &["touch"],
    &["chmod"],
    &["chown"],
    &["ln"],
    &["tar"],
    &["zip"],
    &["unzip"],
    &["gzip", "gunzip"],
    &["echo", "printf"],
    &["cd"],
    &["pwd"],
    &["git"],
    &["gh"],
    &["python", "python2", "python3", "ipython"],
    &["pip", "pip2", "pip3"],
    &["uv"],
    &["poetry"],
    &["pytest", "py.test"],
    &["tox"],
    &["node", "nodejs"],
    &["npm", "pnpm", "yarn"],
    &["npx"],
    &["deno", "bun"],
    &["cargo"],
    &["rustc"],
    &["go"],
    &["gcc", "cc", "clang"],
    &["g++", "c++", "clang++"],
    &["make", "gmake"],
    &["cmake"],
    &["java"],
    &["javac"],
    &["mvn", "mvnw"],
    &["gradle", "gradlew"],
    &["ruby"],
    &["perl"],
    &["bash", "sh", "zsh"],
    &["curl"],
    &["wget"],
    &["jq"],
    &["docker", "podman"],
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn coding(line: &str) -> InlineTruth {
        let arguments = json!({"cmd": line}).to_string();
        let call = json!({"id": "k", "type": "function", "function": {"name": "bash", "arguments": arguments}});
        let answer =
            json!({"role": "assistant", "content": null, "tool_calls": [call]}).to_string();
        InlineTruth::of("c1", &answer, None).expect("there is a program")
    }

    /// The mark of a response that calls `bash` with `line`.
    fn mark(truth: &InlineTruth, line: &str) -> f64 {
        let arguments = json!({"command": line}).to_string();
        let piece = json!({"index": 0, "id": "k", "name": "bash", "arguments": arguments});
        let response = Response { tool_calls: format!("{piece}\n"), ..Response::default() };
        truth.judge(&response).expect("it calls something").score
    }

    #[test]
    fn programs_are_found_whatever_stands_around_them() {
        for (line, found) in [
            ("ls -l | grep x && /usr/bin/python3.11 a.py", vec!["ls", "grep", "python"]),
            ("A=1 sudo env B=2 pip3 install x; git status\nmake", vec!["pip", "git", "make"]),
            ("echo 'a | b; rm c' || gcc-12 x.c", vec!["echo", "gcc"]),
            ("frobnicate --all", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(executables(line), found, "{line}");
        }
    }

    #[test]
    fn a_coding_turn_is_worth_the_overlap_of_its_programs() {
        let truth = coding("ls; ls; grep a b");
        assert_eq!(mark(&truth, "ls && ls && rg a b"), 1.0);
        // ls once and grep are common; ls twice, grep and cat are all.
        assert_eq!(mark(&truth, "ls; grep a; cat x"), 2.0 / 4.0);
        assert_eq!(mark(&truth, "frobnicate"), 0.0);
        assert_eq!(truth.judge(&Response::default()), None);
        let words = Response { content: "done".into(), ..Response::default() };
        assert_eq!(truth.judge(&words).map(|judged| judged.score), Some(0.0));
    }

    #[test]
    fn truths_are_read_back_from_their_text() {
        let workflow = InlineTruth::of("sim_12", "{}", Some(r#"["I007"]"#)).unwrap();
        for truth in [coding("ls; ls; git status"), workflow] {
            assert_eq!(InlineTruth::from_text(&truth.to_text()), Some(truth));
        }
        assert_eq!(InlineTruth::from_text("42"), None);
    }

    #[test]
    fn a_workflow_turn_names_its_intent() {
        let truth = InlineTruth::of("sim_12", "{}", Some(r#"["I007", "I012"]"#)).unwrap();
        for (reasoning, content, score) in [
            ("", "intent: I007", 1.0),
            ("", "intent: **I007** and not I999", 1.0),
            ("", "I001, no: I012", 1.0),
            ("intent: I001", "intent: I007", 0.0),
            ("hm", "so I012.", 1.0),
            ("", "I0123 is none, nor XI007", 0.0),
        ] {
            let (reasoning, content) = (reasoning.to_owned(), content.to_owned());
            let response = Response { reasoning, content, ..Response::default() };
            let judged = truth.judge(&response).expect("it says something");
            assert_eq!(judged.score, score, "{response:?}");
        }
    }

    #[test]
    fn a_turn_without_a_recorded_answer_of_the_kind_has_no_truth() {
        let text = r#"{"role":"assistant","content":"ok"}"#;
        for (id, answer, intents) in [
            ("c1", text, None),
            ("c1", "", None),
            ("sim_1", text, None),
            ("sim_1", text, Some("[]")),
            ("sim_x", text, Some(r#"["I001"]"#)),
        ] {
            assert_eq!(InlineTruth::of(id, answer, intents), None, "{id}");
        }
    }
}
