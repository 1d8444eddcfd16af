//! A request and its answer over a blocking connection that is kept as long as it can be.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use takt_engine::Target;
use takt_net::tls::ClientTls;
use takt_time::{Nanos, Span};
use takt_wire::{
    Answer, AnswerEvent, Api, Ask, Failure, FinishReason, Limits, Part, PreparedRequest,
    ResponseParser, Text, Usage,
};

use crate::preflight;

/// A line to one address: a connection when one stands, and how to make one.
pub(crate) struct Line {
    target: Target,
    tls: Option<ClientTls>,
    timeout: Duration,
    standing: Option<Box<dyn Both>>,
}

/// One request and what came of it.
pub(super) struct Exchange {
    pub(super) stream: bool,
    /// It went over the connection of the one before.
    pub(super) reused: bool,
    /// The connection of the one before was closed without a word.
    pub(super) stale: bool,
    /// The connection can carry another.
    pub(super) kept: bool,
    pub(super) status: Option<u16>,
    /// Why it failed, if it did.
    pub(super) failure: Option<String>,
    pub(super) first_byte: Option<Span>,
    pub(super) first_token: Option<Span>,
    pub(super) all: Span,
    pub(super) usage: Option<Usage>,
    pub(super) finish: Option<FinishReason>,
    /// Events with text.
    pub(super) events: u64,
    /// The beginning of the answer's text.
    pub(super) text: String,
}

trait Both: Read + Write + Send {}
impl<T: Read + Write + Send> Both for T {}

impl Exchange {
    /// What the server said.
    pub(super) fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        self.failure.iter_mut().chain([&mut self.text])
    }

    /// Why it failed, with what it was.
    pub(super) fn fault(&self) -> Option<String> {
        let what = if self.stream { "a streamed answer" } else { "a whole answer" };
        self.failure.as_ref().map(|why| format!("{what}: {why}"))
    }
}

impl Line {
    pub(crate) fn new(target: Target, tls: Option<ClientTls>, timeout: Duration) -> Self {
        Self { target, tls, timeout, standing: None }
    }

    /// Sends a request and reads its answer to the end.
    pub(super) fn exchange(
        &mut self,
        request: &PreparedRequest,
        api: Api,
        stream: bool,
    ) -> Exchange {
        let ask = Ask { api, stream, keep_text: true, no_body: false };
        let mut answer = Answer::new(ask, Limits::default());
        let mut seen = Seen::default();
        let sent = takt_net::now();
        let told = self.tell(request.bytes(), &mut |bytes| {
            let at = takt_net::now();
            if bytes.is_empty() {
                answer.eof(&mut |event| seen.look(&event));
                return true;
            }
            seen.first_byte.get_or_insert(at);
            answer.feed(bytes, at, &mut |event| seen.look(&event)).ended
        });
        let (reused, stale) =
            told.as_ref().map_or((false, false), |told| (told.reused, told.stale));
        if let Err(error) = &told {
            answer.cut(&error.to_string(), &mut |event| seen.look(&event));
        }
        let kept = told.is_ok() && answer.is_reusable();
        if !kept {
            self.standing = None;
        }
        let since = |at: Option<Nanos>| at.map(|at| at.saturating_since(sent));
        Exchange {
            stream,
            reused,
            stale,
            kept,
            status: seen.status,
            failure: seen
                .failure
                .map(|failure| failure.to(request, seen.status).message)
                .or_else(|| told.err().map(|error| error.to_string())),
            first_byte: since(seen.first_byte),
            first_token: since(seen.first_token).filter(|_| stream),
            all: takt_net::now().saturating_since(sent),
            usage: seen.usage,
            finish: seen.finish,
            events: seen.events,
            text: seen.text,
        }
    }

