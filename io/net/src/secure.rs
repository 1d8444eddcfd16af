//! What TLS adds to the sockets of a host: configurations, handshakes, and closes that wait for their last
//! bytes.
//!
//! Handshakes are queued and taken one step at a time, between other things: see `park`. An accepted
//! connection is told of when it is secured; one whose handshake fails is dropped and counted, since nobody
//! has heard of it. A close sends TLS's own end first; what the socket does not take then is sent as it drains,
//! under an id that nobody knows.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use mio::Interest;
use mio::event::Event;
use mio::unix::SourceFd;
use rustix::net::{RecvFlags, SendFlags, sockopt};
use takt_engine::{Ready, StreamId, Target};

use crate::slots::{Entry, State, Stream};
use crate::sockets::Sockets;
use crate::sys;
use crate::tls::{Buffers, ClientTls, Layer, ServerTls, Session, Shaken, Wire, server_name};
use crate::token::Source;

/// TLS of one host.
#[derive(Debug, Default)]
pub(crate) struct Secure {
    clients: Vec<ClientTls>,
    servers: Vec<ServerTls>,
    pub(crate) buffers: Buffers,
    /// Connections whose handshake can go on.
    shaking: VecDeque<StreamId>,
}

/// A socket as the TLS layer sees it.
pub(crate) struct Raw<'a> {
    fd: BorrowedFd<'a>,
    stamped: bool,
    /// The kernel's stamp of what was received last.
    pub(crate) stamp: Option<u64>,
}

impl Secure {
    pub(crate) fn add_client(&mut self, tls: ClientTls) -> u32 {
        self.clients.push(tls);
        self.clients.len() as u32 - 1
    }

    pub(crate) fn add_server(&mut self, tls: ServerTls) -> u32 {
        self.servers.push(tls);
        self.servers.len() as u32 - 1
    }

    /// What lies over an outgoing connection, if anything does.
    pub(crate) fn layer(&self, target: &Target) -> io::Result<Option<Box<Layer>>> {
        let Target::Tls { layer, .. } = target else { return Ok(None) };
        let tls = self.clients.get(layer.config as usize).ok_or_else(unknown)?;
        let session = Session::client(tls.config.clone(), server_name(&layer.name)?);
        let session = session.map_err(io::Error::other)?;
        Ok(Some(Box::new(Layer::new(session, &layer.name, None))))
    }

    /// A server's configuration.
    pub(crate) fn server(&self, config: u32) -> io::Result<&ServerTls> {
        self.servers.get(config as usize).ok_or_else(unknown)
    }

    /// What lies over a connection that `listener` has accepted.
    pub(crate) fn accepted(&self, config: u32, listener: StreamId) -> io::Result<Box<Layer>> {
        let session = Session::server(self.server(config)?.config.clone());
        Ok(Box::new(Layer::new(session.map_err(io::Error::other)?, "", Some(listener))))
    }

    /// Whether a step of a handshake is due.
    pub(crate) fn is_shaking(&self) -> bool {
        !self.shaking.is_empty()
    }
}

impl Sockets {
    /// What went wrong with the TLS of a stream.
    pub(crate) fn tls_fault(&self, id: StreamId) -> Option<&str> {
        match self.slots.get(id)? {
            Entry::Stream(stream) => stream.tls.as_ref()?.fault(),
            Entry::Listener(_) | Entry::Leaving(_) => None,
        }
    }

    /// The handshake of a connection can go on, if it has one.
    pub(crate) fn queue_handshake(&mut self, id: StreamId) {
        let layer = self.slots.stream_mut(id).and_then(|stream| stream.tls.as_mut());
        if let Some(layer) = layer
            && !std::mem::replace(&mut layer.queued, true)
        {
            self.secure.shaking.push_back(id);
        }
    }

    /// Takes one step of one handshake. Whether there was one.
    pub(crate) fn shake_one(&mut self, ready: &mut Vec<Ready>) -> bool {
        let Some(id) = self.secure.shaking.pop_front() else { return false };
        let Some(stream) = self.slots.stream_mut(id) else { return true };
        let Some(layer) = &mut stream.tls else { return true };
        layer.queued = false;
        let listener = layer.accepted_by;
        let mut raw = Raw::of(stream.fd.as_fd(), false);
        match layer.shake(&mut raw, stream.read_closed, &mut self.secure.buffers) {
            Ok(Shaken::Waits) => return true,
            Ok(Shaken::Done { resumed, readable }) => {
                stream.state = State::Open;
                let readable = readable || stream.read_closed;
                self.stats.secured += 1;
                self.stats.resumed += u64::from(resumed);
                match listener {
                    None => ready.push(Ready::Secured { stream: id, resumed }),
                    Some(listener) if self.slots.get(listener).is_some() => {
                        ready.push(Ready::Accepted { listener, stream: id });
                    }
                    Some(_) => {
                        self.slots.remove(id);
                        return true;
                    }
                }
                if readable {
                    ready.push(Ready::Readable(id));
                }
            }
            Err(error) => {
                stream.state = State::Failed;
                if listener.is_some() {
                    self.stats.not_secured += 1;
                    self.slots.remove(id);
                } else {
                    ready.push(Ready::Closed(id, error.kind()));
                }
            }
        }
        true
    }

    /// Ends a connection whose owner has closed it, once its ciphertext is on its way.
    pub(crate) fn leave(&mut self, mut stream: Stream) {
        let Some(layer) = &mut stream.tls else { return };
        if let Ok(false) = layer.say_goodbye(&mut Raw::of(stream.fd.as_fd(), false)) {
            // A peer that takes nothing more must not hold the descriptor for ever; one that is dead already
            // does not.
            let _ = sockopt::set_tcp_user_timeout(&stream.fd, LEAVE_WITHIN_MS);
            let fd = stream.fd.as_raw_fd();
            let id = self.slots.insert(Entry::Leaving(stream));
            let interest = Interest::READABLE | Interest::WRITABLE;
            let token = Source::Socket(id).token();
            if self.registry.reregister(&mut SourceFd(&fd), token, interest).is_err() {
                self.slots.remove(id);
            }
        }
    }

    /// An event for a connection that is leaving.
    pub(crate) fn go_on_leaving(&mut self, id: StreamId, event: &Event) {
        let Some(Entry::Leaving(stream)) = self.slots.get_mut(id) else { return };
        let Some(layer) = &mut stream.tls else { return };
        let gone = event.is_error() || event.is_write_closed();
        if gone || !matches!(layer.flush(&mut Raw::of(stream.fd.as_fd(), false)), Ok(false)) {
            self.slots.remove(id);
        }
    }
}

impl<'a> Raw<'a> {
    pub(crate) fn of(fd: BorrowedFd<'a>, stamped: bool) -> Self {
        Self { fd, stamped, stamp: None }
    }
}

impl Wire for Raw<'_> {
    fn recv(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.stamped {
            let (bytes, stamp) = sys::receive_stamped(self.fd, buf)?;
            self.stamp = stamp;
            return Ok(bytes);
        }
        let (_, bytes) = rustix::net::recv(self.fd, buf, RecvFlags::empty())?;
        Ok(bytes)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.fd, bytes, SendFlags::NOSIGNAL)?)
    }
}

fn unknown() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "no TLS configuration of this host has that number")
}

/// How long what a closed connection still has to send may stay unacknowledged.
const LEAVE_WITHIN_MS: u32 = 30_000;
