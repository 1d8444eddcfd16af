//! The scripted host: a list of what happens when.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;

use takt_engine::{Close, Host, ReadOutcome, Ready, StreamId, Target, Then, Wake, Woken};
use takt_record::RequestId;
use takt_time::{Nanos, Span};
use takt_wire::{Limits, RequestParser, Step};

use super::{CONNECT_TAKES, WRITE_TAKES, answer};

/// How a connect ends.
#[derive(Clone, Debug)]
pub(in crate::client) enum Dial {
    Up(Span),
    /// It stands after the first span, and its TLS so long after.
    Tls(Span, Span),
    /// The same, and its TLS fails in these words.
    NoTls(Span, Span, &'static str),
    Fail(Span, ErrorKind),
    NoAttempt(ErrorKind),
    Silent,
}

/// What the server does, so long after the request.
#[derive(Clone, Debug)]
pub(in crate::client) enum Act {
    Send(Span, Vec<u8>),
    End(Span),
    Reset(Span),
}

/// A request as the server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::client) struct Asked {
    /// Number of its connection, from 0 in the order of the connects.
    pub(in crate::client) connection: usize,
    /// Number on that connection, from 0.
    pub(in crate::client) nth: usize,
    pub(in crate::client) id: RequestId,
    pub(in crate::client) at: Nanos,
}

type Server = Box<dyn FnMut(&Asked) -> Vec<Act>>;

/// The scripted host.
pub(in crate::client) struct Net {
    pub(super) now: Nanos,
    /// Nothing is waited for beyond this.
    pub(super) horizon: Nanos,
    happenings: BTreeMap<(Nanos, u64), (usize, Happening)>,
    serial: u64,
    ready: Vec<Ready>,
    ends: Vec<Wire>,
    pub(in crate::client) dial: Box<dyn FnMut(usize, Nanos) -> Dial>,
    pub(in crate::client) server: Server,
    /// When each connect was tried.
    pub(in crate::client) dials: Vec<Nanos>,
    /// How often the client has read.
    pub(in crate::client) reads: usize,
    pub(in crate::client) asked: Vec<Asked>,
    /// What a socket takes before it is full; it drains as much at a time.
    pub(in crate::client) room: usize,
    /// Whether a full socket drains.
    pub(in crate::client) drains: bool,
    /// Resets are told by no event: the next write finds them.
    pub(in crate::client) break_silently: bool,
}

#[derive(Clone, Debug)]
enum Happening {
    Connected,
    Secured,
    NotSecured(&'static str),
    Refused(ErrorKind),
    Bytes(Vec<u8>),
    End,
    Reset,
    Room,
}

/// Both ends of one connection.
struct Wire {
    inbox: VecDeque<u8>,
    ended: bool,
    reset: bool,
    closed: Option<Close>,
    taken: usize,
    fault: Option<&'static str>,
    parser: RequestParser,
    nth: usize,
}

impl Net {
    pub(super) fn new() -> Self {
        Self {
            now: Nanos::from_nanos(1_000_000_000),
            horizon: Nanos::from_nanos(1_000_000_000),
            happenings: BTreeMap::new(),
            serial: 0,
            ready: Vec::new(),
            ends: Vec::new(),
            dial: Box::new(|_, _| Dial::Up(CONNECT_TAKES)),
            server: Box::new(|_| vec![Act::Send(Span::from_micros(50), answer())]),
            dials: Vec::new(),
            reads: 0,
            asked: Vec::new(),
            room: usize::MAX,
            drains: true,
            break_silently: false,
        }
    }

    /// How many connections stand and were not closed by the client.
    pub(in crate::client) fn open(&self) -> usize {
        self.ends.iter().filter(|end| end.closed.is_none()).count()
    }

    /// How the client closed a connection.
    pub(in crate::client) fn closed(&self, connection: usize) -> Option<Close> {
        self.ends[connection].closed
    }

    /// Has the server do something on a connection by itself.
    pub(in crate::client) fn act(&mut self, connection: usize, act: Act) {
        let (after, happening) = match act {
            Act::Send(after, bytes) => (after, Happening::Bytes(bytes)),
            Act::End(after) => (after, Happening::End),
            Act::Reset(after) => (after, Happening::Reset),
        };
        self.happen(after, connection, happening);
    }

    /// The server resets a connection, if it is there.
    pub(in crate::client) fn kill(&mut self, connection: usize) {
        if connection < self.ends.len() {
            self.act(connection, Act::Reset(Span::ZERO));
        }
    }

    /// Lets happen what is due, and tells nobody.
    pub(in crate::client) fn pass_silently(&mut self) {
        self.pass();
        self.ready.clear();
    }

    fn happen(&mut self, after: Span, connection: usize, happening: Happening) {
        self.serial += 1;
        self.happenings.insert((self.now + after, self.serial), (connection, happening));
    }

    /// Lets happen what is due.
    fn pass(&mut self) {
        while let Some(entry) = self.happenings.first_entry() {
            if entry.key().0 > self.now {
                return;
            }
            let (connection, happening) = entry.remove();
            let end = &mut self.ends[connection];
            if end.closed.is_some() {
                continue;
            }
            let id = StreamId::new(connection as u32, 0);
            let event = match happening {
                Happening::Connected => Ready::Connected(id),
                Happening::Secured => Ready::Secured { stream: id, resumed: false },
                Happening::NotSecured(why) => {
                    end.fault = Some(why);
                    Ready::Closed(id, ErrorKind::InvalidData)
                }
                Happening::Refused(kind) => Ready::Closed(id, kind),
                Happening::Bytes(bytes) => {
                    end.inbox.extend(bytes);
                    Ready::Readable(id)
                }
                Happening::End => {
                    end.ended = true;
                    Ready::Readable(id)
                }
                Happening::Reset => {
                    end.reset = true;
                    if self.break_silently {
                        continue;
                    }
                    Ready::Readable(id)
                }
                Happening::Room => {
                    end.taken = 0;
                    Ready::Writable(id)
                }
            };
            if !self.ready.contains(&event) {
                self.ready.push(event);
            }
        }
    }

