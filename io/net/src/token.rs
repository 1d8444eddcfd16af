//! What the kernel hands back with an event: which socket, and which use of its slot.

use mio::Token;
use takt_engine::StreamId;

use crate::slots::LAST_GENERATION;

/// Whom an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Timer,
    Waker,
    /// A descriptor of somebody else, by its place in the host's list.
    Foreign(u32),
    Socket(StreamId),
}

impl Source {
    pub(crate) fn token(self) -> Token {
        let (index, generation) = match self {
            Self::Timer => (0, LAST_GENERATION),
            Self::Waker => (1, LAST_GENERATION),
            Self::Foreign(place) => (place + OWN, LAST_GENERATION),
            Self::Socket(id) => (id.index() as u32, id.generation()),
        };
        Token((generation as usize) << 32 | index as usize)
    }

    pub(crate) fn of(token: Token) -> Self {
        let (index, generation) = (token.0 as u32, (token.0 >> 32) as u32);
        match (index, generation) {
            (0, LAST_GENERATION) => Self::Timer,
            (1, LAST_GENERATION) => Self::Waker,
            (place, LAST_GENERATION) => Self::Foreign(place - OWN),
            _ => Self::Socket(StreamId::new(index, generation)),
        }
    }
}

/// Indexes taken by timer and waker.
const OWN: u32 = 2;

const _: () = assert!(usize::BITS == 64, "a token holds a 32-bit index and a 32-bit generation");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_gives_back_its_source() {
        for source in [
            Source::Timer,
            Source::Waker,
            Source::Foreign(0),
            Source::Foreign(7),
            Source::Socket(StreamId::new(0, 0)),
            Source::Socket(StreamId::new(1, LAST_GENERATION - 1)),
            Source::Socket(StreamId::new(u32::MAX, 3)),
        ] {
            assert_eq!(Source::of(source.token()), source);
        }
    }
}
