//! What the journal of a run will take of the disk, reckoned before anything is sent.
//!
//! An open loop has its rate, and a recording its mean one, so its journal has a size an hour. A closed loop is as fast as its server:
//! of it the size in all is said, or that of a request where only time ends it. Bytes of a record are those that the
//! tests of `takt-record` hold typical records to; tokens are what a request may ask for.

use std::path::Path;

use takt_record::SessionPlan;

use crate::config::{Config, EndpointConfig};
use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::forecast::Forecast;

/// What a journal will take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    a_request: f64,
    /// The greatest rate that was asked for, a second, and the bytes an hour at it.
    paced: Option<(f64, f64)>,
    /// Bytes in all, where it is known when the phases stop.
    in_all: Option<f64>,
}

/// Says what the journal will take, and refuses a disk that cannot even hold a report.
pub(crate) fn preflight(
    config: &Config,
    plan: &SessionPlan,
    forecasts: &[Forecast<'_>],
    folder: &Path,
    console: &Console,
) -> Result<(), Failure> {
    let free = takt_net::limits::free_bytes(folder);
    if let Some(free) = free.filter(|&free| free < LEAST_FREE) {
        let says = format!(
            "{}: its disk has {} free, too little for any report; name another folder with --out",
            folder.display(),
            size(free as f64)
        );
        return Err(Failure::says(Exit::Setup, says));
    }
    let Some(estimate) = Estimate::of(config, plan, forecasts) else { return Ok(()) };
    let mut says = format!("journal: {}", estimate.says());
    if let Some(free) = free {
        says.push_str(&format!("; {} free", size(free as f64)));
    }
    console.info(says);
    let fits = |free: u64| estimate.in_all.is_none_or(|bytes| bytes <= free as f64);
    if let Some(free) = free.filter(|&free| !fits(free)) {
        console.warn(format!(
            "the journal will not fit: about {} of {} free; use journal=sampled 100, \
             journal_size_cap=1GB or another --out",
            size(estimate.in_all.unwrap_or_default()),
            size(free as f64)
        ));
    }
    Ok(())
}

impl Estimate {
    /// Of the phases of `config` as they are planned and foreseen; `None` without a journal.
    fn of(config: &Config, plan: &SessionPlan, forecasts: &[Forecast<'_>]) -> Option<Self> {
        let share = 1.0 / f64::from(config.journal.one_in?.get());
        let a_request = bytes_of_a_request(&config.endpoint) * share;
        let fastest = plan.phases.iter().filter_map(|phase| phase.rate).reduce(f64::max);
        let in_all = forecasts.iter().map(|forecast| forecast.requests).sum::<Option<u64>>();
        let cap = config.journal.size_cap.map_or(f64::INFINITY, |cap| cap as f64);
        let always = ALWAYS_A_SECOND * 3600.0;
        Some(Self {
            a_request,
            paced: fastest.map(|rate| (rate, rate * 3600.0 * a_request + always)),
            in_all: in_all.map(|requests| (requests as f64 * a_request).min(cap)),
        })
    }

    fn says(&self) -> String {
        let in_all = self.in_all.map(|bytes| format!("about {} in all", size(bytes)));
        match (self.paced, in_all) {
            (Some((rate, per_hour)), in_all) => {
                let an_hour =
                    format!("about {} an hour at {rate} requests a second", size(per_hour));
                [Some(an_hour), in_all].into_iter().flatten().collect::<Vec<_>>().join(", ")
            }
            (None, Some(in_all)) => in_all,
            // How many there will be is the server's to say.
            (None, None) => format!("about {} a request", size(self.a_request)),
        }
    }
}

fn bytes_of_a_request(endpoint: &EndpointConfig) -> f64 {
    if !endpoint.stream {
        return ISSUED + COMPLETED_PLAIN;
    }
    let asked = ["max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"];
    let tokens = [&endpoint.extra_body, &endpoint.body]
        .into_iter()
        .flat_map(|body| asked.iter().filter_map(|key| body.get(*key)?.as_f64()))
        .next()
        .unwrap_or(USUAL_TOKENS);
    ISSUED + COMPLETED_STREAM + tokens * TOKEN
}

/// A number of bytes as people say it.
fn size(bytes: f64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.into_iter().find(|(scale, _)| bytes >= *scale) {
        Some((scale, unit)) if bytes >= 10.0 * scale => format!("{:.0} {unit}", bytes / scale),
        Some((scale, unit)) => format!("{:.1} {unit}", bytes / scale),
        None => format!("{bytes:.0} B"),
    }
}

/// Bytes of packed records.
const ISSUED: f64 = 12.0;
const COMPLETED_PLAIN: f64 = 32.0;
const COMPLETED_STREAM: f64 = 48.0;
const TOKEN: f64 = 9.0;
/// Clocks, health and the heads of blocks, a second.
const ALWAYS_A_SECOND: f64 = 1_000.0;
/// Tokens of an answer when the request asks for no number.
const USUAL_TOKENS: f64 = 256.0;
/// Room for the report, the result and the journal's head.
const LEAST_FREE: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use takt_time::Span;

    use super::*;
    use crate::config::Node;
    use crate::identity::Identity;
    use crate::plan;

    /// Of phases over so many samples each, the first at these times if there are any.
    fn estimate(rest: &str, samples: &[u32], times: Option<&[Span]>) -> Option<Estimate> {
        let yaml = format!("endpoint: {{url: 'http://h', model: m}}\n{rest}\n");
        let config = Config::read(&Node::from_yaml(&yaml, "f").unwrap(), "f").unwrap();
        let mut all = vec![None; config.phases.len()];
        all[0] = times.map(Into::into);
        let identity = Identity::new(takt_time::Anchor::default()).unwrap();
        let plan = plan::session(&config, &all, &identity, serde_json::Value::Null);
        let phases = config.phases.iter().zip(samples).zip(&all);
        let forecasts: Vec<_> =
            phases.map(|((phase, n), times)| Forecast::new(phase, *n, times.as_deref())).collect();
        Estimate::of(&config, &plan, &forecasts)
    }

    #[test]
    fn e5_an_open_loop_has_bytes_an_hour_and_in_all() {
        let phase = "phases: [{name: p, duration: 10s, load: {pattern: constant, rate: 100}}]";
        let got = estimate(phase, &[1_000], None).unwrap();
        // 100 a second of 12 + 48 + 256 * 9 bytes, and 1,000 bytes a second besides.
        let a_request = 12.0 + 48.0 + 256.0 * 9.0;
        assert_eq!(got.paced, Some((100.0, 3600.0 * (100.0 * a_request + 1_000.0))));
        assert_eq!(got.in_all, Some(1_000.0 * a_request));
        assert_eq!(
            got.says(),
            "about 855 MB an hour at 100 requests a second, about 2.4 MB in all"
        );
    }

    #[test]
    fn e5_a_sample_and_a_cap_take_less_and_no_journal_nothing() {
        let phase = "phases: [{name: p, requests: 1000000, load: {pattern: concurrency, \
                     target_concurrency: 4}}]";
        let whole = estimate(phase, &[7], None).unwrap();
        assert_eq!((whole.paced, whole.says().as_str()), (None, "about 2.4 GB in all"));
        let timed = "phases: [{name: p, duration: 10s, load: {pattern: concurrency, target_concurrency: 4}}]";
        assert_eq!(estimate(timed, &[7], None).unwrap().says(), "about 2.4 kB a request");
        let tenth = estimate(&format!("journal: sampled 10\n{phase}"), &[7], None).unwrap();
        assert_eq!(tenth.in_all.map(|bytes| (bytes * 10.0).round()), whole.in_all);
        let capped = estimate(&format!("journal_size_cap: 1MB\n{phase}"), &[7], None).unwrap();
        assert_eq!(capped.in_all, Some(1e6));
        assert_eq!(estimate(&format!("journal: off\n{phase}"), &[7], None), None);
    }
    #[test]
    fn e5_a_recording_has_the_rate_of_its_times_and_the_requests_that_fall_in_its_duration() {
        let phase = |more: &str| {
            format!("phases: [{{name: p, {more} load: {{pattern: trace, path: t.txt, speed: 2}}}}]")
        };
        // A request every tenth of a second for 100 s, replayed twice as fast.
        let times: Vec<_> = (0..=1_000).map(|n| Span::from_millis(n * 100)).collect();
        let a_request = 12.0 + 48.0 + 256.0 * 9.0;
        for (more, requests) in [("", 1_001.0), ("duration: 10s,", 200.0), ("requests: 7,", 7.0)] {
            let got = estimate(&phase(more), &[5], Some(&times)).unwrap();
            let per_hour = 3600.0 * (20.0 * a_request + 1_000.0);
            assert_eq!(got.paced, Some((20.0, per_hour)), "{more}");
            assert_eq!(got.in_all, Some(requests * a_request), "{more}");
        }
    }
}