    /// The server reads.
    fn arrive(&mut self, connection: usize, mut bytes: &[u8]) {
        let now = self.now;
        let mut acts = Vec::new();
        let end = &mut self.ends[connection];
        loop {
            match end.parser.next(bytes).expect("the client speaks HTTP") {
                Step::Request { used, request } => {
                    let id = request.id.and_then(RequestId::from_hex).expect("an id");
                    let asked = Asked { connection, nth: end.nth, id, at: now };
                    end.nth += 1;
                    acts.extend((self.server)(&asked));
                    self.asked.push(asked);
                    bytes = &bytes[used..];
                }
                Step::More => break,
                Step::Continue { .. } => panic!("the client does not ask for 100 Continue"),
            }
        }
        for act in acts {
            self.act(connection, act);
        }
    }
}

impl Host for Net {
    fn now(&self) -> Nanos {
        self.now
    }

    fn park(&mut self, until: Option<Nanos>, ready: &mut Vec<Ready>) -> io::Result<Woken> {
        self.pass();
        let until = until.unwrap_or(self.horizon).min(self.horizon);
        if self.ready.is_empty() && until > self.now {
            let next = self.happenings.keys().next().map_or(until, |&(at, _)| at.min(until));
            self.now = self.now.max(next);
            self.pass();
        }
        ready.append(&mut self.ready);
        Ok(if ready.is_empty() { Woken::Deadline } else { Woken::Readiness })
    }

    fn connect(&mut self, _target: &Target) -> io::Result<StreamId> {
        let number = self.ends.len();
        self.dials.push(self.now);
        let dial = (self.dial)(self.dials.len() - 1, self.now);
        if let Dial::NoAttempt(kind) = dial {
            return Err(kind.into());
        }
        self.ends.push(Wire {
            inbox: VecDeque::new(),
            ended: false,
            reset: false,
            closed: None,
            taken: 0,
            fault: None,
            parser: RequestParser::new(Limits::default()),
            nth: 0,
        });
        match dial {
            Dial::Up(after) => self.happen(after, number, Happening::Connected),
            Dial::Tls(after, later) => {
                self.happen(after, number, Happening::Connected);
                self.happen(after + later, number, Happening::Secured);
            }
            Dial::NoTls(after, later, why) => {
                self.happen(after, number, Happening::Connected);
                self.happen(after + later, number, Happening::NotSecured(why));
            }
            Dial::Fail(after, kind) => self.happen(after, number, Happening::Refused(kind)),
            Dial::NoAttempt(_) | Dial::Silent => {}
        }
        Ok(StreamId::new(number as u32, 0))
    }

    fn listen(&mut self, _at: &Target) -> io::Result<StreamId> {
        unreachable!("a client does not listen")
    }

    fn local_addr(&self, _stream: StreamId) -> Option<SocketAddr> {
        None
    }

    fn read(&mut self, stream: StreamId, buf: &mut [u8]) -> io::Result<ReadOutcome> {
        self.reads += 1;
        let end = &mut self.ends[stream.index()];
        assert_eq!(end.closed, None, "a closed stream is not read");
        // As on Linux: what came before the reset can still be read.
        if end.reset && end.inbox.is_empty() {
            return Err(ErrorKind::ConnectionReset.into());
        }
        let hinted = end.ended || (end.reset && !self.break_silently);
        let bytes = end.inbox.len().min(buf.len());
        for (to, from) in buf.iter_mut().zip(end.inbox.drain(..bytes)) {
            *to = from;
        }
        let then = match (bytes, hinted) {
            (0, true) => Then::End,
            (_, true) => Then::More,
            (_, false) if bytes == buf.len() => Then::More,
            (_, false) => Then::Drained,
        };
        Ok(ReadOutcome { bytes, at: self.now, arrived: None, then })
    }

    fn write(&mut self, stream: StreamId, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.now += WRITE_TAKES;
        let connection = stream.index();
        let end = &mut self.ends[connection];
        assert_eq!(end.closed, None, "a closed stream is not written to");
        if end.reset {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let [bytes] = bufs else { panic!("one slice a write") };
        let taken = bytes.len().min(self.room - end.taken);
        if self.room < usize::MAX {
            end.taken += taken;
        }
        if taken < bytes.len() && self.drains {
            self.happen(Span::from_micros(10), connection, Happening::Room);
        }
        // What has met the server's end on its way is lost.
        if !self.ends[connection].ended {
            self.arrive(connection, &bytes[..taken]);
        }
        Ok(taken)
    }

    fn tls_fault(&self, stream: StreamId) -> Option<&str> {
        self.ends[stream.index()].fault
    }

    fn close(&mut self, stream: StreamId, how: Close) {
        let end = &mut self.ends[stream.index()];
        assert_eq!(end.closed.replace(how), None, "a stream is closed once");
    }

    fn waker(&self) -> Arc<dyn Wake> {
        struct Nobody;
        impl Wake for Nobody {
            fn wake(&self) {}
        }
        Arc::new(Nobody)
    }
}
