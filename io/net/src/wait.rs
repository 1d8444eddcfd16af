//! How a park spends the time until its deadline: the user's choice, printed in every report.

use std::fmt;
use std::str::FromStr;

use takt_time::Span;

/// How [`crate::MioHost`] waits. Written `park`, `guard`, `guard:500us` or `spin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// Sleeps on a timer until the deadline: least CPU, as late as the kernel wakes the thread.
    Park,
    /// Sleeps until shortly before the deadline, then polls. The head start adapts to how late the
    /// kernel was seen to wake this thread, but is never more than `cap`.
    Guard {
        /// The longest head start. A sleep that would be shorter than that, or than 100 us, is not slept either, so a
        /// send may cost twice as much in CPU time.
        cap: Span,
    },
    /// Never sleeps. Costs a core and is the most exact.
    Spin,
}

/// A wait mode that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown wait mode `{given}`: did you mean `{nearest}`? (park, guard, guard:TIME up to 1s, spin)"
)]
pub struct WaitModeError {
    /// What was asked for.
    pub given: String,
    /// The closest name that exists.
    pub nearest: &'static str,
}

impl WaitMode {
    /// The cap of a guard that names none.
    pub const GUARD_CAP: Span = Span::from_micros(300);
}

impl Default for WaitMode {
    fn default() -> Self {
        Self::Guard { cap: Self::GUARD_CAP }
    }
}

impl FromStr for WaitMode {
    type Err = WaitModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "park" => return Ok(Self::Park),
            "guard" => return Ok(Self::default()),
            "spin" => return Ok(Self::Spin),
            _ => {}
        }
        let cap = text.strip_prefix("guard:").and_then(|cap| cap.parse::<Span>().ok());
        if let Some(cap) = cap.filter(|cap| (MIN_CAP..=MAX_CAP).contains(cap)) {
            return Ok(Self::Guard { cap });
        }
        let name = text.split(':').next().unwrap_or_default();
        let nearest = ["park", "guard", "spin"]
            .into_iter()
            .min_by_key(|known| strsim::levenshtein(known, name))
            .unwrap_or("guard");
        Err(WaitModeError { given: text.to_owned(), nearest })
    }
}

impl fmt::Display for WaitMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Park => f.write_str("park"),
            Self::Guard { cap } if *cap == Self::GUARD_CAP => f.write_str("guard"),
            Self::Guard { cap } => write!(f, "guard:{}", cap.exact()),
            Self::Spin => f.write_str("spin"),
        }
    }
}

/// A shorter head start is none.
const MIN_CAP: Span = Span::from_micros(1);
/// A longer one is `spin` under another name.
const MAX_CAP: Span = Span::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_reads_what_it_prints() {
        for text in ["park", "guard", "guard:500us", "guard:2ms", "spin"] {
            assert_eq!(text.parse::<WaitMode>().unwrap().to_string(), text);
        }
        assert_eq!("guard".parse(), Ok(WaitMode::default()));
    }

    #[test]
    fn an_unknown_mode_names_the_nearest() {
        for (given, nearest) in [
            ("prak", "park"),
            ("guards", "guard"),
            ("guard:0us", "guard"),
            ("guard:2s", "guard"),
            ("pin", "spin"),
        ] {
            let error = given.parse::<WaitMode>().unwrap_err();
            assert_eq!((error.given.as_str(), error.nearest), (given, nearest));
        }
    }
}
