//! A run of the load generator beside the server's own records.
//!
//! ```text
//! journal ──fold──> slices of client latency, slowest requests     (client's monotonic clock)
//! step records ───> slices of composition, steps of each request   (server's, shifted onto it)
//! ```
//!
//! On one machine both sides read the same monotonic clock, and their wall clocks tell so; then nothing is
//! shifted. On two machines the wall clocks join them, and the report says so. No request id is in a
//! step record: a request is joined to the steps that ran while it waited, not to those it was in.

mod client;
mod server;
#[cfg(test)]
mod tests;
mod text;

pub use client::{ClientFold, SlowRequest};
pub use server::ServerSlice;

use takt_report::Sketch;

use crate::steps::StepFacts;

/// How the clocks of both sides were joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// One machine: the same monotonic clock.
    Same,
    /// By wall clocks.
    Wall,
}

/// One slice of time, both sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slice {
    /// Seconds from the first slice.
    pub start_s: f64,
    /// First tokens in it, nanoseconds from the send.
    pub ttft: Sketch,
    /// Ends in it, nanoseconds a token.
    pub tpot: Sketch,
    /// Answers that ended well in it.
    pub answers: u64,
    /// What the server did.
    pub server: ServerSlice,
}

/// A slow request and the steps that ran meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct Slowest {
    /// The request.
    pub request: SlowRequest,
    /// Seconds from the first slice to its send.
    pub sent_s: f64,
    /// What the server did between its send and its first token, or its first and last token.
    pub during: ServerSlice,
}

/// Both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    /// How clocks were joined.
    pub clocks: Clocks,
    /// In order of time; the first and the last have requests.
    pub slices: Vec<Slice>,
    /// The slowest to their first token.
    pub slowest_ttft: Vec<Slowest>,
    /// The slowest per token.
    pub slowest_tpot: Vec<Slowest>,
    /// Steps within the time of the run, and all that were given.
    pub steps: (usize, usize),
}

/// Why nothing can be joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// The journal has none.
    #[error("no answered request of a performance phase in the run's journal")]
    NoRequests,
    /// The journal does not tell what time it was.
    #[error("the run's journal has no wall clock: its session ended at once")]
    NoClock,
    /// Records and run are of different times.
    #[error(
        "no step record lies within the time of the run: it went from {run:?} to, and the records \
             from {records:?} to, in nanoseconds of wall time"
    )]
    NoOverlap {
        /// First and last moment of the run.
        run: (u64, u64),
        /// First and last step.
        records: (u64, u64),
    },
}

/// Joins a folded journal with the steps of one scheduler, in order.
///
/// # Errors
/// There is nothing on one side, or the two are of different times.
pub fn join(client: &ClientFold, steps: &[StepFacts]) -> Result<Joined, JoinError> {
    let (first, last) = client.span().ok_or(JoinError::NoRequests)?;
    let offset = client.wall_minus_mono().ok_or(JoinError::NoClock)?;
    let (clocks, shifted) = server::onto_client_clock(steps, offset);
    let wall = |mono: u64| u64::try_from(i128::from(mono) + offset).unwrap_or(0);
    let within: Vec<&server::Placed<'_>> =
        shifted.iter().filter(|step| step.end_ns >= first && step.start_ns <= last).collect();
    if within.is_empty() {
        let ends = |steps: &[StepFacts]| {
            let of = |step: Option<&StepFacts>| step.map_or(0, |step| step.submit_wall_ns);
            (of(steps.first()), of(steps.last()))
        };
        return Err(JoinError::NoOverlap { run: (wall(first), wall(last)), records: ends(steps) });
    }
    let width = client.slice_ns();
    let places = first / width..=last / width;
    let slices = places.clone().map(|place| {
        let from = place * width;
        let mut slice = client.slice(place);
        slice.start_s = (place - places.start()) as f64 * width as f64 / 1e9;
        slice.server = ServerSlice::of(&within, from, from + width);
        slice
    });
    let slowest = |requests: &[SlowRequest]| -> Vec<Slowest> {
        requests
            .iter()
            .map(|&request| {
                let (from, to) = request.window_ns;
                let sent_s = request.sent_ns.saturating_sub(places.start() * width) as f64 / 1e9;
                Slowest { request, sent_s, during: ServerSlice::of(&within, from, to) }
            })
            .collect()
    };
    Ok(Joined {
        clocks,
        slices: slices.collect(),
        slowest_ttft: slowest(client.slowest_ttft()),
        slowest_tpot: slowest(client.slowest_tpot()),
        steps: (within.len(), steps.len()),
    })
}
