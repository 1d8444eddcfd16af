//! Connections opened before anything is sent, a few at a time, so that the first requests find them.

use super::WhenWarm;

/// What became of the warm connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warmed {
    /// They stand.
    pub stand: usize,
    /// They could not be made; after the first of these no more are tried.
    pub failed: usize,
    /// Why the first of them could not.
    pub error: Option<Box<str>>,
}

/// The warm-up of connections.
#[derive(Debug)]
pub(super) struct Warm {
    /// Still to be opened.
    left: usize,
    /// Opened so far.
    opened: usize,
    /// Those of them that are still on their way.
    under_way: usize,
    result: Warmed,
    curious: Vec<WhenWarm>,
}

impl Warm {
    pub(super) fn new(wanted: usize) -> Self {
        let (result, curious) = (Warmed::default(), Vec::new());
        Self { left: wanted, opened: 0, under_way: 0, result, curious }
    }

    /// Whether one more is to be opened now.
    pub(super) fn wants(&self) -> bool {
        self.left > 0 && self.under_way < AT_A_TIME
    }

    /// Opened so far.
    pub(super) fn opened(&self) -> usize {
        self.opened
    }

    /// One more is being opened.
    pub(super) fn opening(&mut self) {
        self.left -= 1;
        self.opened += 1;
        self.under_way += 1;
    }

    /// There is no room for more: the rest need not be.
    pub(super) fn enough(&mut self) {
        self.left = 0;
        self.tell_all();
    }

    /// One stands.
    pub(super) fn stands(&mut self) {
        self.under_way -= 1;
        self.result.stand += 1;
        self.tell_all();
    }

    /// One could not be made: the rest are not tried.
    pub(super) fn failed(&mut self, error: &str) {
        self.under_way -= 1;
        self.result.failed += 1 + std::mem::take(&mut self.left);
        self.result.error.get_or_insert_with(|| error.into());
        self.tell_all();
    }

    /// Tells `when` as soon as all stand or have failed.
    pub(super) fn tell(&mut self, when: WhenWarm) {
        self.curious.push(when);
        self.tell_all();
    }

    fn tell_all(&mut self) {
        if self.left == 0 && self.under_way == 0 {
            for when in self.curious.drain(..) {
                (when.0)(self.result.clone());
            }
        }
    }
}

/// So few that no listener's queue overflows and no lost handshake costs a second.
const AT_A_TIME: usize = 32;
