//! What the reactor did with its time, as one reading of its health has it.

use takt_time::Span;

/// Counters since the session began. Spans of kinds of work are those of one turn in some: their shares are
/// what counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Work {
    /// Why the reactor came back from waiting.
    pub wakes: Wakes,
    /// Time in looks at the sockets that did not wait.
    pub looking: Span,
    /// Turns that were measured.
    pub sampled: u64,
    /// Of them: handlers of timers and what they set in motion, reads and writes left out.
    pub timers: Span,
    /// Handlers of what was ready, the same left out: understanding what was read, above all.
    pub parse: Span,
    /// Handlers of messages, the same left out.
    pub messages: Span,
    /// Calls that read.
    pub reads: Span,
    /// Calls that write.
    pub writes: Span,
    /// The engine itself.
    pub rest: Span,
    /// Reads in them that got something.
    pub unread_reads: u64,
    /// How long what they got can have stood in the socket, together.
    pub unread: Span,
    /// The longest of these.
    pub unread_max: Span,
    /// Messages beyond the capacity of a mailbox.
    pub overflows: u64,
    /// Connections closed because bytes came that belonged to no answer.
    pub leftover: u64,
    /// Calls that looked at the sockets.
    pub polls: Option<u64>,
    /// Calls that read, those that found nothing included.
    pub read_calls: Option<u64>,
    /// Calls that wrote.
    pub write_calls: Option<u64>,
    /// How late the kernel woke the thread, median.
    pub wake_up_p50: Option<Span>,
    /// The same, 99th percentile.
    pub wake_up_p99: Option<Span>,
    /// How long before a deadline the reactor is awake, in the wait mode `guard`.
    pub head_start: Option<Span>,
    /// CPU time of the thread that folds and writes the records.
    pub fold: Option<Span>,
    /// Connections that ended with their first answer, of endpoints that are known to close them behind it.
    pub used_once: Option<u64>,
}

/// Parks by what ended them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Wakes {
    /// None: a look that did not wait.
    pub polled: u64,
    /// A deadline.
    pub deadline: u64,
    /// Readiness.
    pub readiness: u64,
    /// Another thread.
    pub remote: u64,
    /// None of these: an early wake-up, an interrupt.
    pub spurious: u64,
}

impl Work {
    /// What is always there, in the order of the packed form.
    pub(crate) fn counts(&self) -> [u64; Self::COUNTS] {
        let Wakes { polled, deadline, readiness, remote, spurious } = self.wakes;
        [
            polled,
            deadline,
            readiness,
            remote,
            spurious,
            self.looking.as_nanos(),
            self.sampled,
            self.timers.as_nanos(),
            self.parse.as_nanos(),
            self.messages.as_nanos(),
            self.reads.as_nanos(),
            self.writes.as_nanos(),
            self.rest.as_nanos(),
            self.unread_reads,
            self.unread.as_nanos(),
            self.unread_max.as_nanos(),
            self.overflows,
            self.leftover,
        ]
    }

    /// What may be absent, in the order of the packed form.
    pub(crate) fn options(&self) -> [Option<u64>; Self::OPTIONS] {
        let nanos = |span: Option<Span>| span.map(Span::as_nanos);
        [
            self.polls,
            self.read_calls,
            self.write_calls,
            nanos(self.wake_up_p50),
            nanos(self.wake_up_p99),
            nanos(self.head_start),
            nanos(self.fold),
            self.used_once,
        ]
    }

    /// The same again.
    pub(crate) fn new(counts: [u64; Self::COUNTS], options: [Option<u64>; Self::OPTIONS]) -> Self {
        let [polled, deadline, readiness, remote, spurious, rest @ ..] = counts;
        let [looking, sampled, timers, parse, messages, reads, writes, rest @ ..] = rest;
        let [engine, unread_reads, unread, unread_max, overflows, leftover] = rest;
        let [polls, read_calls, write_calls, p50, p99, head_start, fold, used_once] = options;
        let span = Span::from_nanos;
        Self {
            wakes: Wakes { polled, deadline, readiness, remote, spurious },
            looking: span(looking),
            sampled,
            timers: span(timers),
            parse: span(parse),
            messages: span(messages),
            reads: span(reads),
            writes: span(writes),
            rest: span(engine),
            unread_reads,
            unread: span(unread),
            unread_max: span(unread_max),
            overflows,
            leftover,
            polls,
            read_calls,
            write_calls,
            wake_up_p50: p50.map(span),
            wake_up_p99: p99.map(span),
            head_start: head_start.map(span),
            fold: fold.map(span),
            used_once,
        }
    }

    pub(crate) const COUNTS: usize = 18;
    pub(crate) const OPTIONS: usize = 8;
}
