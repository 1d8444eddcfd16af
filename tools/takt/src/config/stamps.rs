//! Whose clock stamps what comes in, and from when the first token counts.

use takt_wire::Scheme;

use super::endpoint::EndpointConfig;
use super::error::ConfigError;
use super::reader::{Table, word_of};

/// `engine.rx_timestamps` and `engine.ttft_until`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// The kernel stamps what comes in, beside the stamp of each read.
    pub(crate) kernel: bool,
    /// The time to the first token ends when it arrived, not when it was read.
    pub(crate) ttft_by_arrival: bool,
}

impl Stamps {
    const CLOCKS: [(&'static str, bool); 2] = [("user", false), ("kernel", true)];
    const ENDS: [(&'static str, bool); 2] = [("read", false), ("arrival", true)];

    pub(super) fn read(engine: &Table<'_>, endpoint: &EndpointConfig) -> Result<Self, ConfigError> {
        let choose = |key, words: &[(&'static str, bool)]| match engine.get(key) {
            Some(field) => field.choice(words, &[]),
            None => Ok(false),
        };
        let stamps = Self {
            kernel: choose("rx_timestamps", &Self::CLOCKS)?,
            ttft_by_arrival: choose("ttft_until", &Self::ENDS)?,
        };
        let unix = endpoint.urls.iter().any(|url| url.scheme() == Scheme::Unix);
        match (engine.get("rx_timestamps"), engine.get("ttft_until")) {
            (Some(field), _) if stamps.kernel && unix => {
                Err(field.error("`kernel`: the kernel stamps no bytes of unix sockets; use `user`"))
            }
            (_, Some(field)) if stamps.ttft_by_arrival && !stamps.kernel => Err(field
                .error("`arrival` is known from the kernel alone: set `rx_timestamps: kernel`")),
            _ => Ok(stamps),
        }
    }

    pub(super) fn words(self) -> (&'static str, &'static str) {
        (word_of(&Self::CLOCKS, self.kernel), word_of(&Self::ENDS, self.ttft_by_arrival))
    }
}
