//! The receiving side of a simulated run: every record as it came, the fold of the report, the journal.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use takt_mock::{Event, Truth, TruthSink};
use takt_record::{
    Block, BlockSink, Fold, JournalWriter, Record, RequestId, SessionPlan, fold_block,
};
use takt_report::RunFold;
use takt_time::Nanos;

use super::kept::Kept;
use super::random::Chance;

/// What became of the records.
pub(super) struct Received {
    /// All of them in order, their words left out.
    pub records: Vec<Kept>,
    /// The report's fold of them.
    pub fold: RunFold,
    /// The journal of them.
    pub journal: JournalWriter<Vec<u8>>,
    /// Numbers of blocks that came out of line.
    pub out_of_line: Vec<u64>,
    blocks: u64,
}

impl Received {
    /// Nothing yet.
    #[must_use]
    pub(super) fn new(plan: &SessionPlan) -> Self {
        Self {
            records: Vec::new(),
            fold: RunFold::new(plan.clone()),
            journal: JournalWriter::begin(Vec::new(), plan).expect("memory takes all"),
            out_of_line: Vec::new(),
            blocks: 0,
        }
    }
}

impl Fold for Received {
    fn fold(&mut self, record: &Record<'_>) {
        self.fold.fold(record);
        self.records.push(record.into());
    }
}

/// A sink that has no room at times.
pub(super) struct Fussy {
    /// Where blocks go.
    pub into: Rc<RefCell<Received>>,
    /// How often out of a thousand times there is no room.
    pub refuses: u32,
    /// Where that comes from.
    pub chance: Chance,
}

impl BlockSink for Fussy {
    fn offer(&mut self, block: Block) -> Result<(), Block> {
        if self.chance.per_mille(self.refuses) {
            return Err(block);
        }
        let into = &mut *self.into.borrow_mut();
        if block.seq() != into.blocks {
            into.out_of_line.push(block.seq());
        }
        into.blocks += 1;
        into.journal.append(&block, takt_record::Stretch::Whole).expect("memory takes all");
        fold_block(&block, into).expect("a block that the writer made can be read");
        Ok(())
    }

    fn spare(&mut self) -> Option<Block> {
        None
    }
}

/// What a server says of one request.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its id; `None` when it had none that could be read.
    pub id: Option<RequestId>,
    /// See [`Truth`].
    pub status: u16,
    /// See [`Truth`].
    pub streamed: bool,
    /// See [`Truth`].
    pub complete: bool,
    /// See [`Truth`].
    pub arrived: Nanos,
    /// See [`Truth`].
    pub started: Option<Nanos>,
    /// See [`Truth`].
    pub ended: Option<Nanos>,
    /// See [`Truth`].
    pub first_planned: Option<Nanos>,
    /// See [`Truth`].
    pub last_planned: Option<Nanos>,
    /// See [`Truth`].
    pub tokens: u32,
    /// See [`Truth`].
    pub prompt_tokens: u64,
    /// See [`Truth`].
    pub events: Vec<Event>,
}

/// All that servers say, in the order in which they say it.
#[derive(Clone, Default)]
pub(super) struct Witness(Arc<Mutex<Vec<Told>>>);

impl Witness {
    /// Takes out what was said so far.
    #[must_use]
    pub(super) fn take(&self) -> Vec<Told> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics while telling"))
    }
}

impl TruthSink for Witness {
    fn truth(&mut self, line: &Truth<'_>) {
        self.0.lock().expect("nobody panics while telling").push(Told {
            id: line.id.and_then(RequestId::from_hex),
            status: line.status,
            streamed: line.streamed,
            complete: line.complete,
            arrived: line.arrived,
            started: line.started,
            ended: line.ended,
            first_planned: line.first_planned,
            last_planned: line.last_planned,
            tokens: line.tokens,
            prompt_tokens: line.prompt_tokens,
            events: line.events.to_vec(),
        });
    }
}
