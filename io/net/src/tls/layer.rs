//! TLS between a socket and its owner.
//!
//! ```text
//!   socket --recv--> incoming (shared) --decrypt--> the owner's buffer; what finds no room waits here
//!   socket <--send-- outgoing (shared) <--encrypt-- the owner's bytes; what the socket does not take waits here
//! ```
//!
//! The two big buffers belong to the host and serve all connections; a connection keeps only the start of
//! a record that has not come in full, plain bytes that found no room in a small buffer, and what the socket
//! did not take: at most what one write has encrypted, 64 KiB. So `written` can be early by that much.

use std::io::{self, ErrorKind, IoSlice};

use rustls::Error;
use takt_engine::{StreamId, Then};

use super::session::{RECORD, Session};
use super::words;

/// The TLS of one connection.
#[derive(Debug)]
pub(crate) struct Layer {
    session: Session,
    /// For whom it is, in words; empty for a server's side.
    name: Box<str>,
    /// The start of a record.
    partial: Vec<u8>,
    /// Plain bytes that found no room, and how far they have been read since.
    plain: Vec<u8>,
    plain_at: usize,
    /// Ciphertext that the socket did not take, and how far that has been sent since.
    unsent: Vec<u8>,
    unsent_at: usize,
    /// The peer has said that nothing more comes.
    ended: bool,
    /// The listener that its owner will hear of it by, when it was accepted.
    pub(crate) accepted_by: Option<StreamId>,
    /// A step of the handshake is due.
    pub(crate) queued: bool,
    fault: Option<Box<str>>,
}

/// What all connections of a host share.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    gathered: Vec<u8>,
}

/// The socket below: what it says besides bytes is `ErrorKind::WouldBlock`.
pub(crate) trait Wire {
    fn recv(&mut self, buf: &mut [u8]) -> io::Result<usize>;
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize>;
}

/// How a step of the handshake ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shaken {
    /// More must come first.
    Waits,
    Done {
        resumed: bool,
        /// There may be something to read of which no event will tell.
        readable: bool,
    },
}

impl Layer {
    pub(crate) fn new(session: Session, name: &str, accepted_by: Option<StreamId>) -> Self {
        Self {
            session,
            name: name.into(),
            partial: Vec::new(),
            plain: Vec::new(),
            plain_at: 0,
            unsent: Vec::new(),
            unsent_at: 0,
            ended: false,
            accepted_by,
            queued: false,
            fault: None,
        }
    }

    /// What went wrong with it, if something did.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Whether the socket owes it room for ciphertext.
    pub(crate) fn owes(&self) -> bool {
        self.unsent_at < self.unsent.len()
    }

