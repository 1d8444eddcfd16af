//! A transport without a network: every answer is planned. For tests, examples and dry runs of a session.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use takt_engine::{Actor, Addr, Context, Host, System};
use takt_record::{Completed, Failure, Outcome, RequestKey, Times, TokenCounts};
use takt_time::{Nanos, Span};

use crate::api::{Answered, Cancel, Replies, Request, SampleIssuer};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Answered after so long.
    Answer(Span),
    /// Fails after so long.
    Fail(Span, Failure),
    /// Never answered; ends when it is cancelled.
    Never,
}

/// What came to the planned endpoint.
#[derive(Debug, Default)]
pub struct Seen {
    /// Each request with the instant at which it came.
    pub requests: Vec<(Nanos, Request)>,
    /// The same of those that were only rehearsed.
    pub rehearsed: Vec<(Nanos, Request)>,
    /// The most requests it held at once.
    pub most_at_once: usize,
    /// The session let it go.
    pub shut_down: bool,
}

/// The transport: hand it to a session.
pub struct Planned {
    addr: Addr<Msg>,
    progress: Rc<Cell<Option<Nanos>>>,
}

impl Planned {
    /// Puts an endpoint into `system` that treats each request as `plan` says.
    pub fn spawn<H: Host>(
        system: &mut System<H>,
        plan: impl FnMut(&Request) -> Plan + 'static,
    ) -> (Self, Rc<RefCell<Seen>>) {
        let seen = Rc::<RefCell<Seen>>::default();
        let plan: Box<dyn FnMut(&Request) -> Plan> = Box::new(plan);
        let progress = Rc::<Cell<_>>::default();
        let (held, replies) = (Vec::new(), None);
        let endpoint =
            Endpoint { plan, held, replies, seen: seen.clone(), progress: progress.clone() };
        (Self { addr: system.spawn(endpoint, MAILBOX), progress }, seen)
    }
}

impl SampleIssuer for Planned {
    fn attach(&mut self, replies: Replies) {
        self.addr.send(Msg::Attach(replies));
    }

    fn issue(&mut self, request: Request) {
        self.addr.send(Msg::Take(request));
    }

    fn rehearse(&mut self, request: Request) {
        self.addr.send(Msg::Rehearse(request));
    }

    fn cancel(&mut self, which: Cancel) {
        self.addr.send(Msg::Cancel(which));
    }

    fn progress(&self) -> Option<Nanos> {
        self.progress.get()
    }

    fn shut_down(&mut self) {
        self.addr.send(Msg::ShutDown);
    }
}

enum Msg {
    Attach(Replies),
    Take(Request),
    Rehearse(Request),
    Done(RequestKey, Outcome),
    Cancel(Cancel),
    ShutDown,
}

struct Endpoint {
    plan: Box<dyn FnMut(&Request) -> Plan>,
    held: Vec<Request>,
    replies: Option<Replies>,
    seen: Rc<RefCell<Seen>>,
    /// When it last answered anything.
    progress: Rc<Cell<Option<Nanos>>>,
}

impl Endpoint {
    fn take(&mut self, request: Request, cx: &mut Context<'_, Self>) {
        self.held.push(request);
        let mut seen = self.seen.borrow_mut();
        seen.requests.push((cx.now(), request));
        seen.most_at_once = seen.most_at_once.max(self.held.len());
        let (service, outcome) = match (self.plan)(&request) {
            Plan::Answer(service) => (service, Outcome::Ok),
            Plan::Fail(service, failure) => (service, Outcome::Failed(failure)),
            Plan::Never => return,
        };
        cx.call_at(cx.now() + service, Msg::Done(request.key, outcome));
    }

    fn answer(&self, request: &Request, outcome: Outcome, end: Nanos) {
        let (scheduled, issued) = (request.scheduled, request.issued);
        let sent = Some(issued);
        let completed = Completed {
            key: request.key,
            sample: request.sample,
            outcome,
            times: Times { scheduled, issued, sent, end, ..Times::default() },
            tokens: TokenCounts::default(),
            finish: None,
            status: None,
            attempts: 1,
            reused: false,
            body_bytes: 0,
            endpoint: 0,
            turn: request.turn,
        };
        let error = matches!(outcome, Outcome::Failed(_)).then(|| "planned".into());
        if let Some(replies) = &self.replies {
            replies.answered(Answered { completed, error });
        }
    }

    fn cancel(&mut self, which: Cancel, now: Nanos) {
        for request in std::mem::take(&mut self.held) {
            match which {
                Cancel::Phase(phase) if request.key.phase != phase => self.held.push(request),
                Cancel::Phase(_) | Cancel::All => self.answer(&request, Outcome::Unanswered, now),
            }
        }
    }
}

impl Actor for Endpoint {
    type Msg = Msg;

    fn handle(&mut self, msg: Msg, cx: &mut Context<'_, Self>) {
        match msg {
            Msg::Attach(replies) => self.replies = Some(replies),
            Msg::Take(request) => self.take(request, cx),
            Msg::Rehearse(request) => self.seen.borrow_mut().rehearsed.push((cx.now(), request)),
            Msg::Done(key, outcome) => {
                // Absent when it was cancelled.
                if let Some(at) = self.held.iter().position(|held| held.key == key) {
                    let request = self.held.swap_remove(at);
                    self.progress.set(Some(cx.now()));
                    self.answer(&request, outcome, cx.now());
                }
            }
            Msg::Cancel(which) => self.cancel(which, cx.now()),
            Msg::ShutDown => self.seen.borrow_mut().shut_down = true,
        }
    }
}

const MAILBOX: usize = 1 << 16;
