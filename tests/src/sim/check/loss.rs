//! Where there was no room for records their loss is told, and the run is not called valid.
//!
//! A loss that is not told is found by all other checks: they miss records.

use takt_record::{PhaseKind, SessionEvent, VerdictStatus};

use super::Found;
use crate::sim::kept::Kept;
use crate::sim::run::Ran;

pub(super) fn check(ran: &Ran, found: &mut Found) {
    found.holds(ran.scenario.records.refused > 0, || "records lost with room for all".to_owned());
    let received = ran.records.len() as u64;
    found.same(received, ran.published.records, || "records received of those kept".to_owned());
    found.holds(ran.out_of_line.is_empty(), || format!("out of line: {:?}", ran.out_of_line));
    let told = ran.records.iter().rev().find_map(|record| match record {
        Kept::Health(health) => Some(health.lost),
        _ => None,
    });
    let told = told.unwrap_or(0);
    found.holds(told <= ran.published.lost, || format!("{told} told as lost, too many"));
    // Unless the very records that would have told were lost as well.
    let judged = ran.result.phases.iter().filter(|p| p.kind == PhaseKind::Performance);
    if judged.filter_map(|phase| phase.instrument.as_ref()).any(|seen| seen.lost > 0) {
        let status = ran.result.verdict.status;
        found.holds(status != VerdictStatus::Valid, || "lost records, and a valid run".to_owned());
    }
    let framed = [SessionEvent::Started, SessionEvent::Ended].iter().all(|event| {
        ran.records.iter().any(|record| matches!(record, Kept::Session(s) if s.event == *event))
    });
    found.holds(framed, || "the frame of the session was lost".to_owned());
}
