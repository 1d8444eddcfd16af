//! The four parts of the test, each a handful of runs.

use std::time::Duration;

use serde::Serialize;
use takt_record::{PhaseResult, ResultDoc, VerdictStatus};

use super::server::Deeds;
use super::trial::{Had, Trials};
use super::truth::{self, Errors};
use crate::exit::Failure;

/// Lateness of the sends at one rate in one wait mode, and response times; microseconds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sends {
    pub(super) requests: u64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// Absent below 1,000 requests.
    pub(super) p999: Option<f64>,
    /// Median latency from send.
    pub(super) latency_p50: Option<f64>,
    /// Median latency from schedule.
    pub(super) from_schedule_p50: Option<f64>,
    pub(super) verdict: VerdictStatus,
}

/// The greatest load whose verdict is still valid.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Greatest {
    pub(super) value: u64,
    /// What speaks against the next load that was tried; absent when all were valid.
    pub(super) next: Option<(u64, String)>,
}

/// A row of a table: what was set, and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Row<T> {
    pub(super) name: String,
    pub(super) rate: u64,
    pub(super) had: Had<T>,
}

/// How late sends are, by rate and wait mode.
pub(super) fn lateness(
    trials: &mut Trials,
    url: &str,
    rates: &[u64],
    modes: &[&str],
    span: Duration,
) -> Result<Vec<Row<Sends>>, Failure> {
    let mut rows = Vec::new();
    for mode in modes {
        for &rate in rates {
            let had = sends(trials, url, rate, &["--wait", mode], span)?;
            rows.push(Row { name: (*mode).to_owned(), rate, had });
        }
    }
    Ok(rows)
}

/// What a clock outside the reactor changes.
pub(super) fn pacers(
    trials: &mut Trials,
    url: &str,
    rates: &[u64],
    span: Duration,
) -> Result<Vec<Row<Sends>>, Failure> {
    let mut rows = Vec::new();
    for pacer in ["inline", "thread", "process"] {
        let set = format!("engine.pacer={pacer}");
        for &rate in rates {
            let had = if pacer == "process" && cfg!(not(feature = "zmq")) {
                Had::Absent("this takt was built without ZMQ".to_owned())
            } else {
                sends(trials, url, rate, &["--set", &set], span)?
            };
            rows.push(Row { name: pacer.to_owned(), rate, had });
        }
    }
    Ok(rows)
}

/// How far reported times are from what the server did.
pub(super) fn errors(
    trials: &mut Trials,
    url: &str,
    deeds: &Deeds,
    rates: &[u64],
    span: Duration,
) -> Result<Vec<Row<Errors>>, Failure> {
    let mut rows = Vec::new();
    for &rate in rates {
        let text = rate.to_string();
        let args = ["--url", url, "--model", "mock", "--stream", "--rate", &text];
        // Deeds of an earlier run have other ids and are no loss.
        let had =
            trials.run(&args, span, |doc, folder| truth::compare(doc, folder, &deeds.take()))?;
        rows.push(Row { name: "guard".to_owned(), rate, had });
    }
    Ok(rows)
}

/// The greatest rate whose verdict is valid, sought from `first` by doubling, then by halving the ratio.
pub(super) fn greatest_rate(
    trials: &mut Trials,
    url: &str,
    first: u64,
    steps: u32,
    span: Duration,
) -> Result<Had<Greatest>, Failure> {
    search(first, RATE_MOST, steps, |rate| {
        let text = rate.to_string();
        let args = ["--url", url, "--api", "raw", "--rate", &text];
        trials.run(&args, span, |doc, _| Ok(against(doc)))
    })
}

/// The most streams in flight whose verdict is valid while the reactor has time left.
pub(super) fn greatest_streams(
    trials: &mut Trials,
    url: &str,
    (first, most): (u64, u64),
    steps: u32,
    span: Duration,
) -> Result<Had<Greatest>, Failure> {
    search(first.min(most), most, steps, |streams| {
        let text = streams.to_string();
        let args = ["--url", url, "--model", "mock", "--stream", "--concurrency", &text];
        trials.run(&args, span, |doc, _| {
            let reached = phase(doc)?.in_flight.map_or(0.0, |n| n.max);
            Ok(if reached < streams as f64 {
                Some(format!("only {reached} were in flight at once"))
            } else {
                against(doc)
            })
        })
    })
}

fn sends(
    trials: &mut Trials,
    url: &str,
    rate: u64,
    how: &[&str],
    span: Duration,
) -> Result<Had<Sends>, Failure> {
    let text = rate.to_string();
    let mut args = vec!["--url", url, "--api", "raw", "--rate", &text];
    args.extend(how);
    trials.run(&args, span, |doc, _| {
        let phase = phase(doc)?;
        let late = phase.lateness_us.ok_or("no request was sent")?;
        let median = |times: Option<takt_record::Distribution>| times.map(|ms| ms.p.p50 * 1e3);
        Ok(Sends {
            requests: late.count,
            p50: late.p.p50,
            p99: late.p.p99,
            p999: (late.count >= 1_000).then_some(late.p.p99_9),
            latency_p50: median(phase.latency_ms.from_send),
            from_schedule_p50: median(phase.latency_ms.from_schedule),
            verdict: doc.verdict.status,
        })
    })
}

