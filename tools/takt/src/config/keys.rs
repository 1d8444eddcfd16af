//! The keys of the configuration, level by level: the one table that everything about keys comes from.
//!
//! What is not in it is refused, with the nearest name or the level where the key belongs; what stands
//! in a place where it would do nothing is refused by the `with` of its row; `takt validate --keys`
//! prints it, and docs/CONFIG.md holds that print, word for word. A key that is added here and read
//! nowhere is a fault: what is accepted is honoured.

mod opprof;
mod phases;

pub(crate) use opprof::OPPROF;
pub(crate) use phases::{LOAD, PHASE, SCORE, THINK};

/// The keys of one level.
#[derive(Debug)]
pub(crate) struct Level {
    /// Its path, for the reference.
    pub(crate) title: &'static str,
    /// Where it is, for an error text: `under \`endpoint\``.
    pub(crate) place: &'static str,
    /// The key whose word decides which others have an effect (the `with` of their rows).
    pub(crate) selector: &'static str,
    /// Keys that are honoured.
    pub(crate) keys: &'static [Key],
    /// Keys of the documented format that this version does not have.
    pub(crate) later: &'static [&'static str],
}

/// A key that is honoured.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// What it takes.
    pub(crate) takes: &'static str,
    /// What holds without it; empty where that is nothing.
    pub(crate) default: &'static str,
    /// What it does, in one line.
    pub(crate) does: &'static str,
    /// The words of the level's selector with which it has an effect; empty for all.
    pub(crate) with: &'static [&'static str],
}

impl Level {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name)
    }
}

impl Key {
    /// The same key, for some words of the level's selector only.
    const fn with(mut self, words: &'static [&'static str]) -> Self {
        self.with = words;
        self
    }
}

const fn key(
    name: &'static str,
    takes: &'static str,
    default: &'static str,
    does: &'static str,
) -> Key {
    Key { name, takes, default, does, with: &[] }
}

pub(crate) static ROOT: Level = Level {
    title: "top level",
    place: "at the top level",
    selector: "",
    keys: &[
        key("name", "text", "the file's name", "name of the run, part of its folder's name"),
        key("endpoint", "map", "", "where requests go and what each one says; required"),
        key("dataset", "map", "made-up prompts", "samples of every phase without its own"),
        key("engine", "map", "", "how the reactor runs"),
        key("connections", "map", "", "how connections are kept"),
        key(
            "journal",
            "`full`, `sampled N` or `off`",
            "full",
            "which requests the journal keeps: all, one in N, none",
        ),
        key(
            "journal_size_cap",
            "size such as 2GB",
            "none",
            "from this size on the journal keeps no more requests",
        ),
        key(
            "seed",
            "whole number",
            "42",
            "arrivals, sample order and made-up prompts come from it",
        ),
        key(
            "order",
            "`without_replacement`, `with_replacement`, `sequential` or `single:INDEX`",
            "without_replacement",
            "in which order samples are sent",
        ),
        key(
            "rng",
            "`xoshiro` or `mt19937`",
            "xoshiro",
            "what orders and poisson gaps are drawn from; mt19937 draws those of the reference",
        ),
        key("limits", "map", "none", "how long a request may take"),
        key("slo", "map", "none", "what a request and a phase must keep to be good"),
        key(
            "verdict",
            "map",
            "",
            "from which figures on a run is suspect; at ten times them, invalid",
        ),
        key("phases", "list of maps", "", "what is done, one after another; required"),
        key("publish", "map", "nothing", "what the run tells others while it goes on, over ZMQ"),
        key(
            "opprof",
            "map",
            "nothing",
            "what is taken of the server: step records, profiler windows",
        ),
        key("control", "path", "none", "unix socket that takes `stop` and `status`"),
        key(
            "tokenizer",
            "path",
            "none",
            "a tokenizer.json that counts output tokens after the run, beside the server's counts or in their place",
        ),
    ],
    later: &[],
};

