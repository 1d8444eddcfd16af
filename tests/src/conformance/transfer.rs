//! A stream of bytes that is written and read as events allow, and checked byte for byte.

use std::io::IoSlice;

use takt_engine::{Host, StreamId, Then};

/// One direction of the big transfer.
pub(super) struct Transfer {
    pub(super) from: StreamId,
    pub(super) to: StreamId,
    salt: u64,
    sent: usize,
    pub(super) got: usize,
    buf: Vec<u8>,
}

impl Transfer {
    pub(super) fn new(from: StreamId, to: StreamId, salt: u64) -> Self {
        Self { from, to, salt, sent: 0, got: 0, buf: vec![0; 50_000] }
    }

    /// The byte at a place of the stream; no short period.
    pub(super) fn byte(&self, place: usize) -> u8 {
        ((place as u64 * 2_654_435_761 + self.salt) >> 13) as u8
    }

    pub(super) fn write(&mut self, host: &mut impl Host) {
        while self.sent < BIG {
            let piece: Vec<u8> =
                (self.sent..BIG.min(self.sent + 40_000)).map(|at| self.byte(at)).collect();
            let taken = host.write(self.from, &[IoSlice::new(&piece)]).expect("write");
            self.sent += taken;
            if taken < piece.len() {
                return;
            }
        }
    }

    pub(super) fn read(&mut self, host: &mut impl Host) {
        loop {
            let outcome = host.read(self.to, &mut self.buf).expect("read");
            for (at, byte) in self.buf[..outcome.bytes].iter().enumerate() {
                assert_eq!(*byte, self.byte(self.got + at), "byte {}", self.got + at);
            }
            self.got += outcome.bytes;
            match outcome.then {
                Then::More => {}
                Then::Drained => return,
                Then::End => panic!("an end after {} bytes", self.got),
            }
        }
    }
}

/// Bytes each way of the big transfer.
pub(super) const BIG: usize = 4 << 20;
