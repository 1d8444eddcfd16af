//! A strategy's hold on the running phase: `Pace` over the session's own context.

use takt_engine::Context;
use takt_record::{
    ConversationEvent, ConversationRecord, EndedBy, Issued, Record, RequestId, RequestKey, TurnOf,
};
use takt_time::Nanos;

use crate::api::Request;
use crate::order::Order;
use crate::session::phase::PhaseIssuer;
use crate::session::{Link, Session, SessionMsg};
use crate::strategy::Pace;

pub(crate) struct Hand<'a, 'c> {
    pub(crate) issuer: &'a mut PhaseIssuer,
    pub(crate) link: &'a mut Link,
    pub(crate) cx: &'a mut Context<'c, Session>,
}

impl Pace for Hand<'_, '_> {
    fn now(&self) -> Nanos {
        self.cx.now()
    }

    fn start(&self) -> Nanos {
        self.issuer.start
    }

    fn end(&self) -> Option<Nanos> {
        self.issuer.ends_at()
    }

    fn inherited(&self) -> u32 {
        // No later phase has begun: what is not this one's is of earlier ones.
        let earlier = self.link.all_in_flight - self.in_flight();
        u32::try_from(earlier).unwrap_or(u32::MAX)
    }

    fn in_flight(&self) -> u64 {
        self.link.in_flight[usize::from(self.issuer.id.0)]
    }

    fn issue(&mut self, sample: u32, scheduled: Option<Nanos>) -> Option<RequestKey> {
        let ordinal = self.admit(scheduled)?;
        Some(self.hand_over(ordinal, sample, scheduled, None))
    }

    fn issue_next(&mut self, order: &mut Order, scheduled: Option<Nanos>) -> Option<RequestKey> {
        let ordinal = self.admit(scheduled)?;
        Some(self.hand_over(ordinal, order.sample(ordinal), scheduled, None))
    }

    fn elsewhere(&mut self, scheduled: Nanos) -> bool {
        self.issuer.elsewhere(scheduled)
    }

    fn issue_turn(
        &mut self,
        sample: u32,
        scheduled: Option<Nanos>,
        turn: TurnOf,
    ) -> Option<RequestKey> {
        let ordinal = self.admit(scheduled)?;
        Some(self.hand_over(ordinal, sample, scheduled, Some(turn)))
    }

    fn is_open(&mut self, at: Nanos) -> bool {
        self.issuer.close_if_over(at);
        self.issuer.closed.is_none()
    }

    fn conversation(&mut self, conversation: u64, at: Nanos, event: ConversationEvent) {
        let phase = self.issuer.id;
        let record = ConversationRecord { at, phase, conversation, event };
        self.link.publisher.push(&Record::Conversation(record));
    }

    fn at(&mut self, when: Nanos, token: u64) {
        self.cx.call_at(when, SessionMsg::Tick(self.issuer.id, token));
    }

    fn rehearsal_for(&self, when: Nanos) -> Option<Nanos> {
        let rehearse_ahead = self.link.rehearse_ahead?;
        let rare = when.saturating_since(self.cx.now()) >= rehearse_ahead + rehearse_ahead;
        rare.then(|| when.saturating_sub(rehearse_ahead))
    }

    fn rehearse(&mut self, order: &mut Order, scheduled: Nanos) {
        let ordinal = self.issuer.next();
        let key = RequestKey { phase: self.issuer.id, ordinal };
        let id = RequestId::new(self.link.session_key, key);
        let (sample, issued) = (order.foresee(ordinal), self.cx.now());
        let scheduled = Some(scheduled);
        self.link.issuer.rehearse(Request { key, id, sample, scheduled, issued, turn: None });
    }

    fn soon(&mut self, token: u64) {
        self.cx.call_soon(SessionMsg::Tick(self.issuer.id, token));
    }

    fn finished_by(&mut self, by: EndedBy) {
        // A schedule that ends with its last row has issued the dataset: the strategy gave up nothing.
        self.issuer.close_if_over(self.cx.now());
        self.issuer.close(by);
    }
}

impl Hand<'_, '_> {
    /// The number of a request, if the phase takes it. An arrival belongs to the phase by its own moment, however
    /// late it is served.
    fn admit(&mut self, scheduled: Option<Nanos>) -> Option<u64> {
        self.issuer.admit(scheduled.unwrap_or(self.cx.now()))
    }

    fn hand_over(
        &mut self,
        ordinal: u64,
        sample: u32,
        scheduled: Option<Nanos>,
        turn: Option<TurnOf>,
    ) -> RequestKey {
        let key = RequestKey { phase: self.issuer.id, ordinal };
        let id = RequestId::new(self.link.session_key, key);
        let at = self.cx.now();
        self.link.publisher.issued(&Issued { key, sample, at, scheduled, turn });
        self.link.in_flight[usize::from(key.phase.0)] += 1;
        self.link.all_in_flight += 1;
        self.link.issuer.issue(Request { key, id, sample, scheduled, issued: at, turn });
        key
    }
}