pub(crate) static ENDPOINT: Level = Level {
    title: "endpoint",
    place: "under `endpoint`",
    selector: "api",
    keys: &[
        key(
            "url",
            "address or list of them",
            "",
            "http(s)://host:port with or without /v1, or unix:/path; several are used in turn",
        ),
        key(
            "api",
            "`openai-chat`, `openai-completions`, `openai-responses`, `openai-embeddings`, `sglang-generate` or `raw`",
            "openai-chat",
            "what is spoken",
        ),
        key("model", "text", "", "the model that requests name"),
        key(
            "api_key",
            "text, or {file: PATH}",
            "none",
            "sent as `Authorization: Bearer`, shown nowhere; empty is none",
        ),
        key(
            "headers",
            "map of names to text, {file: PATH} or lists of them",
            "",
            "headers of every request; a list repeats one",
        ),
        key("stream", "true or false", "true where the API streams", "ask for streamed answers"),
        key("body", "map", "", "parameters of every request; a row's own override them"),
        key("extra_body", "map", "", "parameters of every request that override a row's own"),
    ],
    later: &[],
};

pub(crate) static FROM_FILE: Level = Level {
    title: "endpoint.headers.NAME",
    place: "under a header or `api_key`",
    selector: "",
    keys: &[key("file", "path", "", "a file whose one line is the value; it is kept secret")],
    later: &[],
};

/// Formats of files, as `dataset.format` has them.
const FILES: &[&str] = &["jsonl", "json", "csv", "text"];
/// The same, and what has no columns to choose from: recordings and conversations.
const PATHS: &[&str] = &[
    "jsonl", "json", "csv", "text", "azure", "mooncake", "agentic", "messages", "sharegpt",
    "mt-bench",
];

pub(crate) static DATASET: Level = Level {
    title: "dataset",
    place: "under `dataset`",
    selector: "format",
    keys: &[
        key("path", "path", "", "the file; a relative path is relative to this file").with(PATHS),
        key(
            "format",
            "`jsonl`, `json`, `csv`, `text`, `azure`, `mooncake`, `agentic`, `messages`, `sharegpt`, \
             `mt-bench` or `synthetic`",
            "by the suffix of `path`",
            "how the file is read (`agentic` to `mt-bench` hold conversations), or that prompts are made up",
        ),
        key("prompt", "text", "found by its name", "column that holds the prompt").with(FILES),
        key("system", "text", "found by its name", "column that holds a system prompt").with(FILES),
        key(
            "prompts",
            "whole number",
            "one a request, 16384 at most",
            "how many prompts to make up",
        )
        .with(&["synthetic"]),
        key("words", "whole number, or {min, max}", "64", "words of a made-up prompt")
            .with(&["synthetic"]),
    ],
    later: &["truth"],
};

pub(crate) static WORDS: Level = Level {
    title: "dataset.words",
    place: "under `dataset.words`",
    selector: "",
    keys: &[
        key("min", "whole number", "", "the fewest"),
        key("max", "whole number", "", "the most; in between all are equally likely"),
    ],
    later: &[],
};

pub(crate) static ENGINE: Level = Level {
    title: "engine",
    place: "under `engine`",
    selector: "",
    keys: &[
        key("wait", "`park`, `guard`, `guard:500us` or `spin`", "guard", "how the reactor waits"),
        key("core", "whole number", "not pinned", "core that the reactor's thread is pinned to"),
        key(
            "reactors",
            "whole number",
            "1",
            "threads that drive the load, on `core` and those behind it; each has a part of the arrivals or places",
        ),
        key(
            "pacer",
            "`inline`, `thread` or `process`",
            "inline",
            "who waits for the moments of a schedule: the reactor, or a clock outside it",
        ),
        key("pacer_core", "whole number", "not pinned", "core that such a clock is pinned to"),
        key(
            "rx_timestamps",
            "`user` or `kernel`",
            "user",
            "`kernel`: how long first tokens lay in the socket, as `socket_wait_ms`",
        ),
        key(
            "ttft_until",
            "`read` or `arrival`",
            "read",
            "whether TTFT ends when the first token was read, or when it came to this machine",
        ),
    ],
    later: &[],
};

