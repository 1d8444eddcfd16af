//! What can be said of a phase before it runs: how many requests, and for how long.

use std::cell::RefCell;
use std::rc::Rc;

use takt_actors::Samples as _;
use takt_time::Span;

use crate::config::{Config, Phase};
use crate::plan::{self, Times};
use crate::samples::Prepared;

/// What can be said of a phase before it runs.
pub(crate) struct Forecast<'c> {
    pub(crate) phase: &'c Phase,
    pub(crate) samples: u32,
    /// About how many requests, when that does not depend on the server.
    pub(crate) requests: Option<u64>,
    /// `requests` is what arrivals will be on average, rather than a count that was given.
    pub(crate) on_average: bool,
    /// How long it issues, when that does not depend on the server.
    pub(crate) time: Option<Span>,
    /// It issues no longer than this, whatever the server does.
    pub(crate) longest: Option<Span>,
}

/// Of every phase of `config`, over what was prepared for it, at `times` if it replays some.
pub(crate) fn forecasts<'c>(
    config: &'c Config,
    prepared: &[Rc<RefCell<Prepared>>],
    times: &Times,
) -> Vec<Forecast<'c>> {
    let samples = prepared.iter().zip(&config.phases).map(|(samples, phase)| {
        let counted = phase.load.agentic().is_some_and(|talks| talks.conversations.is_some());
        if counted { plan::length(phase, &samples.borrow()) } else { samples.borrow().len() }
    });
    let phases = config.phases.iter().zip(samples).zip(times);
    phases.map(|((phase, n), times)| Forecast::new(phase, n, times.as_deref())).collect()
}

impl<'c> Forecast<'c> {
    /// Of a phase over so many samples, at `times` if it replays some.
    pub(crate) fn new(phase: &'c Phase, samples: u32, times: Option<&[Span]>) -> Self {
        match times {
            Some(times) => Self::of_recording(phase, samples, times),
            None => Self::of(phase, samples),
        }
    }

    fn of(phase: &'c Phase, samples: u32) -> Self {
        let (stop, rate) = (&phase.stop, phase.load.rate());
        let counted = stop.counted(plan::pass(phase, samples).into());
        let time_of = |requests: u64| rate.map(|rate| Span::from_secs_f64(requests as f64 / rate));
        let longest = stop.duration.into_iter().chain(stop.max_duration).min();
        let by_count = counted.and_then(time_of);
        let time = match (by_count, longest, counted) {
            (Some(by_count), longest, _) => Some(longest.map_or(by_count, |l| l.min(by_count))),
            // Without a count only time ends it.
            (None, longest, None) => longest.or(stop.min_duration),
            (None, _, Some(_)) => None,
        };
        let arrivals =
            rate.zip(time).map(|(rate, time)| (time.as_secs_f64() * rate).round() as u64);
        let cut_short = by_count.zip(longest).is_some_and(|(by_count, longest)| longest < by_count);
        let (requests, on_average) = match counted {
            Some(counted) if !cut_short => (Some(counted), false),
            _ => (arrivals, true),
        };
        Self { phase, samples, requests, on_average, time, longest }
    }

    /// Of a phase that replays `times`: all is known.
    fn of_recording(phase: &'c Phase, samples: u32, times: &[Span]) -> Self {
        let (stop, speed) = (&phase.stop, phase.load.speed());
        let longest = stop.duration.into_iter().chain(stop.max_duration).min();
        let at = |at: &Span| Span::from_secs_f64(at.as_secs_f64() / speed);
        let in_time = times.iter().map(at).take_while(|at| longest.is_none_or(|end| *at < end));
        let most = stop.requests.unwrap_or(u64::MAX);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let (requests, time) = in_time.take(most).fold((0, Span::ZERO), |(n, _), at| (n + 1, at));
        let (requests, time) = (Some(requests), Some(time));
        Self { phase, samples, requests, on_average: false, time, longest }
    }
}
