//! What the reactor did, in the event of a reading of its health.

use takt_time::Span;

use super::json::Json;
use crate::work::Work;

/// Writes the object, or `null`.
pub(super) fn work(work: Option<&Work>, json: &mut Json<'_>) {
    let Some(work) = work else {
        json.raw("null");
        return;
    };
    let wakes = work.wakes;
    json.raw(r#"{"wakes":{"polled":"#).number(wakes.polled);
    json.raw(r#","deadline":"#).number(wakes.deadline);
    json.raw(r#","readiness":"#).number(wakes.readiness);
    json.raw(r#","remote":"#).number(wakes.remote);
    json.raw(r#","spurious":"#).number(wakes.spurious);
    json.raw(r#"},"looking_ns":"#).number(work.looking.as_nanos());
    json.raw(r#","sampled":"#).number(work.sampled);
    json.raw(r#","timers_ns":"#).number(work.timers.as_nanos());
    json.raw(r#","parse_ns":"#).number(work.parse.as_nanos());
    json.raw(r#","messages_ns":"#).number(work.messages.as_nanos());
    json.raw(r#","reads_ns":"#).number(work.reads.as_nanos());
    json.raw(r#","writes_ns":"#).number(work.writes.as_nanos());
    json.raw(r#","rest_ns":"#).number(work.rest.as_nanos());
    json.raw(r#","unread_reads":"#).number(work.unread_reads);
    json.raw(r#","unread_ns":"#).number(work.unread.as_nanos());
    json.raw(r#","unread_max_ns":"#).number(work.unread_max.as_nanos());
    json.raw(r#","overflows":"#).number(work.overflows);
    json.raw(r#","leftover":"#).number(work.leftover);
    json.raw(r#","polls":"#).maybe(work.polls);
    json.raw(r#","read_calls":"#).maybe(work.read_calls);
    json.raw(r#","write_calls":"#).maybe(work.write_calls);
    json.raw(r#","wake_up_p50_ns":"#).maybe(work.wake_up_p50.map(Span::as_nanos));
    json.raw(r#","wake_up_p99_ns":"#).maybe(work.wake_up_p99.map(Span::as_nanos));
    json.raw(r#","head_start_ns":"#).maybe(work.head_start.map(Span::as_nanos));
    json.raw(r#","fold_ns":"#).maybe(work.fold.map(Span::as_nanos));
    json.raw(r#","used_once":"#).maybe(work.used_once).raw("}");
}
