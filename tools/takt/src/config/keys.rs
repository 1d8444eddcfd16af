//! The keys of the configuration, level by level: those that are honoured and those that a later version
//! will have. Nothing else is accepted anywhere.

/// The keys of one level.
#[derive(Debug)]
pub(crate) struct Level {
    /// Where it is, for an error text: `under \`endpoint\``.
    pub(crate) place: &'static str,
    /// Keys that are honoured.
    pub(crate) keys: &'static [&'static str],
    /// Keys of the documented format that this version does not have.
    pub(crate) later: &'static [&'static str],
}

pub(crate) static ROOT: Level = Level {
    place: "at the top level",
    keys: &[
        "name",
        "endpoint",
        "dataset",
        "engine",
        "connections",
        "journal",
        "seed",
        "order",
        "limits",
        "phases",
    ],
    later: &["tokenizer", "publish", "rng", "slo"],
};

pub(crate) static ENDPOINT: Level = Level {
    place: "under `endpoint`",
    keys: &["url", "api", "model", "api_key", "headers", "stream", "body", "extra_body"],
    later: &[],
};

pub(crate) static DATASET: Level = Level {
    place: "under `dataset`",
    keys: &["path", "format", "prompt", "system", "prompts", "words"],
    later: &["truth"],
};

pub(crate) static WORDS: Level =
    Level { place: "under `dataset.words`", keys: &["min", "max"], later: &[] };

pub(crate) static ENGINE: Level =
    Level { place: "under `engine`", keys: &["wait", "core"], later: &["pacer", "rx_timestamps"] };

pub(crate) static CONNECTIONS: Level = Level {
    place: "under `connections`",
    keys: &["max", "retry_stale"],
    later: &["source_addresses", "tls"],
};

pub(crate) static LIMITS: Level = Level {
    place: "under `limits`",
    keys: &[
        "request_timeout",
        "first_byte_timeout",
        "connect_timeout",
        "endpoint_response_idle_timeout",
        "run_timeout",
    ],
    later: &[],
};

pub(crate) static PHASE: Level = Level {
    place: "in a phase",
    keys: &[
        "name",
        "type",
        "load",
        "dataset",
        "requests",
        "duration",
        "min_duration",
        "max_duration",
        "drain_after",
        "drain_timeout",
        "seed",
    ],
    later: &["score"],
};

pub(crate) static LOAD: Level = Level {
    place: "under `load` of a phase",
    keys: &["pattern", "rate", "target_concurrency", "max_in_flight"],
    later: &["burstiness", "speed", "history", "turn_timeout", "enable_salt"],
};

/// All of them, to find where a misplaced key belongs.
pub(crate) static LEVELS: [&Level; 9] =
    [&ROOT, &ENDPOINT, &DATASET, &WORDS, &ENGINE, &CONNECTIONS, &LIMITS, &PHASE, &LOAD];
