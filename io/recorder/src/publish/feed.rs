//! Blocks to one aggregator in another process, all of them or none.
//!
//! ```text
//! run:         bind ── plan ──>               ── blocks, numbered ──>   ── end ──>          (waits, bounded)
//! aggregator:        connect   <── ready ──   fold, fold, fold …               <── done ──
//! ```
//!
//! The run begins only after `ready`, so nothing is published before the aggregator listens. A block that cannot
//! be queued, because the aggregator is gone or far behind, ends the feed: figures with a hole are worth
//! nothing, and the run has its own. The first byte of a message says what it is.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use takt_record::{Block, SessionPlan};
use takt_time::{Nanos, Span};
use zmq::{Context, DONTWAIT, Message, POLLIN, Socket, SocketType};

use crate::outlet::Outlet;

/// The run's end.
pub struct Feed {
    socket: Socket,
    watch: FeedWatch,
    number: u64,
    message: Vec<u8>,
    patience: Span,
}

/// How a feed stands, for whoever started it.
#[derive(Clone, Debug)]
pub struct FeedWatch(Arc<Mutex<FeedState>>);

/// How a feed stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedState {
    /// Blocks are taken.
    Open,
    /// It was given up, and why. The aggregator's figures are worth nothing.
    Lost(&'static str),
    /// The aggregator has folded every block and written what it had to.
    Done,
}

/// The aggregator's end.
pub struct FeedReader {
    socket: Socket,
    number: u64,
    message: Message,
    block: Block,
}

/// What an aggregator is told.
#[derive(Debug)]
pub enum Fed<'a> {
    /// The plan of the session: to be answered with [`FeedReader::ready`].
    Plan(Box<SessionPlan>),
    /// The next block.
    Block(&'a Block),
    /// There are no more: to be answered with [`FeedReader::done`].
    End,
}

