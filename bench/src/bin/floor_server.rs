//! The floor of a server: answers every POST with the same prepared bytes.
//!
//! One thread, one mio poll. The length of a request is taken from the first one of each connection
//! (its blank line and its `Content-Length`); from then on the server only counts bytes. A client
//! whose requests change in length on one connection is not served right: this is a yardstick,
//! `takt mock --mode instant` is the server.
//!
//! ```text
//! floor_server --listen 127.0.0.1:8000
//! ```
//!
//! It runs until it is killed.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use takt_bench::{Args, BadArg, answer, message_len};

/// The listener's token; connections have their index.
const LISTENER: Token = Token(usize::MAX);

/// More of a first request than this, and its connection is closed.
const HEAD_MAX: usize = 64 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = Args::read(std::env::args().skip(1))?;
    let listen: SocketAddr =
        args.take("listen")?.ok_or_else(|| BadArg("--listen ADDR:PORT is missing".into()))?;
    args.done()?;
    Server::open(listen)?.run()
}

struct Connection {
    stream: TcpStream,
    /// Length of a request; 0 until the first one was seen whole.
    request_len: usize,
    /// Bytes of requests that have arrived and are not answered.
    seen: usize,
    /// The first request as it arrives; empty afterwards.
    first: Vec<u8>,
}

impl Connection {
    /// Takes `bytes` in and says how many requests they complete.
    fn take(&mut self, bytes: &[u8]) -> usize {
        self.seen += bytes.len();
        if self.request_len == 0 {
            self.first.extend_from_slice(bytes);
            match message_len(&self.first) {
                Some(len) => {
                    self.request_len = len;
                    self.first = Vec::new();
                }
                None => return 0,
            }
        }
        let whole = self.seen / self.request_len;
        self.seen %= self.request_len;
        whole
    }
}

struct Server {
    poll: Poll,
    listener: TcpListener,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    answer: Vec<u8>,
    buf: Vec<u8>,
}

impl Server {
    fn open(listen: SocketAddr) -> Result<Self, Box<dyn Error>> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(listen)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Self {
            poll,
            listener,
            connections: Vec::new(),
            free: Vec::new(),
            answer: answer(),
            buf: vec![0; 16 * 1024],
        })
    }

    fn run(mut self) -> Result<(), Box<dyn Error>> {
        let mut events = Events::with_capacity(1024);
        loop {
            self.poll.poll(&mut events, None)?;
            for event in &events {
                match event.token() {
                    LISTENER => self.accept()?,
                    Token(index) => {
                        if !self.serve(index, event.is_read_closed()) {
                            self.connections[index] = None;
                            self.free.push(index);
                        }
                    }
                }
            }
        }
    }

    fn accept(&mut self) -> Result<(), Box<dyn Error>> {
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e.into()),
            };
            stream.set_nodelay(true)?;
            let index = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            self.poll.registry().register(&mut stream, Token(index), Interest::READABLE)?;
            self.connections[index] =
                Some(Connection { stream, request_len: 0, seen: 0, first: Vec::new() });
        }
    }

    /// Reads until the socket is drained and answers what is whole. `false`: the connection is over.
    ///
    /// A short read means drained, unless the peer is `closing`: then the end of stream is behind it and
    /// no further event will say so.
    fn serve(&mut self, index: usize, closing: bool) -> bool {
        let Some(connection) = &mut self.connections[index] else { return true };
        loop {
            let n = match connection.stream.read(&mut self.buf) {
                Ok(0) => return false,
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            };
            for _ in 0..connection.take(&self.buf[..n]) {
                match connection.stream.write(&self.answer) {
                    Ok(sent) if sent == self.answer.len() => {}
                    // The peer does not read its answers, or has gone.
                    Ok(_) | Err(_) => return false,
                }
            }
            if connection.first.len() > HEAD_MAX {
                return false;
            }
            if n < self.buf.len() && !closing {
                return true;
            }
        }
    }
}
