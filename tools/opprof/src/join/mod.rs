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

pub use client::ClientFold;

use takt_record::{Joined, JoinedRequest, JoinedSlice};

use crate::steps::StepFacts;
use client::Slow;
use server::slice;

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
    let first = places.start() * width;
    let slices = places.clone().map(|place| {
        let (from, client_side) = (place * width, client.slice(place));
        JoinedSlice {
            start_s: (from - first) as f64 / 1e9,
            answers: client_side.answers,
            ttft_p50_ms: millis(client_side.ttft.percentile(50)),
            ttft_p95_ms: millis(client_side.ttft.percentile(95)),
            tpot_p50_ms: millis(client_side.tpot.percentile(50)),
            profiled: client.profiled(from, from + width),
            server: slice(&within, from, from + width),
        }
    });
    let slow = |slow: &Slow| JoinedRequest {
        phase: slow.key.phase.0,
        ordinal: slow.key.ordinal,
        sent_s: slow.sent_ns.saturating_sub(first) as f64 / 1e9,
        value_ms: slow.value_ns as f64 / 1e6,
        during: slice(&within, slow.window_ns.0, slow.window_ns.1),
    };
    Ok(Joined {
        clocks,
        steps: within.len() as u64,
        recorded: steps.len() as u64,
        slice_s: width as f64 / 1e9,
        slices: slices.collect(),
        slowest_ttft: client.slowest_ttft().iter().map(slow).collect(),
        slowest_tpot: client.slowest_tpot().iter().map(slow).collect(),
    })
}

fn millis(ns: Option<u64>) -> Option<f64> {
    ns.map(|ns| ns as f64 / 1e6)
}