    /// Goes on with the handshake as far as what has come allows. `end_is_near`: as for [`Layer::read`].
    pub(crate) fn shake(
        &mut self,
        wire: &mut impl Wire,
        end_is_near: bool,
        all: &mut Buffers,
    ) -> io::Result<Shaken> {
        all.prepare();
        self.flush(wire)?;
        // A client speaks first.
        let have = self.take_partial(all);
        self.process(have, &mut [], wire, all)?;
        let mut full = false;
        while self.session.is_handshaking() {
            let have = self.take_partial(all);
            let room = all.incoming.len() - have;
            let bytes = match wire.recv(&mut all.incoming[have..]) {
                Ok(0) => {
                    let fault = "the peer closed the connection during the TLS handshake: is it a TLS port?";
                    return Err(self.fail(fault));
                }
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.keep_partial(0..have, all);
                    return Ok(Shaken::Waits);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    self.keep_partial(0..have, all);
                    continue;
                }
                Err(error) => {
                    self.fault = Some(format!("the TLS handshake was cut off: {error}").into());
                    return Err(error);
                }
            };
            self.process(have + bytes, &mut [], wire, all)?;
            full = bytes == room;
            if !full && !end_is_near && self.session.is_handshaking() {
                return Ok(Shaken::Waits);
            }
        }
        let readable = full || self.ended || !self.plain.is_empty() || !self.partial.is_empty();
        Ok(Shaken::Done { resumed: self.session.is_resumed(), readable })
    }

    /// Reads plain bytes, from one read of the socket at the most. `end_is_near`: the peer has ended its side
    /// of the connection, so that no event says when there is more.
    pub(crate) fn read(
        &mut self,
        wire: &mut impl Wire,
        buf: &mut [u8],
        end_is_near: bool,
        all: &mut Buffers,
    ) -> io::Result<(usize, Then)> {
        let had = self.take_plain(buf);
        if had == buf.len() && had > 0 {
            return Ok((had, Then::More));
        }
        if self.ended {
            return Ok((had, if had > 0 { Then::More } else { Then::End }));
        }
        if self.fault.is_some() {
            return if had > 0 {
                Ok((had, Then::More))
            } else {
                Err(ErrorKind::InvalidData.into())
            };
        }
        all.prepare();
        let have = self.take_partial(all);
        // No more than finds room, as a rule; a record in any case.
        let most = (have + (buf.len() - had).max(RECORD)).min(all.incoming.len());
        let bytes = match wire.recv(&mut all.incoming[have..most]) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.keep_partial(0..have, all);
                return match error.kind() {
                    ErrorKind::WouldBlock => Ok((had, Then::Drained)),
                    ErrorKind::Interrupted => Ok((had, Then::More)),
                    _ if had > 0 => Ok((had, Then::More)),
                    _ => Err(error),
                };
            }
        };
        if bytes == 0 {
            // The connection's end without TLS's own: somebody may have cut off what was to come.
            return if had > 0 {
                Ok((had, Then::More))
            } else {
                Err(ErrorKind::UnexpectedEof.into())
            };
        }
        let processed = self.process(have + bytes, &mut buf[had..], wire, all);
        let got = had + *processed.as_ref().unwrap_or(&0);
        match processed {
            Err(error) if got == 0 => Err(error),
            Err(_) => Ok((got, Then::More)),
            // What is wrong is told by the next read.
            Ok(_) if self.fault.is_some() || self.plain_at < self.plain.len() => {
                Ok((got, Then::More))
            }
            Ok(_) if self.ended => Ok((got, if got > 0 { Then::More } else { Then::End })),
            Ok(_) if have + bytes == most || end_is_near => Ok((got, Then::More)),
            Ok(_) => Ok((got, Then::Drained)),
        }
    }

    /// Writes plain bytes; gives how many were taken. Fewer than there are means that the socket is full.
    pub(crate) fn write(
        &mut self,
        wire: &mut impl Wire,
        bufs: &[IoSlice<'_>],
        all: &mut Buffers,
    ) -> io::Result<usize> {
        if self.session.is_handshaking() {
            return Err(ErrorKind::NotConnected.into());
        }
        if self.fault.is_some() {
            return Err(ErrorKind::InvalidData.into());
        }
        if !self.flush(wire)? {
            return Ok(0);
        }
        if let [one] = bufs {
            return self.write_all(wire, one, all);
        }
        // Small slices share a record.
        let mut gathered = std::mem::take(&mut all.gathered);
        gathered.clear();
        bufs.iter().for_each(|slice| gathered.extend_from_slice(slice));
        let written = self.write_all(wire, &gathered, all);
        all.gathered = gathered;
        all.gathered.shrink_to(KEPT);
        written
    }

    /// Sends what the socket did not take before. Whether it has taken all of it now.
    pub(crate) fn flush(&mut self, wire: &mut impl Wire) -> io::Result<bool> {
        while self.owes() {
            match wire.send(&self.unsent[self.unsent_at..]) {
                Ok(bytes) => self.unsent_at += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.unsent.clear();
        self.unsent.shrink_to(0);
        self.unsent_at = 0;
        Ok(true)
    }

    /// Says that nothing more comes. Whether the socket has taken all there is to send.
    pub(crate) fn say_goodbye(&mut self, wire: &mut impl Wire) -> io::Result<bool> {
        if !self.session.is_handshaking() && self.fault.is_none() {
            // A session that cannot say it any more is at its end already.
            drop(self.session.say_goodbye(&mut self.partial, &mut self.unsent));
        }
        self.flush(wire)
    }

    fn write_all(
        &mut self,
        wire: &mut impl Wire,
        bytes: &[u8],
        all: &mut Buffers,
    ) -> io::Result<usize> {
        let mut written = 0;
        for piece in bytes.chunks(PIECE) {
            all.outgoing.clear();
            if let Err(error) = self.session.encrypt(piece, &mut self.partial, &mut all.outgoing) {
                return Err(self.broken(&error));
            }
            let taken = self.hand_over(wire, &all.outgoing);
            match taken {
                Ok(all_taken) => {
                    written += piece.len();
                    if !all_taken {
                        break;
                    }
                }
                // What went before has been taken; the next write will say the same again.
                Err(_) if written > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }

    /// Sends ciphertext and keeps what the socket does not take. Whether it took all.
    fn hand_over(&mut self, wire: &mut impl Wire, bytes: &[u8]) -> io::Result<bool> {
        if self.owes() {
            self.unsent.extend_from_slice(bytes);
            return self.flush(wire);
        }
        let taken = match wire.send(bytes) {
            Ok(taken) => taken,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(error) => return Err(error),
        };
        if taken == bytes.len() {
            return Ok(true);
        }
        self.unsent.clear();
        self.unsent_at = 0;
        self.unsent.extend_from_slice(&bytes[taken..]);
        self.flush(wire)
    }

    /// Decrypts the first `bytes` of the incoming buffer into `buf`, keeps what is left of them, and sends what
    /// there is to say. Gives the plain bytes put into `buf`.
    fn process(
        &mut self,
        bytes: usize,
        buf: &mut [u8],
        wire: &mut impl Wire,
        all: &mut Buffers,
    ) -> io::Result<usize> {
        all.outgoing.clear();
        let (mut got, waiting) = (0, &mut self.plain);
        let processed = self.session.process(
            &mut all.incoming[..bytes],
            &mut all.outgoing,
            &mut |plain: &[u8]| {
                let fits = if waiting.is_empty() { plain.len().min(buf.len() - got) } else { 0 };
                buf[got..got + fits].copy_from_slice(&plain[..fits]);
                got += fits;
                waiting.extend_from_slice(&plain[fits..]);
            },
        );
        self.ended |= processed.ended;
        self.keep_partial(processed.used..bytes, all);
        let said =
            if all.outgoing.is_empty() { Ok(true) } else { self.hand_over(wire, &all.outgoing) };
        match processed.error {
            Some(error) if got == 0 => Err(self.broken(&error)),
            Some(error) => {
                self.broken(&error);
                Ok(got)
            }
            None => said.map(|_| got),
        }
    }

    fn take_plain(&mut self, buf: &mut [u8]) -> usize {
        let waiting = &self.plain[self.plain_at..];
        let bytes = waiting.len().min(buf.len());
        buf[..bytes].copy_from_slice(&waiting[..bytes]);
        self.plain_at += bytes;
        if self.plain_at == self.plain.len() {
            self.plain.clear();
            self.plain.shrink_to(0);
            self.plain_at = 0;
        }
        bytes
    }

    /// Puts the start of a record back in front of what is to come; gives its length.
    fn take_partial(&mut self, all: &mut Buffers) -> usize {
        let have = self.partial.len();
        all.incoming[..have].copy_from_slice(&self.partial);
        self.partial.clear();
        have
    }

    fn keep_partial(&mut self, range: std::ops::Range<usize>, all: &Buffers) {
        self.partial.clear();
        self.partial.extend_from_slice(&all.incoming[range]);
        if self.partial.is_empty() {
            self.partial.shrink_to(PARTIAL_KEPT);
        }
    }

    fn fail(&mut self, fault: &str) -> io::Error {
        self.fault.get_or_insert_with(|| fault.into());
        ErrorKind::ConnectionAborted.into()
    }

    fn broken(&mut self, error: &Error) -> io::Error {
        let fault = if self.name.is_empty() {
            words::of_server(error)
        } else {
            words::of_client(error, &self.name)
        };
        self.fault.get_or_insert_with(|| fault.into());
        ErrorKind::InvalidData.into()
    }
}

impl Buffers {
    /// Memory is taken when there is TLS.
    fn prepare(&mut self) {
        if self.incoming.is_empty() {
            self.incoming.resize(INCOMING, 0);
        }
    }
}

/// What one read of the socket brings at the most, and the start of a record before it: a record is at
/// most 16 KiB and 261 bytes.
const INCOMING: usize = (64 << 10) + (18 << 10);
/// Plain bytes that are encrypted before the socket is asked to take them.
const PIECE: usize = 4 * RECORD;
const KEPT: usize = 256 << 10;
/// Bytes that stay with a connection for starts of records.
const PARTIAL_KEPT: usize = 512;
