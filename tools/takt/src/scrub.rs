//! Secrets taken out of what servers say, before it is recorded.
//!
//! Some servers repeat the key that they refuse in the text of the error. Records hold such texts, and
//! they go into the journal, the report, the console and to subscribers. So the recorder's thread searches
//! each block before anyone else sees it: one pass over its bytes, and only the rare block in which
//! something is found is taken apart. The reactor pays nothing for it.

use std::fmt;

use memchr::memmem::Finder;
use takt_record::{Block, BlockWriter, Record, Text};
use takt_recorder::Clean;

use crate::config::{self, Secret};

/// Lets no secret pass.
pub(crate) struct Scrubber {
    secrets: Vec<Secret>,
    /// The beginnings of the secrets: a message may be cut in the middle of one.
    finders: Vec<Finder<'static>>,
}

impl Scrubber {
    /// Takes the secrets of a configuration out.
    pub(crate) fn new(secrets: &[Secret]) -> Self {
        let finders = secrets.iter().map(|secret| Finder::new(secret.head()).into_owned());
        Self { finders: finders.collect(), secrets: secrets.to_vec() }
    }

    fn suspects(&self, block: &Block) -> bool {
        self.finders.iter().any(|finder| finder.find(block.bytes()).is_some())
    }

    fn rewritten(&self, block: &Block) -> Block {
        let room = Block::with_capacity(block.capacity().saturating_mul(GROWTH));
        let mut writer = BlockWriter::new(room);
        for record in block.iter().map_while(Result::ok) {
            let mut text;
            let record = match record {
                Record::Error { at, key, failure, message } => {
                    text = message.to_owned();
                    config::clear(&mut text, &self.secrets);
                    Record::Error { at, key, failure, message: &text }
                }
                Record::Text(kept) => {
                    text = kept.text.to_owned();
                    config::clear(&mut text, &self.secrets);
                    Record::Text(Text { text: &text, ..kept })
                }
                other => other,
            };
            // The room is that of the block with every text at its longest.
            let pushed = writer.push(&record);
            debug_assert!(pushed.is_ok(), "{pushed:?}");
        }
        let mut clean = writer.take(Block::with_capacity(0));
        clean.set_seq(block.seq());
        clean
    }
}

impl Clean for Scrubber {
    fn clean(&mut self, block: &Block) -> Option<Block> {
        self.suspects(block).then(|| self.rewritten(block))
    }
}

/// A finder's own `Debug` would show what it looks for.
impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scrubber({} secrets)", self.secrets.len())
    }
}

/// The mark has ten characters where the shortest secret had four, and a block has heads of records, too.
const GROWTH: usize = 4;

#[cfg(test)]
mod tests {
    use takt_record::{Blame, ErrorKind, Failure, RequestKey, Stage};
    use takt_time::Nanos;

    use super::*;

    /// The messages that come out when these go in.
    fn passed(secrets: &[&str], messages: &[&str]) -> Vec<String> {
        let secrets: Vec<_> = secrets.iter().map(|secret| Secret::new(*secret)).collect();
        let mut scrubber = Scrubber::new(&secrets);
        let mut writer = BlockWriter::new(Block::with_capacity(4096));
        for message in messages {
            let failure = Failure {
                kind: ErrorKind::HttpStatus,
                blame: Blame::Server,
                stage: Stage::Head,
                status: Some(401),
            };
            let key = RequestKey::default();
            writer.push(&Record::Error { at: Nanos::ZERO, key, failure, message }).unwrap();
        }
        let mut block = writer.take(Block::with_capacity(0));
        block.set_seq(7);
        let block = scrubber.clean(&block).unwrap_or(block);
        assert_eq!(block.seq(), 7);
        block
            .iter()
            .map(|record| match record {
                Ok(Record::Error { message, .. }) => message.to_owned(),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn k3_a_secret_that_a_server_repeats_is_not_recorded() {
        let secrets = ["Bearer sk-0123456789", "0123456789abcdef", "sk-0123456789"];
        for (message, expected) in [
            ("all is well, sk-", "all is well, sk-"),
            ("key sk-0123456789, twice sk-0123456789!", "key <redacted>, twice <redacted>!"),
            ("Bearer sk-0123456789", "<redacted>"),
            ("cut off: sk-01234", "cut off: <redacted>"),
            ("0123456789abcdef", "<redacted>"),
        ] {
            assert_eq!(passed(&secrets, &[message, "next"]), [expected, "next"]);
        }
    }
}
