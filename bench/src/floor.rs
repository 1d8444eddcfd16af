//! The client's side of a floor: N connections that stand open, and the length of the answers.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::{message_len, request};

/// Connections of one mio poll, with a prepared request to send on each.
#[derive(Debug)]
pub struct Floor {
    poll: Poll,
    connections: Vec<Connection>,
    request: Vec<u8>,
    /// Length of an answer; 0 until the first one was seen whole.
    answer_len: usize,
    buf: Vec<u8>,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    /// Bytes of the answer in flight that have arrived.
    seen: usize,
}

impl Floor {
    /// Opens so many `connections`, waits until each is writable, and learns from one exchange how long an
    /// answer is.
    ///
    /// # Errors
    /// A connection cannot be opened, or there is no whole answer with a 200 within 5 s.
    pub fn open(connect: SocketAddr, connections: usize) -> Result<Self, Box<dyn Error>> {
        let mut floor = Self {
            poll: Poll::new()?,
            connections: Vec::with_capacity(connections),
            request: request(&connect.to_string()),
            answer_len: 0,
            buf: vec![0; 16 * 1024],
        };
        floor.connect(connect, connections)?;
        floor.learn_answer_len()?;
        Ok(floor)
    }

    fn connect(&mut self, connect: SocketAddr, count: usize) -> Result<(), Box<dyn Error>> {
        for index in 0..count {
            let mut stream = TcpStream::connect(connect)?;
            stream.set_nodelay(true)?;
            let both = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut stream, Token(index), both)?;
            self.connections.push(Connection { stream, seen: 0 });
        }
        let mut events = Events::with_capacity(1024);
        let mut open = vec![false; count];
        while open.contains(&false) {
            self.poll.poll(&mut events, Some(PATIENCE))?;
            if events.is_empty() {
                return Err(format!("no connection to {connect} within {PATIENCE:?}").into());
            }
            for event in &events {
                let at = event.token().0;
                if let Some(error) = self.connections[at].stream.take_error()? {
                    return Err(format!("connecting to {connect}: {error}").into());
                }
                open[at] = open[at] || event.is_writable();
            }
        }
        // Only arrivals matter from here on; a request of 110 bytes always fits the socket.
        for (index, connection) in self.connections.iter_mut().enumerate() {
            let registry = self.poll.registry();
            registry.reregister(&mut connection.stream, Token(index), Interest::READABLE)?;
        }
        Ok(())
    }

    /// One exchange on the first connection, read with care, to learn what to count to.
    fn learn_answer_len(&mut self) -> Result<(), Box<dyn Error>> {
        self.send(0)?;
        let mut events = Events::with_capacity(64);
        let mut seen = Vec::new();
        loop {
            self.poll.poll(&mut events, Some(PATIENCE))?;
            if events.is_empty() {
                return Err(format!("no whole answer within {PATIENCE:?}").into());
            }
            match self.connections[0].stream.read(&mut self.buf) {
                Ok(0) => return Err("the server closed the connection".into()),
                Ok(n) => seen.extend_from_slice(&self.buf[..n]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(e.into()),
            }
            if let Some(len) = message_len(&seen)
                && seen.len() >= len
            {
                if !seen.starts_with(b"HTTP/1.1 200") {
                    let line = String::from_utf8_lossy(&seen[..seen.len().min(60)]);
                    return Err(format!("not a 200: {line}").into());
                }
                self.answer_len = len;
                return Ok(());
            }
        }
    }

    /// Waits for readiness; a token's number is the index of its connection.
    ///
    /// # Errors
    /// Those of the poll.
    pub fn poll(
        &mut self,
        events: &mut Events,
        timeout: Option<Duration>,
    ) -> Result<(), Box<dyn Error>> {
        Ok(self.poll.poll(events, timeout)?)
    }

    /// Sends the request on connection `index`.
    ///
    /// # Errors
    /// It cannot be written at once and whole.
    pub fn send(&mut self, index: usize) -> Result<(), Box<dyn Error>> {
        let sent = self.connections[index].stream.write(&self.request)?;
        if sent < self.request.len() {
            return Err("a request did not fit the socket".into());
        }
        Ok(())
    }

    /// Reads connection `index` once and says whether its answer is whole now. An answer is shorter than the buffer,
    /// so a read leaves the socket drained, and the edge-triggered poll speaks again when more arrives.
    ///
    /// # Errors
    /// The server closed the connection, or it broke.
    pub fn answered(&mut self, index: usize) -> Result<bool, Box<dyn Error>> {
        let connection = &mut self.connections[index];
        match connection.stream.read(&mut self.buf) {
            Ok(0) => return Err("the server closed the connection".into()),
            Ok(n) => connection.seen += n,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(e.into()),
        }
        if connection.seen < self.answer_len {
            return Ok(false);
        }
        connection.seen = 0;
        Ok(true)
    }
}

/// How long a server may take for anything.
pub const PATIENCE: Duration = Duration::from_secs(5);
