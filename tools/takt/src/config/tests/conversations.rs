//! Loads of conversations.

use super::super::{Config, Phase, Source};
use super::{load_of, read};

/// A file with one phase of conversations of a format, and what else its load says.
fn talks(format: &str, load: &str, rest: &str) -> Result<Config, String> {
    let dataset = format!("{{path: t.jsonl, format: {format}}}");
    read(&format!(
        "endpoint: {{url: 'http://h', api: openai-chat, headers: {{X-Team: a}}}}\ndataset: {dataset}\n\
         phases: [{{name: p, load: {{pattern: agentic, {load}}}, {rest}}}]\n"
    ))
}

#[test]
fn conversations_are_read_and_written_out_as_they_stand() {
    let all = "target_concurrency: 8, history: recorded, turn_timeout: 5s, enable_salt: true, \
               inject_tool_delay: true, think_time: {min: 1s, max: 2s}, num_trajectories_to_issue: 9, \
               stop_issuing_on_first_user_complete: true, routing_headers: [A, B]";
    let arriving = "rate: 2.5, arrivals: gamma, burstiness: 4, history: live, think_time: {mean: 2s}, \
                    routing_headers: []";
    for (format, load) in
        [("agentic", all), ("sharegpt", arriving), ("messages", "target_concurrency: 1")]
    {
        let config = talks(format, load, "").unwrap_or_else(|e| panic!("{e}"));
        let again = read(&config.to_yaml()).unwrap_or_else(|e| panic!("{e}"));
        let (one, other) = (&config.phases[0], &again.phases[0]);
        let format = |phase: &Phase| match &phase.source {
            Source::Conversations(file) => (file.format, file.path.ends_with("dir/t.jsonl")),
            other => panic!("{other:?}"),
        };
        assert_eq!(format(one), format(other));
        let settled = |phase: &Phase| {
            let agentic = phase.load.agentic().expect("it is agentic").clone();
            format!("{agentic:?}").replace("history: None", "history: Some(false)")
        };
        assert_eq!(settled(one), settled(other));
    }
    // What no answers are recorded for is live by itself.
    let config = talks("mt-bench", "target_concurrency: 8", "").unwrap();
    let load = config.phases[0].load.agentic().unwrap();
    assert!(load.live && load.routing == ["X-Session-ID"]);
}

#[test]
fn conversations_that_cannot_be_are_refused() {
    let file = "endpoint: {url: 'http://h'}\ndataset: {path: t.jsonl, format: F}\nphases: [{name: p, load: L}]\n";
    let other = |format: &str, load: &str| {
        read(&file.replace('F', format).replace('L', load)).expect_err("refused")
    };
    let closed = "{pattern: concurrency, target_concurrency: 2}";
    let agentic = "{pattern: agentic, target_concurrency: 2}";
    assert!(other("agentic", closed).contains("use pattern `agentic`"));
    assert!(other("jsonl", agentic).contains("pattern `agentic` needs conversations"));
    for (format, load, rest, expected) in [
        ("agentic", "history: live", "", "`target_concurrency` is missing"),
        (
            "agentic",
            "target_concurrency: 2, rate: 1",
            "",
            "rate: conversations arrive at `rate`, or",
        ),
        ("agentic", "target_concurrency: 2, arrivals: poisson", "", "arrivals: has no effect"),
        (
            "mt-bench",
            "target_concurrency: 2, history: recorded",
            "",
            "history: format `mt-bench` records no",
        ),
        ("mt-bench", "rate: 1, inject_tool_delay: true", "", "inject_tool_delay: has no effect"),
        ("agentic", "rate: 1, turn_timeout: 0s", "", "turn_timeout: must be longer than nothing"),
        ("agentic", "rate: 1, think_time: {min: 2s, max: 1s}", "", "`max` is shorter than `min`"),
        ("agentic", "rate: 1, think_time: {mean: 2s, max: 1s}", "", "max: has no effect"),
        (
            "agentic",
            "rate: 1, routing_headers: [Host]",
            "",
            "routing_headers[0]: header Host is set by takt",
        ),
        (
            "agentic",
            "rate: 1, routing_headers: [x-team]",
            "",
            "`X-Team` is among `endpoint.headers`",
        ),
        (
            "agentic",
            "rate: 1, num_trajectories_to_issue: 0",
            "",
            "must be a whole number, 1 or more",
        ),
        (
            "agentic",
            "rate: 1, num_trajectories_to_issue: 9",
            "min_duration: 9s",
            "min_duration: has no effect: `num_trajectories_to_issue`",
        ),
        (
            "agentic",
            "rate: 1, stop_issuing_on_first_user_complete: true",
            "duration: 9s",
            "stop_issuing_on_first_user_complete: has no effect",
        ),
        ("agentic", "rate: 1, max_in_flight: 3", "", "max_in_flight: has no effect"),
    ] {
        let error = talks(format, load, rest).map(|_| ()).expect_err(load);
        assert!(error.contains(expected), "{load}: {error}");
    }
    for key in ["history: live", "enable_salt: true", "turn_timeout: 5s", "routing_headers: [A]"] {
        let error =
            load_of(&format!("pattern: poisson, rate: 1, {key}"), "duration: 9s").unwrap_err();
        assert!(error.contains("has no effect: pattern `poisson` does not use it"), "{error}");
    }
}

#[test]
fn arrivals_of_conversations_are_not_those_of_the_reference() {
    for (load, drawn) in [
        ("rate: 2", true),
        ("rate: 2, arrivals: gamma, burstiness: 4", true),
        ("rate: 2, arrivals: constant", false),
        ("target_concurrency: 2", false),
    ] {
        let file = format!(
            "endpoint: {{url: 'http://h'}}\nrng: mt19937\ndataset: {{path: t.jsonl, format: agentic}}\n\
             phases: [{{name: p, load: {{pattern: agentic, {load}}}}}]\n"
        );
        let error = read(&file).map(|_| ()).err();
        let refused = error.as_ref().is_some_and(|error| error.contains("has no such arrivals"));
        assert_eq!(refused, drawn, "{load}: {error:?}");
        assert_eq!(error.is_some(), drawn, "{load}: {error:?}");
    }
}