fn phase(doc: &ResultDoc) -> Result<&PhaseResult, String> {
    doc.phases.first().ok_or_else(|| "the run has no phase".to_owned())
}

/// What speaks against a run: the worst reason of its verdict, or that the client was the limit.
fn against(doc: &ResultDoc) -> Option<String> {
    let reasons = doc.verdict.reasons.iter();
    let bad = reasons.filter(|r| r.status != VerdictStatus::Valid || r.name == "client_bound");
    let worst = bad.max_by_key(|reason| reason.status)?;
    Some(format!("{} {:.4}, limit {:.4}", worst.name, worst.value, worst.limit))
}

/// The greatest value that nothing speaks against: doubled or halved from `first` until one is good and
/// another is not, then between the two, `steps` times.
fn search(
    first: u64,
    most: u64,
    steps: u32,
    mut try_it: impl FnMut(u64) -> Result<Had<Option<String>>, Failure>,
) -> Result<Had<Greatest>, Failure> {
    let (mut good, mut bad): (Option<u64>, Option<(u64, String)>) = (None, None);
    let mut but = None;
    let mut left = DOUBLINGS_MOST;
    let mut halvings = steps;
    let mut value = first;
    loop {
        match try_it(value)? {
            Had::Absent(why) => match good {
                // What is known holds; where it ends is not known.
                Some(value) => return Ok(Had::Figures(Greatest { value, next: bad }, Some(why))),
                None => return Ok(Had::Absent(why)),
            },
            Had::Figures(None, why) => (good, but) = (Some(value), but.or(why)),
            Had::Figures(Some(says), why) => (bad, but) = (Some((value, says)), but.or(why)),
        }
        value = match (good, &bad) {
            (Some(good), None) if good >= most => break,
            (Some(good), None) => (good * 2).min(most),
            (None, Some((bad, says))) if *bad <= LEAST || left == 0 => {
                return Ok(Had::Absent(format!("at {bad}, too: {says}")));
            }
            (None, Some((bad, _))) => bad / 2,
            (Some(good), Some((bad, _))) if halvings > 0 && bad - good > good / 10 => {
                halvings -= 1;
                ((good * bad) as f64).sqrt() as u64
            }
            (Some(_), Some(_)) => break,
            (None, None) => first,
        };
        left = left.saturating_sub(1);
    }
    Ok(match good {
        Some(value) => Had::Figures(Greatest { value, next: bad }, but),
        None => Had::Absent("nothing was tried".to_owned()),
    })
}

/// The greatest rate that is tried.
const RATE_MOST: u64 = 400_000;
/// Below it nothing is tried.
const LEAST: u64 = 100;
const DOUBLINGS_MOST: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// What the search finds when all up to `limit` is good, and how many runs it took.
    fn found(first: u64, most: u64, steps: u32, limit: u64) -> (Had<Greatest>, u32) {
        let mut tried = 0;
        let had = search(first, most, steps, |value| {
            tried += 1;
            Ok(Had::Figures((value > limit).then(|| "too much".to_owned()), None))
        });
        (had.unwrap_or_else(|failure| panic!("{}", failure.error)), tried)
    }

    #[test]
    fn the_search_ends_within_a_tenth_below_the_limit() {
        for limit in [150, 3_000, 20_000, 77_000, 399_000] {
            let (had, tried) = found(20_000, RATE_MOST, 4, limit);
            let greatest = had.figures().unwrap_or_else(|| panic!("{had:?}"));
            assert!(greatest.value <= limit, "{greatest:?}");
            assert!(greatest.value as f64 > limit as f64 * 0.85, "{greatest:?} of {limit}");
            assert!(greatest.next.as_ref().is_some_and(|(next, _)| *next > limit), "{greatest:?}");
            assert!(tried <= 13, "{tried} runs");
        }
    }

    #[test]
    fn all_good_and_none_good_are_said() {
        let (all, _) = found(500, 4_000, 3, u64::MAX);
        assert_eq!(all.figures().map(|g| (g.value, g.next.is_none())), Some((4_000, true)));
        let (none, tried) = found(20_000, 40_000, 3, 0);
        assert!(none.but().is_some_and(|why| why.contains("too much")) && tried < 10, "{none:?}");
    }

    #[test]
    fn a_disturbance_ends_the_search_with_what_is_known() {
        let had = search(1_000, 8_000, 3, |value| {
            let quiet = value < 3_000;
            Ok(if quiet { Had::Figures(None, None) } else { Had::Absent("noise".to_owned()) })
        });
        let had = had.unwrap_or_else(|failure| panic!("{}", failure.error));
        assert_eq!((had.figures().map(|g| g.value), had.but()), (Some(2_000), Some("noise")));
    }
}
