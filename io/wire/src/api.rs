//! The APIs that takt speaks, as one closed enum: where requests go, how they are made and how answers are read.
//!
//! A new API is a file with its formats and a variant here; the compiler then names every place that has
//! to know about it.

use crate::delta::{BadJson, Delta, TextSink};
use crate::reader::{Reader, Shape, read};
use crate::url::{Endpoint, Route, ends_with_segments};

/// An inference API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI chat completions.
    OpenaiChat,
    /// OpenAI completions.
    OpenaiCompletions,
    /// OpenAI responses.
    OpenaiResponses,
    /// OpenAI embeddings.
    OpenaiEmbeddings,
    /// SGLang's own route.
    SglangGenerate,
    /// Any HTTP service: path and body come from the data, any 2xx answer is a success.
    Raw,
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::OpenaiChat,
        Self::OpenaiCompletions,
        Self::OpenaiResponses,
        Self::OpenaiEmbeddings,
        Self::SglangGenerate,
        Self::Raw,
    ];

    /// The API of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.as_str() == name)
    }

    /// The name in a configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiCompletions => "openai-completions",
            Self::OpenaiResponses => "openai-responses",
            Self::OpenaiEmbeddings => "openai-embeddings",
            Self::SglangGenerate => "sglang-generate",
            Self::Raw => "raw",
        }
    }

    /// Where its requests go, below an endpoint's base.
    #[must_use]
    pub const fn route(self) -> Route<'static> {
        match self {
            Self::OpenaiChat => Route::Versioned("chat/completions"),
            Self::OpenaiCompletions => Route::Versioned("completions"),
            Self::OpenaiResponses => Route::Versioned("responses"),
            Self::OpenaiEmbeddings => Route::Versioned("embeddings"),
            Self::SglangGenerate => Route::Native("generate"),
            Self::Raw => Route::Exact(""),
        }
    }

    /// The API whose whole route an address ends with, the longest where routes are parts of each other.
    #[must_use]
    pub fn named_by(address: &Endpoint) -> Option<Self> {
        let ends = |api: &Self| match api.route() {
            Route::Versioned(rest) | Route::Native(rest) => {
                ends_with_segments(address.base(), rest)
            }
            Route::Exact(_) => false,
        };
        Self::ALL.into_iter().filter(ends).max_by_key(|api| match api.route() {
            Route::Versioned(rest) | Route::Native(rest) | Route::Exact(rest) => rest.len(),
        })
    }

    /// Whether answers can be streamed as events; streaming is then the default.
    #[must_use]
    pub const fn streams(self) -> bool {
        match self {
            Self::OpenaiChat
            | Self::OpenaiCompletions
            | Self::OpenaiResponses
            | Self::SglangGenerate => true,
            Self::OpenaiEmbeddings | Self::Raw => false,
        }
    }

    /// Whether its requests name a model.
    #[must_use]
    pub const fn names_model(self) -> bool {
        !matches!(self, Self::SglangGenerate | Self::Raw)
    }

    /// What it calls the limit of an answer's length; `None` where answers have no length.
    #[must_use]
    pub const fn tokens_max_key(self) -> Option<&'static str> {
        match self {
            Self::OpenaiChat | Self::OpenaiCompletions => Some("max_tokens"),
            Self::OpenaiResponses => Some("max_output_tokens"),
            Self::SglangGenerate => Some("max_new_tokens"),
            Self::OpenaiEmbeddings | Self::Raw => None,
        }
    }

    /// Whether an answer of this status is a success.
    #[must_use]
    pub const fn accepts(self, status: u16) -> bool {
        match self {
            Self::Raw => matches!(status, 200..300),
            _ => status == 200,
        }
    }

    /// Whether answers are JSON that is to be read, or bytes that are only counted.
    pub(crate) const fn reads_answers(self) -> bool {
        !matches!(self, Self::Raw)
    }

    /// What an answer has to have, in the API's words.
    pub(crate) const fn answer_holds(self) -> &'static str {
        match self {
            Self::OpenaiChat | Self::OpenaiCompletions => "choices",
            Self::OpenaiResponses => "output",
            Self::OpenaiEmbeddings => "data",
            Self::SglangGenerate => "text",
            Self::Raw => "body",
        }
    }

    /// Reads the data of one event of a stream.
    pub(crate) fn read_event(
        self,
        reader: &mut Reader,
        data: &[u8],
        text: Option<TextSink<'_>>,
    ) -> Result<Delta, BadJson> {
        let shape = match self {
            Self::OpenaiChat => Shape::ChatEvent,
            Self::OpenaiCompletions => Shape::Completion,
            Self::OpenaiResponses => Shape::ResponsesEvent,
            Self::OpenaiEmbeddings => Shape::Embeddings,
            Self::SglangGenerate => Shape::Sglang,
            Self::Raw => return Ok(Delta::default()),
        };
        reader.read(data, shape, text)
    }

    /// Reads a whole answer.
    pub(crate) fn read_whole(
        self,
        data: &[u8],
        text: Option<TextSink<'_>>,
    ) -> Result<Delta, BadJson> {
        let shape = match self {
            Self::OpenaiChat => Shape::ChatWhole,
            Self::OpenaiCompletions => Shape::Completion,
            Self::OpenaiResponses => Shape::ResponsesWhole,
            Self::OpenaiEmbeddings => Shape::Embeddings,
            Self::SglangGenerate => Shape::Sglang,
            Self::Raw => return Ok(Delta::default()),
        };
        read(data, shape, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for api in Api::ALL {
            assert_eq!(Api::parse(api.as_str()), Some(api));
        }
        assert_eq!(Api::parse("openai"), None);
    }

    #[test]
    fn k2_the_whole_route_of_an_api_names_it() {
        for (address, names) in [
            ("http://h/v1/chat/completions", Some(Api::OpenaiChat)),
            ("http://h/v1/completions/", Some(Api::OpenaiCompletions)),
            ("http://h/v1/responses?x=1", Some(Api::OpenaiResponses)),
            ("http://h/v1/embeddings", Some(Api::OpenaiEmbeddings)),
            ("http://h/generate", Some(Api::SglangGenerate)),
            ("http://h/v1", None),
            ("http://h/regenerate", None),
            ("http://h", None),
        ] {
            let address = Endpoint::parse(address).expect("it is an address");
            assert_eq!(Api::named_by(&address), names, "{address}");
        }
    }
}
