//! The floor of a closed loop: what the kernel costs when the client does nothing.
//!
//! One thread, one mio poll, N keep-alive connections. Each connection has one request in flight; the
//! next goes out when as many bytes have come back as the first answer had. Nothing is parsed after
//! that first answer, nothing is stamped, nothing is recorded.
//!
//! ```text
//! floor_client --connect 127.0.0.1:8000 --connections 64 (--seconds 5 | --requests 1000000)
//! ```
//!
//! Prints one line of JSON: requests per second, and user and system time per request. Give both
//! bounds and the first one reached ends the run.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a yardstick reads the clock itself")]

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use takt_bench::{Args, BadArg, Spent, message_len, request};

fn main() -> Result<(), Box<dyn Error>> {
    let plan = Plan::read(std::env::args().skip(1))?;
    let mut floor = Floor::open(&plan)?;
    floor.learn_answer_len()?;
    let spent = Spent::start()?;
    let requests = floor.run(&plan, spent.began())?;
    println!("{}", spent.line("floor_client", plan.connections, requests)?);
    Ok(())
}

/// What the command line asks for.
struct Plan {
    connect: SocketAddr,
    connections: usize,
    seconds: Option<f64>,
    requests: Option<u64>,
}

impl Plan {
    fn read(words: impl Iterator<Item = String>) -> Result<Self, BadArg> {
        let mut args = Args::read(words)?;
        let plan = Self {
            connect: args
                .take("connect")?
                .ok_or_else(|| BadArg("--connect ADDR:PORT is missing".into()))?,
            connections: args.take("connections")?.unwrap_or(64),
            seconds: args.take("seconds")?,
            requests: args.take("requests")?,
        };
        args.done()?;
        if plan.seconds.is_none() && plan.requests.is_none() {
            return Err(BadArg("a bound is missing: --seconds S or --requests N".into()));
        }
        Ok(plan)
    }
}

struct Connection {
    stream: TcpStream,
    /// Bytes of the answer in flight that have arrived.
    seen: usize,
}

struct Floor {
    poll: Poll,
    connections: Vec<Connection>,
    request: Vec<u8>,
    /// Length of an answer; 0 until the first one was seen whole.
    answer_len: usize,
    buf: Vec<u8>,
}

impl Floor {
    /// Connects all of them and waits until each is writable.
    fn open(plan: &Plan) -> Result<Self, Box<dyn Error>> {
        let mut poll = Poll::new()?;
        let mut connections = Vec::with_capacity(plan.connections);
        for index in 0..plan.connections {
            let mut stream = TcpStream::connect(plan.connect)?;
            stream.set_nodelay(true)?;
            let both = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(&mut stream, Token(index), both)?;
            connections.push(Connection { stream, seen: 0 });
        }
        let mut events = Events::with_capacity(1024);
        let mut open = vec![false; plan.connections];
        while open.contains(&false) {
            poll.poll(&mut events, Some(Duration::from_secs(5)))?;
            if events.is_empty() {
                return Err(format!("no connection to {} within 5 s", plan.connect).into());
            }
            for event in &events {
                let at = event.token().0;
                if let Some(error) = connections[at].stream.take_error()? {
                    return Err(format!("connecting to {}: {error}", plan.connect).into());
                }
                open[at] = open[at] || event.is_writable();
            }
        }
        // Only arrivals matter from here on; a request of 110 bytes always fits the socket.
        for (index, connection) in connections.iter_mut().enumerate() {
            let registry = poll.registry();
            registry.reregister(&mut connection.stream, Token(index), Interest::READABLE)?;
        }
        let request = request(&plan.connect.to_string());
        Ok(Self { poll, connections, request, answer_len: 0, buf: vec![0; 16 * 1024] })
    }

    /// One exchange on the first connection, read with care, to learn what to count to.
    fn learn_answer_len(&mut self) -> Result<(), Box<dyn Error>> {
        self.send(0)?;
        let mut events = Events::with_capacity(64);
        let mut seen = Vec::new();
        loop {
            self.poll.poll(&mut events, Some(Duration::from_secs(5)))?;
            if events.is_empty() {
                return Err("no whole answer within 5 s".into());
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

    /// The loop itself. Returns how many answers were counted.
    fn run(&mut self, plan: &Plan, began: Instant) -> Result<u64, Box<dyn Error>> {
        let until = plan.seconds.map(|s| began + Duration::from_secs_f64(s));
        let most = plan.requests.unwrap_or(u64::MAX);
        let mut events = Events::with_capacity(1024);
        let mut done = 0;
        for index in 0..self.connections.len() {
            self.send(index)?;
        }
        while done < most && until.is_none_or(|at| Instant::now() < at) {
            self.poll.poll(&mut events, Some(Duration::from_secs(5)))?;
            if events.is_empty() {
                return Err("no answer for 5 s".into());
            }
            for event in &events {
                let index = event.token().0;
                if self.answered(index)? {
                    done += 1;
                    self.send(index)?;
                }
            }
        }
        Ok(done)
    }

    /// Reads once. An answer is shorter than the buffer, so a read leaves the socket drained, and the
    /// edge-triggered poll speaks again when more arrives.
    fn answered(&mut self, index: usize) -> Result<bool, Box<dyn Error>> {
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

    fn send(&mut self, index: usize) -> Result<(), Box<dyn Error>> {
        let sent = self.connections[index].stream.write(&self.request)?;
        if sent < self.request.len() {
            return Err("a request did not fit the socket".into());
        }
        Ok(())
    }
}
