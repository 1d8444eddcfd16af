//! The keys about the server's side of a run.

use super::{Level, key};

pub(crate) static OPPROF: Level = Level {
    title: "opprof",
    place: "under `opprof`",
    selector: "",
    keys: &[
        key(
            "records",
            "path",
            "none",
            "folder that the server writes step records to, on this machine; they are collected",
        ),
        key("engine", "text", "the only one", "scheduler whose records are meant, `dp0-pid1234`"),
        key(
            "traces",
            "path",
            "none",
            "folder that the server's profiler writes to, on this machine; without it there are no windows",
        ),
        key("windows", "whole number", "1", "profiler windows of each performance phase"),
        key(
            "apart",
            "duration",
            "1s",
            "from the beginning of a phase, and from the end of a window, to the next one",
        ),
        key("decode", "`N..M`", "any", "begin a window when so many requests generate"),
        key("prompts", "`any`, `none` or `some`", "any", "begin it when steps have prompts or not"),
        key("steady", "whole number", "3", "for so many steps in a row"),
        key("steps", "whole number", "8", "steps of a window: `max_iterations` of the profiler"),
        key("within", "duration", "60s", "how long to wait for such steps"),
        key(
            "steps_within",
            "duration",
            "10s",
            "how long the steps may take; without `records`, how long a window is",
        ),
        key("written_within", "duration", "60s", "how long the server may take to write traces"),
        key(
            "margin",
            "duration",
            "50ms",
            "before the start of the profiler and after its end: requests of then are profiled, too",
        ),
        key(
            "ranks",
            "whole number",
            "as the server tells",
            "ranks, each of which must write a trace",
        ),
        key(
            "taxonomy",
            "true or false",
            "false",
            "the server was started without graphs, to learn names: its times are no baseline",
        ),
        key("server_log", "path", "none", "the server's log, whose lines about back ends are kept"),
    ],
    later: &[],
};
