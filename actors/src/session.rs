//! placeholder
use crate::api::Answered;
use takt_record::PhaseId;

/// What a session is told.
#[derive(Debug)]
pub enum SessionMsg {
    /// A request has ended.
    Answered(Answered),
    /// The transport cannot go on.
    TransportFailed(Box<str>),
    /// Stop issuing, drain for the grace time, end. A second one ends at once.
    Stop,
    /// A moment that the strategy of a phase asked for.
    Tick(PhaseId, u64),
}