/// A feed cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// libzmq says no.
    #[error("{0}")]
    Zmq(#[from] zmq::Error),
    /// What came is not what a run of this version sends.
    #[error("not the feed of a run of this version: {0}")]
    NotAFeed(&'static str),
    /// Something was lost on the way.
    #[error("{0} messages are missing")]
    Gap(u64),
}

impl Feed {
    /// Binds `address`. At the end it waits for the aggregator at most for `patience`.
    ///
    /// # Errors
    /// The address is taken or cannot be had.
    pub fn bind(context: &Context, address: &str, patience: Span) -> Result<Self, FeedError> {
        let socket = context.socket(SocketType::PAIR)?;
        socket.set_sndhwm(BLOCKS_MAX)?;
        socket.set_linger(0)?;
        socket.bind(address)?;
        let watch = FeedWatch(Arc::new(Mutex::new(FeedState::Open)));
        Ok(Self { socket, watch, number: 0, message: Vec::new(), patience })
    }

    /// How it stands, from now on.
    #[must_use]
    pub fn watch(&self) -> FeedWatch {
        self.watch.clone()
    }

    /// Sends the plan to an aggregator, as soon as there is one, and waits until it is ready: at most for
    /// `patience`, and while `go_on` says so. Says whether it is.
    ///
    /// # Errors
    /// When the socket cannot be used.
    pub fn greet(
        &mut self,
        plan: &SessionPlan,
        patience: Span,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<bool, FeedError> {
        let until = Instant::now() + Duration::from_nanos(patience.as_nanos());
        let mut greeting = vec![PLAN];
        // A plan is strings, numbers and maps with string keys: it can always be written.
        greeting.extend(serde_json::to_vec(plan).unwrap_or_default());
        let mut sent = false;
        while go_on() && Instant::now() < until {
            if !sent {
                sent = self.socket.send(&greeting, DONTWAIT).is_ok();
            }
            if self.socket.poll(POLLIN, LOOK_MS)? > 0 {
                let answer = self.socket.recv_bytes(DONTWAIT)?;
                return if answer == [READY] {
                    Ok(true)
                } else {
                    Err(FeedError::NotAFeed("an answer that no aggregator gives"))
                };
            }
        }
        Ok(false)
    }

    /// Says whether the message could be queued; one that could not ends the feed.
    fn send(&mut self) -> bool {
        let sent = self.socket.send(&self.message, DONTWAIT).is_ok();
        if !sent {
            self.watch.set(FeedState::Lost("it is gone, or does not keep up"));
        }
        sent
    }

    fn begin(&mut self, kind: u8) {
        self.message.clear();
        self.message.push(kind);
        self.message.extend_from_slice(&self.number.to_le_bytes());
        self.number += 1;
    }
}

impl Outlet for Feed {
    fn block(&mut self, block: &Block) {
        if self.watch.state() != FeedState::Open {
            return;
        }
        self.begin(BLOCK);
        self.message.extend_from_slice(&block.base().as_nanos().to_le_bytes());
        self.message.extend_from_slice(&block.seq().to_le_bytes());
        self.message.extend_from_slice(&block.records().to_le_bytes());
        self.message.extend_from_slice(block.bytes());
        self.send();
    }

    fn end(&mut self) {
        if self.watch.state() != FeedState::Open {
            return;
        }
        self.begin(END);
        if !self.send() {
            return;
        }
        let patience = i64::try_from(self.patience.as_nanos() / 1_000_000).unwrap_or(i64::MAX);
        let answered = self.socket.poll(POLLIN, patience).is_ok_and(|ready| ready > 0);
        let answer = if answered { self.socket.recv_bytes(DONTWAIT).ok() } else { None };
        let done = answer.is_some_and(|answer| answer == [DONE]);
        self.watch.set(if done {
            FeedState::Done
        } else {
            FeedState::Lost("it did not say that it was done")
        });
    }
}

impl FeedWatch {
    /// How the feed stands.
    #[must_use]
    pub fn state(&self) -> FeedState {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, state: FeedState) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl FeedReader {
    /// Connects to the feed at `address`, which need not be there yet.
    ///
    /// # Errors
    /// The address is none.
    pub fn connect(context: &Context, address: &str) -> Result<Self, FeedError> {
        let socket = context.socket(SocketType::PAIR)?;
        socket.set_rcvhwm(BLOCKS_MAX)?;
        socket.set_linger(ANSWER_LINGER_MS)?;
        socket.set_reconnect_ivl(RECONNECT_MS)?;
        socket.connect(address)?;
        Ok(Self { socket, number: 0, message: Message::new(), block: Block::with_capacity(0) })
    }

    /// What comes next; `None` when nothing came for `patience`.
    ///
    /// # Errors
    /// [`FeedError`]; the feed is of no use after it.
    pub fn next(&mut self, patience: Span) -> Result<Option<Fed<'_>>, FeedError> {
        let wait = i64::try_from(patience.as_nanos() / 1_000_000).unwrap_or(i64::MAX);
        if self.socket.poll(POLLIN, wait)? == 0 {
            return Ok(None);
        }
        match self.socket.recv(&mut self.message, DONTWAIT) {
            Err(zmq::Error::EAGAIN) => return Ok(None),
            other => other?,
        }
        let cut = FeedError::NotAFeed("a message that is cut short");
        let Some((&kind, rest)) = self.message.split_first() else { return Err(cut) };
        if kind == PLAN {
            let plan = serde_json::from_slice(rest)
                .map_err(|_| FeedError::NotAFeed("a plan that cannot be read"))?;
            return Ok(Some(Fed::Plan(Box::new(plan))));
        }
        let Some((number, rest)) = rest.split_first_chunk() else { return Err(cut) };
        let number = u64::from_le_bytes(*number);
        if number != self.number {
            return Err(FeedError::Gap(number.wrapping_sub(self.number)));
        }
        self.number += 1;
        match kind {
            END => Ok(Some(Fed::End)),
            BLOCK => {
                let Some((base, rest)) = rest.split_first_chunk() else { return Err(cut) };
                let Some((seq, rest)) = rest.split_first_chunk() else { return Err(cut) };
                let Some((records, rest)) = rest.split_first_chunk() else { return Err(cut) };
                self.block.fill(
                    Nanos::from_nanos(u64::from_le_bytes(*base)),
                    u32::from_le_bytes(*records),
                    u64::from_le_bytes(*seq),
                    rest,
                );
                Ok(Some(Fed::Block(&self.block)))
            }
            _ => Err(FeedError::NotAFeed("a message of no known kind")),
        }
    }

    /// Answers the plan: the run may begin.
    ///
    /// # Errors
    /// When the run has gone.
    pub fn ready(&self) -> Result<(), FeedError> {
        Ok(self.socket.send(&[READY][..], DONTWAIT)?)
    }

    /// Answers the end: all is written.
    ///
    /// # Errors
    /// When the run has gone.
    pub fn done(&self) -> Result<(), FeedError> {
        Ok(self.socket.send(&[DONE][..], DONTWAIT)?)
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Feed({} messages, {:?})", self.number, self.watch.state())
    }
}

impl fmt::Debug for FeedReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FeedReader({} messages)", self.number)
    }
}

const PLAN: u8 = b'P';
const BLOCK: u8 = b'B';
const END: u8 = b'E';
const READY: u8 = b'R';
const DONE: u8 = b'D';

/// Blocks that wait for the aggregator before the feed is given up: 128 MiB, half a minute of a full reactor.
const BLOCKS_MAX: i32 = 4_096;
/// Between two looks for an aggregator.
const LOOK_MS: i64 = 20;
/// Between two tries of an aggregator that was started before its run.
const RECONNECT_MS: i32 = 50;
/// For the last word to leave.
const ANSWER_LINGER_MS: i32 = 1_000;