pub(crate) static CONNECTIONS: Level = Level {
    title: "connections",
    place: "under `connections`",
    selector: "",
    keys: &[
        key("max", "whole number", "as open files allow", "the most connections to each address"),
        key(
            "retry_stale",
            "true or false",
            "true",
            "send once more what dies on a reused connection before any answer",
        ),
        key(
            "warm",
            "whole number",
            "as the first phase needs",
            "connections opened before the first phase, over all addresses",
        ),
        key(
            "balance",
            "`round_robin` or `least_in_flight`",
            "round_robin",
            "which of several addresses is next",
        ),
        key(
            "source_addresses",
            "list of addresses",
            "the system's choice",
            "addresses of this machine to connect from, in turn: each has its own ports",
        ),
        key("tls", "map", "the system's roots", "what https:// addresses must show, and are shown"),
    ],
    later: &[],
};

pub(crate) static TLS: Level = Level {
    title: "connections.tls",
    place: "under `connections.tls`",
    selector: "",
    keys: &[
        key("ca", "path", "the system's", "PEM file of the certificates that are trusted"),
        key("cert", "path", "none", "PEM file of a client certificate, with its chain"),
        key("key", "path", "none", "PEM file of its key"),
        key(
            "insecure",
            "true or false",
            "false",
            "check no certificate: whoever answers is believed, and the report says so",
        ),
    ],
    later: &[],
};

pub(crate) static LIMITS: Level = Level {
    title: "limits",
    place: "under `limits`",
    selector: "",
    keys: &[
        key("request_timeout", "duration", "none", "the longest that a request may take"),
        key("first_byte_timeout", "duration", "none", "from the send to the first byte"),
        key("connect_timeout", "duration", "none", "the longest that connecting may take"),
        key(
            "endpoint_response_idle_timeout",
            "duration",
            "none",
            "fail the run when nothing comes for so long while requests are in flight",
        ),
        key("run_timeout", "duration", "none", "the longest that the whole run may take"),
        key(
            "service_ready_timeout",
            "duration",
            "30s",
            "how long an aggregator or a pacer process may take to be ready",
        ),
    ],
    later: &[],
};

pub(crate) static VERDICT: Level = Level {
    title: "verdict",
    place: "under `verdict`",
    selector: "",
    keys: &[
        key("lateness_p99_us", "number", "100", "open loop: 99th percentile of the lateness"),
        key("lateness_gap_share", "number", "0.1", "or this share of the mean gap, if it is more"),
        key("off_schedule", "number", "0.005", "open loop: share by which the sends took longer"),
        key("runnable", "number", "0.01", "share of time the reactor could run and did not"),
        key("stolen", "number", "0.01", "share of time that the hypervisor took"),
        key("involuntary_per_s", "number", "100", "times a second that its core was taken away"),
        key("unread_us", "number", "50", "mean time that answers may have stood unread"),
        key("unread_share", "number", "0.1", "or this share of the mean latency, if it is more"),
        key(
            "socket_wait",
            "number",
            "0.05",
            "share of the time to first token it lay in the socket",
        ),
        key("ring_spilled", "number", "1", "blocks of records that had to wait"),
        key("limited", "number", "0.001", "share of requests that waited for a connection"),
        key("local_limit", "number", "1", "requests without a descriptor or port"),
        key("leftover", "number", "0.01", "share of requests with bytes behind their answer"),
        key("survivors", "number below 1", "0.99", "share of requests that must succeed"),
        key("coalesced", "number", "0.05", "share of token events in one read with another"),
        key("token_counts", "number", "0.01", "share of successes whose token counts disagree"),
        key("unseen_tokens", "number", "0.01", "share of successes with output tokens and no text"),
        key("unasked_stream", "number", "0.01", "share of successes that were streams unasked"),
        key("fold_share", "number", "0.95", "share of time that writing the records took"),
        key("client_bound", "number", "0.9", "closed loop: busy share of the reactor; a remark"),
    ],
    later: &[],
};

