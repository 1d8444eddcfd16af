//! Where the clock of a timed pattern runs.

use super::error::ConfigError;
use super::phase::Phase;
use super::reader::{Field, Table, word_of};

/// Who waits for the moments of an open loop's schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pacer {
    /// The reactor, with its own timers.
    #[default]
    Inline,
    /// A thread that does nothing else.
    Thread,
    /// A process that does nothing else, over ZMQ.
    Process,
}

impl Pacer {
    const WORDS: [(&'static str, Self); 3] =
        [("inline", Self::Inline), ("thread", Self::Thread), ("process", Self::Process)];

    pub(crate) fn word(self) -> &'static str {
        word_of(&Self::WORDS, self)
    }

    /// Reads `pacer` and `pacer_core` of the section `engine`.
    pub(super) fn read(
        engine: &Table<'_>,
        core: Option<usize>,
    ) -> Result<(Self, Option<usize>), ConfigError> {
        let field = engine.get("pacer");
        let pacer = field.as_ref().map_or(Ok(Self::Inline), |f| f.choice(&Self::WORDS, &[]))?;
        if let (Some(field), Self::Process, false) = (&field, pacer, cfg!(feature = "zmq")) {
            let says = "`process` needs ZMQ, and this takt was built without it (feature `zmq`)";
            return Err(field.error(says));
        }
        if pacer == Self::Inline {
            engine.refuse("pacer_core", "the reactor itself waits; `core` is where it runs")?;
        }
        let Some(field) = engine.get("pacer_core") else { return Ok((pacer, None)) };
        let own = field.count(0, u64::from(u32::MAX))? as usize;
        if core == Some(own) {
            return Err(field.error("is the core of the reactor, which must have it alone"));
        }
        Ok((pacer, Some(own)))
    }

    /// Refuses a clock outside the reactor for phases whose sends follow from completions.
    pub(super) fn suits(self, phases: &[Phase], pacer: &Field<'_>) -> Result<(), ConfigError> {
        let closed = phases.iter().find(|phase| !phase.load.is_timed());
        match closed {
            Some(phase) if self != Self::Inline => Err(pacer.error(format!(
                "`{}` has no effect on phase `{}`: pattern `{}` sends when the reactor sees a \
                 completion, which a clock outside cannot see; use `pacer: inline`",
                self.word(),
                phase.name,
                phase.load.pattern(),
            ))),
            _ => Ok(()),
        }
    }
}