    /// Sends a request and returns the status and the body of its answer.
    pub(crate) fn fetch(&mut self, request: &PreparedRequest) -> io::Result<(u16, Vec<u8>)> {
        let mut parser = ResponseParser::new(Limits::default());
        parser.reset(false);
        let (mut status, mut body, mut broken) = (0, Vec::new(), None);
        self.tell(request.bytes(), &mut |bytes| {
            let mut look = |part: Part<'_>| match part {
                Part::Head(head) => status = head.status,
                // What is longer is no list of models.
                Part::Body(bytes) if body.len() < LIST_MAX => body.extend_from_slice(bytes),
                Part::Body(_) | Part::End => {}
            };
            let read = if bytes.is_empty() {
                parser.eof(&mut look)
            } else {
                parser.feed(bytes, &mut look).map(drop)
            };
            broken = read.err();
            broken.is_some() || parser.is_done()
        })?;
        if !parser.is_reusable() {
            self.standing = None;
        }
        match broken {
            Some(error) => Err(io::Error::other(error)),
            None => Ok((status, body)),
        }
    }

    /// Writes `request` and gives what comes to `read` until that has enough; no bytes are the end. One that dies
    /// on a connection that was used before is sent once more.
    fn tell(&mut self, request: &[u8], read: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<Told> {
        let mut reused = self.standing.is_some();
        let mut stale = false;
        let mut buffer = vec![0; 64 << 10];
        let mut first = match self.begin(request, &mut buffer) {
            Err(_) | Ok(0) if reused => {
                (stale, reused, self.standing) = (true, false, None);
                self.begin(request, &mut buffer)
            }
            other => other,
        }?;
        // An answer that never ends is ended by this.
        let deadline = takt_net::now() + Span::from_nanos(self.timeout.as_nanos() as u64);
        while !read(&buffer[..first]) {
            if takt_net::now() >= deadline {
                return Err(ErrorKind::TimedOut.into());
            }
            let Some(connection) = &mut self.standing else { break };
            first = connection.read(&mut buffer).map_err(clearer)?;
        }
        Ok(Told { reused, stale })
    }

    fn begin(&mut self, request: &[u8], buffer: &mut [u8]) -> io::Result<usize> {
        let connection = match &mut self.standing {
            Some(connection) => connection,
            none => none.insert(connect(&self.target, self.tls.as_ref(), self.timeout)?),
        };
        connection.write_all(request)?;
        connection.read(buffer).map_err(clearer)
    }
}

/// How a request was carried.
struct Told {
    reused: bool,
    stale: bool,
}

fn connect(
    target: &Target,
    tls: Option<&ClientTls>,
    timeout: Duration,
) -> io::Result<Box<dyn Both>> {
    match target {
        Target::Tls { to, layer, .. } => {
            let tls = tls.ok_or(ErrorKind::Unsupported)?;
            let patience = Span::from_nanos(timeout.as_nanos() as u64);
            Ok(Box::new(preflight::secure(*to, tls, &layer.name, patience)?))
        }
        Target::Tcp { to, .. } => {
            let to: SocketAddr = *to;
            let stream = TcpStream::connect_timeout(&to, timeout)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(timeout))?;
            stream.set_write_timeout(Some(timeout))?;
            Ok(Box::new(stream))
        }
        Target::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(timeout))?;
            stream.set_write_timeout(Some(timeout))?;
            Ok(Box::new(stream))
        }
    }
}

/// A socket's time-out comes as "would block".
fn clearer(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            io::Error::new(ErrorKind::TimedOut, "nothing came within --timeout")
        }
        _ => error,
    }
}

/// What the events of an answer add up to.
#[derive(Default)]
struct Seen {
    status: Option<u16>,
    first_byte: Option<Nanos>,
    first_token: Option<Nanos>,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    events: u64,
    failure: Option<Failure>,
    text: String,
}

impl Seen {
    fn look(&mut self, event: &AnswerEvent<'_>) {
        match event {
            AnswerEvent::Head { status, .. } => self.status = Some(*status),
            AnswerEvent::Text(Text::Content(text) | Text::Reasoning(text)) => {
                if self.text.len() < TEXT_MAX {
                    self.text.push_str(text);
                }
            }
            AnswerEvent::Token(token) => {
                self.first_token.get_or_insert(token.at);
                self.events += 1;
            }
            AnswerEvent::Finish { reason, .. } => self.finish = Some(*reason),
            AnswerEvent::Usage(usage) => self.usage = Some(*usage),
            AnswerEvent::End(end) => {
                self.status = self.status.or(end.status);
                self.failure.clone_from(&end.failure);
            }
            AnswerEvent::FirstEvent { .. } | AnswerEvent::Text(_) => {}
        }
    }
}

const LIST_MAX: usize = 4 << 20;
const TEXT_MAX: usize = 400;
