//! What is wrong with a parameter, and where it was given.

/// A body that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// `stream` is given and is not what the run asks for.
    #[error(
        "`stream` in {0} contradicts the run; turn streaming on or off with --stream or --no-stream"
    )]
    Stream(Source),
    /// A stream is asked for where there is none.
    #[error("`stream` in {0}: answers of {1} are never streamed")]
    NeverStreams(Source, &'static str),
    /// The API has nothing of that name.
    #[error("`{key}` in {source_of_key}: {api} {why}")]
    HasNo {
        /// The key.
        key: String,
        /// Where it is given.
        source_of_key: Source,
        /// The API.
        api: &'static str,
        /// What it has not, or has instead.
        why: &'static str,
    },
    /// The prompt is given a second time.
    #[error(
        "`{key}` in {source_of_key} would replace the prompt of every sample; take it from the dataset"
    )]
    Prompt {
        /// The key.
        key: String,
        /// Where it is given.
        source_of_key: Source,
    },
    /// `stream_options` without a stream.
    #[error("`stream_options` in {0} needs a stream; leave it out or use --stream")]
    StreamOptions(Source),
    /// Not a JSON array of messages.
    #[error("the messages of the sample are not a JSON array of objects: {0}")]
    Messages(String),
    /// The API does not take what the sample holds.
    #[error("{api} takes {takes}, and the sample holds {holds}")]
    Unfit {
        /// The API.
        api: &'static str,
        /// What it takes.
        takes: &'static str,
        /// What is there.
        holds: &'static str,
    },
}

/// Where a parameter is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The endpoint's `body`.
    Endpoint,
    /// A row of the dataset.
    Row,
    /// The extra body.
    Extra,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Endpoint => "endpoint.body",
            Self::Row => "the dataset's row",
            Self::Extra => "the extra body",
        })
    }
}
