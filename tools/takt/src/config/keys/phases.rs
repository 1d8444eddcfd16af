//! The keys of a phase: what it is, its load, its score.

use super::{Level, key};

pub(crate) static PHASE: Level = Level {
    title: "phases[]",
    place: "in a phase",
    selector: "type",
    keys: &[
        key("name", "text", "", "unique; every figure is kept under it; required"),
        key(
            "type",
            "`performance`, `accuracy` or `warmup`",
            "performance",
            "whether it is measured, or its answers scored",
        ),
        key("load", "map", "", "the load pattern; required"),
        key("dataset", "map", "that of the top level", "its own samples"),
        key("requests", "whole number", "the dataset once", "issue exactly so many"),
        key("duration", "duration", "", "stop issuing then; with `requests`, whichever is first"),
        key("min_duration", "duration", "", "repeat the dataset, in whole passes, until then"),
        key("max_duration", "duration", "none", "a cap; a phase that it ends is `capped`"),
        key(
            "drain_after",
            "true or false",
            "true; warmup: false",
            "wait for what is in flight before the next phase",
        ),
        key("drain_timeout", "duration", "none", "give up waiting; the rest is `unanswered`"),
        key("seed", "whole number", "`seed` plus the phase's place", "its own random streams"),
        key("repeats", "whole number", "1", "how often every row is sent").with(&["accuracy"]),
        key("score", "map", "none", "how answers are compared with the right ones")
            .with(&["accuracy", "performance"]),
    ],
    later: &[],
};

/// Scorers that compare takt's own way, with a truth.
const RULES: &[&str] = &["exact", "contains", "regex", "multiple_choice", "numeric"];

pub(crate) static SCORE: Level = Level {
    title: "phases[].score",
    place: "under `score` of a phase",
    selector: "by",
    keys: &[
        key(
            "by",
            "`exact`, `contains`, `regex`, `multiple_choice`, `numeric`, `agentic_inline` or `command`",
            "",
            "when an answer is right; required",
        ),
        key(
            "truth",
            "text",
            "",
            "column of the right answers; required but for `command` and `agentic_inline`",
        ),
        key("after", "text", "none", "a mark, behind whose last place the truth stands")
            .with(RULES),
        key(
            "of",
            "`content`, `reasoning+content` or `reasoning+content+tool_calls`",
            "content",
            "what of a response is its answer",
        )
        .with(RULES),
        key("ignore_case", "true or false", "false", "capitals and small letters are the same")
            .with(&["exact", "contains", "regex"]),
        key("pattern", "regular expression", "", "what to find in the answer; required")
            .with(&["regex"]),
        key("take", "`first` or `last`", "last", "which match counts").with(&["regex"]),
        key("choices", "whole number, 2 to 26", "4", "letters that an answer may be")
            .with(&["multiple_choice"]),
        key("command", "text or list of texts", "", "the program and its arguments; required")
            .with(&["command"]),
        key("folder", "path", "that of this file", "the folder that the program runs in")
            .with(&["command"]),
        key("timeout", "duration", "600s", "the longest that the program may take")
            .with(&["command"]),
    ],
    later: &[],
};

pub(crate) static LOAD: Level = Level {
    title: "phases[].load",
    place: "under `load` of a phase",
    selector: "pattern",
    keys: &[
        key(
            "pattern",
            "`poisson`, `constant`, `gamma`, `ramp`, `trace`, `max_throughput`, `concurrency` or \
             `agentic`",
            "",
            "when requests are sent; required",
        ),
        key(
            "rate",
            "number",
            "",
            "arrivals a second, on average; of a ramp, where it begins; agentic: of conversations",
        )
        .with(&["poisson", "constant", "gamma", "ramp", "agentic"]),
        key("rate_to", "number", "", "arrivals a second when the phase's `duration` is over")
            .with(&["ramp"]),
        key("arrivals", "`poisson`, `constant` or `gamma`", "poisson", "how they are spaced")
            .with(&["ramp", "agentic"]),
        key(
            "burstiness",
            "number",
            "",
            "the gaps' coefficient of variation is 1/sqrt of it: 1 as poisson, less in bursts",
        )
        .with(&["gamma", "ramp", "agentic"]),
        key("path", "path", "the dataset's rows", "a file of times: .csv, .jsonl or .txt")
            .with(&["trace"]),
        key("speed", "number", "1", "how many times as fast as recorded").with(&["trace"]),
        key(
            "target_concurrency",
            "whole number",
            "",
            "requests kept in flight; agentic: conversations kept active, in place of `rate`",
        )
        .with(&["concurrency", "agentic"]),
        key("max_in_flight", "whole number", "4096", "the most in flight")
            .with(&["max_throughput"]),
        key(
            "history",
            "`recorded` or `live`",
            "recorded; mt-bench: live",
            "what the assistant said before: what the dataset has, or what the model answered",
        )
        .with(AGENTIC),
        key("turn_timeout", "duration", "none", "the longest that a turn may take; it then fails")
            .with(AGENTIC),
        key("inject_tool_delay", "true or false", "false", "keep the delays of the dataset")
            .with(AGENTIC),
        key(
            "think_time",
            "duration, {min, max} or {mean}",
            "none",
            "pause before each further turn of a user, where no delay of the dataset is kept",
        )
        .with(AGENTIC),
        key(
            "enable_salt",
            "true or false",
            "false",
            "mark system messages by pass and conversation: passes of a phase share no cache, other phases and runs do",
        )
        .with(AGENTIC),
        key(
            "num_trajectories_to_issue",
            "whole number",
            "the dataset once",
            "begin so many conversations; past their number they repeat",
        )
        .with(AGENTIC),
        key(
            "stop_issuing_on_first_user_complete",
            "true or false",
            "false",
            "stop when the first conversation ends that none is left to follow",
        )
        .with(AGENTIC),
        key(
            "routing_headers",
            "name or list of them",
            "X-Session-ID",
            "headers that carry the conversation's name; [] for none",
        )
        .with(AGENTIC),
    ],
    later: &[],
};

const AGENTIC: &[&str] = &["agentic"];

pub(crate) static THINK: Level = Level {
    title: "phases[].load.think_time",
    place: "under `think_time` of a load",
    selector: "",
    keys: &[
        key("min", "duration", "", "the shortest"),
        key("max", "duration", "", "the longest; in between all are equally likely"),
        key("mean", "duration", "", "of exponential times, in place of the two"),
    ],
    later: &[],
};
