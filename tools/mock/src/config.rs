//! What a server is told to be.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use takt_engine::Target;
use takt_time::{Anchor, Span};
use takt_wire::Limits;

use crate::distribution::{CountDistribution, SpanDistribution};
use crate::hostile::HostileConfig;
use crate::said::Saying;
use crate::scheduler::SchedulerConfig;

/// A server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// Where to listen.
    pub listen: Target,
    /// How it answers.
    pub mode: Mode,
    /// The model's name in answers and in `/v1/models`.
    pub model: String,
    /// What a request may weigh. Beyond it: 431 or 413, and the connection is closed.
    pub limits: Limits,
    /// Connections open at once. One more is reset.
    pub connections_max: usize,
    /// Closes each connection so long after its first answer, although the answer promised to keep it:
    /// the way of llama.cpp's server.
    pub close_after: Option<Span>,
    /// What the clock reads on the wall, for the `created` field of answers.
    pub anchor: Anchor,
}

/// How a server answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Mode {
    /// At once, with bytes prepared beforehand.
    Instant(InstantConfig),
    /// Token by token, at planned times.
    Timed(TimedConfig),
    /// Token by token, when the steps of a simulated scheduler are complete.
    Scheduler(Box<SchedulerConfig>),
    /// As `timed`, with faults.
    Hostile(Box<HostileConfig>),
}

/// The `instant` mode. It looks at the path and at `stream`, and at nothing else of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstantConfig {
    /// Tokens in an answer of a generating route, each an event of its own when it is streamed
    /// (SGLang's are in one).
    pub tokens: NonZeroU32,
}

/// The `timed` mode.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedConfig {
    /// Seed of all plans.
    pub seed: u64,
    /// From the start of service to the first token.
    pub ttft: SpanDistribution,
    /// From one token to the next.
    pub tpot: SpanDistribution,
    /// Output tokens; a request's `max_tokens` or `max_completion_tokens` caps them.
    pub tokens: CountDistribution,
    /// What answers say. Anything but words decides their length, whatever `tokens` draws.
    pub saying: Saying,
    /// Tokens that one streamed event carries. The first event leaves at the first token's time with as
    /// many; each further one when as many gaps have gone by.
    pub tokens_per_event: NonZeroU32,
    /// Sends the head and a chunk with the role and no token as soon as service starts (chat only).
    /// Otherwise the head leaves with the first token, which then names the role.
    pub role_first: bool,
    /// From the last token to the finish chunk, the usage chunk and `[DONE]`.
    pub tail: Span,
    /// Requests in service at once; the others wait, first come first served. Unlimited when absent.
    pub slots: Option<NonZeroU32>,
    /// Shares of the generating requests that are refused at once, without a slot.
    pub errors: Vec<ErrorShare>,
}

/// So large a share of the requests is answered with this status.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorShare {
    /// 400 to 599.
    pub status: u16,
    /// 0 to 1.
    pub share: f64,
}

/// A configuration that cannot be served.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// An error's share is not `STATUS:SHARE`.
    #[error("{0:?} is no share of errors; write STATUS:SHARE such as 429:0.01")]
    NotAShare(String),
    /// An error's status is none.
    #[error("{0} is no status of an error; they go from 400 to 599")]
    Status(u16),
    /// The share of hostile answers is none.
    #[error("{0} is no share of the requests; it lies in 0 to 1")]
    FaultShare(f64),
    /// The shares of errors do not fit in the whole.
    #[error("the shares of errors add up to {0}; they must lie in 0 to 1 together")]
    Shares(f64),
    /// The cache cannot hold one request of the longest context.
    #[error(
        "the cache holds {tokens} tokens, fewer than the longest context of {context}; give more blocks \
        or a shorter context"
    )]
    Cache {
        /// Tokens that fit.
        tokens: u64,
        /// Tokens of the longest context.
        context: u64,
    },
    /// A step cannot hold one request with its guessed tokens.
    #[error("a step of {0} tokens cannot hold a token and the ones guessed beside it")]
    Speculative(u32),
}

impl ServerConfig {
    /// A server at `listen` that answers in `mode`.
    #[must_use]
    pub fn new(listen: Target, mode: Mode) -> Self {
        Self {
            listen,
            mode,
            model: "mock".to_owned(),
            limits: Limits { body: 64 << 20, ..Limits::default() },
            connections_max: 65_536,
            close_after: None,
            anchor: Anchor::default(),
        }
    }
}

impl Default for InstantConfig {
    /// One token.
    fn default() -> Self {
        Self { tokens: NonZeroU32::MIN }
    }
}

impl Default for TimedConfig {
    /// 64 tokens, the first after 50 ms and the others every 10 ms, for any number of requests at once.
    fn default() -> Self {
        Self {
            seed: 0,
            ttft: SpanDistribution::fixed(Span::from_millis(50)),
            tpot: SpanDistribution::fixed(Span::from_millis(10)),
            tokens: CountDistribution::fixed(64),
            saying: Saying::default(),
            tokens_per_event: NonZeroU32::MIN,
            role_first: true,
            tail: Span::ZERO,
            slots: None,
            errors: Vec::new(),
        }
    }
}

impl TimedConfig {
    /// Whether it can be served.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if let Some(wrong) = self.errors.iter().find(|e| !(400..600).contains(&e.status)) {
            return Err(ConfigError::Status(wrong.status));
        }
        let sum: f64 = self.errors.iter().map(|e| e.share).sum();
        let each = self.errors.iter().all(|e| (0.0..=1.0).contains(&e.share));
        // A little above one is a sum of rounded shares.
        if each && sum < 1.0 + 1e-9 { Ok(()) } else { Err(ConfigError::Shares(sum)) }
    }

    /// The error whose share `unit`, uniform in 0 to 1, falls into.
    pub(crate) fn error_at(&self, unit: f64) -> Option<u16> {
        let mut upto = 0.0;
        self.errors.iter().find_map(|error| {
            upto += error.share;
            (unit < upto).then_some(error.status)
        })
    }
}

impl FromStr for ErrorShare {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let parse = || {
            let (status, share) = text.split_once(':')?;
            Some(Self { status: status.trim().parse().ok()?, share: share.trim().parse().ok()? })
        };
        parse().ok_or_else(|| ConfigError::NotAShare(text.to_owned()))
    }
}

impl fmt::Display for ErrorShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.status, self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(errors: &[&str]) -> Result<(), ConfigError> {
        let errors = errors.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        TimedConfig { errors, ..TimedConfig::default() }.check()
    }

    #[test]
    fn shares_of_errors_are_statuses_that_fit_in_the_whole() {
        assert_eq!(check(&["429:0.25", "500:0.75"]), Ok(()));
        assert_eq!(check(&["429:0.5", "500:0.75"]), Err(ConfigError::Shares(1.25)));
        assert!(matches!(check(&["500:NaN"]), Err(ConfigError::Shares(_))));
        assert_eq!(check(&["200:0.1"]), Err(ConfigError::Status(200)));
        assert_eq!(check(&["500"]), Err(ConfigError::NotAShare("500".into())));
    }
}