pub(crate) static SLO: Level = Level {
    title: "slo",
    place: "under `slo`",
    selector: "",
    keys: &[
        key(
            "ttft_ms",
            "number, or {p99: number}",
            "",
            "time to first token; a number is for each request, percentiles are for the phase",
        ),
        key("tpot_ms", "number, or {p99: number}", "", "time per output token after the first"),
        key("latency_ms", "number, or {p99: number}", "", "to the last byte"),
    ],
    later: &[],
};

pub(crate) static PERCENTILES: Level = Level {
    title: "slo.ttft_ms",
    place: "under a metric of `slo`",
    selector: "",
    keys: &[
        key("p50", "number", "", "milliseconds that half of the requests keep"),
        key("p75", "number", "", "milliseconds that three quarters keep"),
        key("p90", "number", "", "milliseconds that 90 of 100 keep"),
        key("p95", "number", "", "milliseconds that 95 of 100 keep"),
        key("p99", "number", "", "milliseconds that 99 of 100 keep"),
        key("p99.9", "number", "", "milliseconds that 999 of 1000 keep"),
    ],
    later: &[],
};

pub(crate) static PUBLISH: Level = Level {
    title: "publish",
    place: "under `publish`",
    selector: "",
    keys: &[
        key("events", "ipc:// or tcp:// address", "none", "where events are published"),
        key("snapshots", "ipc:// or tcp:// address", "none", "where four snapshots a second are"),
        key(
            "aggregator",
            "true, false or an address",
            "false",
            "fold in another process too: one that the run starts, or one that connects there",
        ),
        key(
            "queue",
            "whole number",
            "256",
            "messages that wait for a subscriber before it loses some",
        ),
    ],
    later: &[],
};

/// All of them, to find where a misplaced key belongs, and for the reference.
pub(crate) static LEVELS: [&Level; 18] = [
    &ROOT,
    &ENDPOINT,
    &FROM_FILE,
    &DATASET,
    &WORDS,
    &ENGINE,
    &CONNECTIONS,
    &TLS,
    &LIMITS,
    &VERDICT,
    &SLO,
    &PERCENTILES,
    &PUBLISH,
    &OPPROF,
    &PHASE,
    &SCORE,
    &LOAD,
    &THINK,
];

/// What a key does, by the title of its level.
pub(crate) fn meaning(title: &str, name: &str) -> Option<&'static str> {
    // The top level has no path.
    let title = if title.is_empty() { ROOT.title } else { title };
    let level = LEVELS.into_iter().find(|level| level.title == title)?;
    level.keys.iter().find(|key| key.name == name).map(|key| key.does)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_says_what_it_takes_and_does_and_is_there_once() {
        for level in LEVELS {
            for (place, key) in level.keys.iter().enumerate() {
                let at = format!("{}.{}", level.title, key.name);
                assert!(!key.takes.is_empty() && !key.does.is_empty(), "{at}");
                assert!(!level.later.contains(&key.name), "{at} is both here and still to come");
                assert!(level.keys[..place].iter().all(|k| k.name != key.name), "{at} twice");
                assert!(key.with.is_empty() || level.has(level.selector), "{at}: no selector");
            }
        }
    }

    #[test]
    fn every_key_is_read_somewhere() {
        // The fuzz targets compile this file in; the sources are here.
        if env!("CARGO_PKG_NAME") != "takt" {
            return;
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/config");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        // Its row in the table is not where a key is read.
        let files = files.filter(|path| !path.ends_with("keys.rs") && path.is_file());
        let sources: String = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        // Percentiles are read by the names in the table itself.
        for level in LEVELS.into_iter().filter(|level| !std::ptr::eq(*level, &PERCENTILES)) {
            for key in level.keys {
                let quoted = format!("\"{}\"", key.name);
                assert!(sources.contains(&quoted), "{}.{} is read nowhere", level.title, key.name);
            }
        }
    }
}
