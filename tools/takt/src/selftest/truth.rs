//! How far reported times are from what the server did, request by request.
//!
//! Both processes stamp by one monotonic clock. Of a time that is reported *from send*, the send cancels out:
//! its error is the client's stamp of what came less the server's stamp of the write. The server's own
//! lateness, its stamp less its plan, is told apart and charged to nobody else.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;
use takt_record::{
    Completed, Fold, Outcome, Record, RequestId, RequestKey, ResultDoc, VerdictStatus, fold_journal,
};

use super::server::Did;

/// Errors at one rate, microseconds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Errors {
    /// Requests that could be compared.
    pub(super) requests: usize,
    /// Reported time to first token against the write of the first token.
    pub(super) ttft: Option<Spread>,
    /// The same against its planned time: with the lateness of the server.
    pub(super) ttft_planned: Option<Spread>,
    /// Gap between two token events against that of their writes, whichever is longer.
    pub(super) gap: Option<Spread>,
    /// Reported latency against the write of the last byte.
    pub(super) latency: Option<Spread>,
    /// How late the server wrote.
    pub(super) server: Option<Spread>,
    /// The verdict of the run.
    pub(super) verdict: VerdictStatus,
}

/// Two percentiles by nearest rank, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) p50: f64,
    pub(super) p99: f64,
}

/// What the client recorded.
#[derive(Default)]
struct Seen {
    completed: Vec<Completed>,
    /// Token events, and whether each came with the one before.
    events: HashMap<RequestKey, Vec<(u64, bool)>>,
}

impl Fold for Seen {
    fn fold(&mut self, record: &Record<'_>) {
        match record {
            Record::Completed(completed) => self.completed.push(*completed),
            Record::Token(token) => {
                let events = self.events.entry(token.key).or_default();
                events.push((token.at.as_nanos(), token.coalesced));
            }
            _ => {}
        }
    }
}

/// Compares a run with what the server did.
pub(super) fn compare(
    doc: &ResultDoc,
    folder: &Path,
    deeds: &HashMap<String, Did>,
) -> Result<Errors, String> {
    let seen = read(folder).map_err(|error| format!("the journal cannot be read: {error}"))?;
    // A session's ids are keyed by the low half of its number.
    let session = u128::from_str_radix(&doc.session_id, 16).map_err(|error| error.to_string())?;
    let (mut ttft, mut planned, mut server) = (Vec::new(), Vec::new(), Vec::new());
    let (mut gap, mut latency, mut requests) = (Vec::new(), Vec::new(), 0);
    let none = Vec::new();
    for done in seen.completed.iter().filter(|done| done.outcome == Outcome::Ok) {
        let id = RequestId::new(session as u64, done.key).to_string();
        let events = seen.events.get(&done.key).unwrap_or(&none);
        let Some(did) = deeds.get(&id).filter(|did| did.events.len() == events.len()) else {
            continue;
        };
        requests += 1;
        if let (Some(first), Some(&(plan, written))) = (done.times.first_token, did.events.first())
        {
            let first = first.as_nanos();
            ttft.push(first.abs_diff(written));
            planned.push(first.abs_diff(plan));
        }
        server.extend(did.events.iter().map(|(plan, written)| written.abs_diff(*plan)));
        for (read, wrote) in events.windows(2).zip(did.events.windows(2)) {
            let ([(before, _), (at, coalesced)], [(_, from), (_, to)]) = (read, wrote) else {
                continue;
            };
            if !coalesced {
                gap.push((at - before).abs_diff(to - from));
            }
        }
        if let Some(ended) = did.ended {
            latency.push(done.times.end.as_nanos().abs_diff(ended));
        }
    }
    if requests == 0 {
        return Err("no request could be compared with what the server did".to_owned());
    }
    Ok(Errors {
        requests,
        ttft: spread(ttft),
        ttft_planned: spread(planned),
        gap: spread(gap),
        latency: spread(latency),
        server: spread(server),
        verdict: doc.verdict.status,
    })
}

fn read(folder: &Path) -> anyhow::Result<Seen> {
    let mut seen = Seen::default();
    for path in takt_recorder::journal_files(folder)? {
        fold_journal(&mut takt_recorder::open_journal(&path)?, &mut seen)?;
    }
    Ok(seen)
}

/// Of nanoseconds; `None` of none.
fn spread(mut ns: Vec<u64>) -> Option<Spread> {
    ns.sort_unstable();
    let rank = |p: f64| {
        let rank = (ns.len() as f64 * p).ceil() as usize;
        ns.get(rank.max(1) - 1).map(|ns| *ns as f64 / 1e3)
    };
    Some(Spread { p50: rank(0.5)?, p99: rank(0.99)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let hundred = spread((1..=100).rev().map(|us| us * 1_000).collect());
        assert_eq!(hundred, Some(Spread { p50: 50.0, p99: 99.0 }));
        assert_eq!(spread(vec![7_000]), Some(Spread { p50: 7.0, p99: 7.0 }));
        assert_eq!(spread(Vec::new()), None);
    }
}
