//! The APIs that takt speaks, as one closed enum: where requests go, how they are made and how answers are read.
//!
//! A new API is a file with its formats and a variant here; the compiler then names every place that has
//! to know about it.

use crate::chat::{Learned, Shape, read};
use crate::delta::{BadJson, Delta, TextSink};
use crate::url::Route;

/// An inference API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI chat completions.
    OpenaiChat,
    /// OpenAI completions.
    OpenaiCompletions,
    /// Any HTTP service: path and body come from the data, any 2xx answer is a success.
    Raw,
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::OpenaiChat, Self::OpenaiCompletions, Self::Raw];

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
            Self::Raw => "raw",
        }
    }

    /// Where its requests go, below an endpoint's base.
    #[must_use]
    pub const fn route(self) -> Route<'static> {
        match self {
            Self::OpenaiChat => Route::Versioned("chat/completions"),
            Self::OpenaiCompletions => Route::Versioned("completions"),
            Self::Raw => Route::Exact(""),
        }
    }

    /// Whether answers can be streamed as events; streaming is then the default.
    #[must_use]
    pub const fn streams(self) -> bool {
        match self {
            Self::OpenaiChat | Self::OpenaiCompletions => true,
            Self::Raw => false,
        }
    }

    /// Whether an answer of this status is a success.
    #[must_use]
    pub const fn accepts(self, status: u16) -> bool {
        match self {
            Self::OpenaiChat | Self::OpenaiCompletions => status == 200,
            Self::Raw => matches!(status, 200..300),
        }
    }

    /// Whether answers are JSON that is to be read, or bytes that are only counted.
    pub(crate) const fn reads_answers(self) -> bool {
        match self {
            Self::OpenaiChat | Self::OpenaiCompletions => true,
            Self::Raw => false,
        }
    }

    /// Reads the data of one event of a stream.
    pub(crate) fn read_event(
        self,
        learned: &mut Learned,
        data: &[u8],
        text: Option<TextSink<'_>>,
    ) -> Result<Delta, BadJson> {
        match self {
            Self::OpenaiChat => learned.read(data, Shape::ChatEvent, text),
            Self::OpenaiCompletions => learned.read(data, Shape::Completion, text),
            Self::Raw => Ok(Delta::default()),
        }
    }

    /// Reads a whole answer.
    pub(crate) fn read_whole(
        self,
        data: &[u8],
        text: Option<TextSink<'_>>,
    ) -> Result<Delta, BadJson> {
        match self {
            Self::OpenaiChat => read(data, Shape::ChatWhole, text),
            Self::OpenaiCompletions => read(data, Shape::Completion, text),
            Self::Raw => Ok(Delta::default()),
        }
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
}
