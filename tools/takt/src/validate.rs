//! `takt validate`: everything that can be known to be wrong without sending anything, and what a run would
//! do.

use std::fmt::Write as _;

use serde_json::{Value, json};
use takt_actors::Samples as _;
use takt_time::Span;

use crate::cli::{Format, ValidateArgs};
use crate::config::{self, Config, Load, Phase};
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::{flags, outcome, plan, run, samples};

/// Checks a file and prints what it stands for.
pub(crate) fn validate(args: &ValidateArgs, console: &Console) -> Result<Exit, Failure> {
    let Some(path) = &args.config else {
        outcome::print(&config::reference())?;
        return Ok(Exit::Done);
    };
    let config = flags::from_file(path, &args.set).or_exit(Exit::Input)?;
    console.hide(&config.secrets);
    let prepared = samples::prepare(&config, console).or_exit(Exit::Input)?;
    let times = run::times(&config, &prepared)?;
    run::phases(&config, &prepared, &times, None)?;
    let samples = prepared.iter().map(|samples| samples.borrow().len());
    let phases = config.phases.iter().zip(samples).zip(&times);
    let forecasts: Vec<_> = phases
        .map(|((phase, n), times)| match times {
            Some(times) => Forecast::of_recording(phase, n, times),
            None => Forecast::of(phase, n),
        })
        .collect();
    let mut text = match args.format {
        Format::Text => to_text(&config, &path.display().to_string(), &forecasts),
        Format::Json => to_json(&config, &forecasts),
    };
    config::clear(&mut text, &config.secrets);
    outcome::print(&text)?;
    Ok(Exit::Done)
}

/// What can be said of a phase before it runs.
struct Forecast<'c> {
    phase: &'c Phase,
    samples: u32,
    /// About how many requests, when that does not depend on the server.
    requests: Option<u64>,
    /// `requests` is what arrivals will be on average, rather than a count that was given.
    on_average: bool,
    /// How long it issues, when that does not depend on the server.
    time: Option<Span>,
    /// It issues no longer than this, whatever the server does.
    longest: Option<Span>,
}

impl<'c> Forecast<'c> {
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

    fn to_json(&self) -> Value {
        json!({
            "name": self.phase.name,
            "type": self.phase.kind.as_str(),
            "pattern": self.phase.load.pattern(),
            "samples": self.samples,
            "requests": self.requests,
            "time_s": self.time.map(Span::as_secs_f64),
            "time_s_max": self.longest.map(Span::as_secs_f64),
        })
    }

    fn says(&self) -> String {
        let requests = match (self.requests, self.on_average) {
            (Some(n), false) => format!("{n} requests"),
            (Some(n), true) => format!("about {n} requests"),
            (None, _) => "as many requests as the server answers".to_owned(),
        };
        let time = match (self.time, self.longest) {
            (Some(time), _) => format!("in {time}"),
            (None, Some(longest)) => format!("in at most {longest}"),
            (None, None) => "for as long as the server takes".to_owned(),
        };
        let samples = self.samples;
        format!("{requests} {time}, from {samples} sample{}", if samples == 1 { "" } else { "s" })
    }
}

fn to_text(config: &Config, file: &str, forecasts: &[Forecast<'_>]) -> String {
    let endpoint = &config.endpoint;
    let urls: Vec<_> = endpoint.urls.iter().map(ToString::to_string).collect();
    let mut text = format!("{file}: valid\n\nname      {}\n", config.name);
    // Writing to a string does not fail.
    let _ = writeln!(text, "endpoint  {}", urls.join(", "));
    let _ = write!(text, "api       {}", endpoint.api.as_str());
    if !endpoint.model.is_empty() {
        let _ = write!(text, ", model {}", endpoint.model);
    }
    let _ = writeln!(text, "{}\n", if endpoint.stream { ", streamed" } else { "" });
    let width = |of: &dyn Fn(&Forecast<'_>) -> usize| forecasts.iter().map(of).max().unwrap_or(0);
    let names = width(&|forecast| forecast.phase.name.chars().count());
    let loads = width(&|forecast| load(forecast.phase).chars().count());
    for (place, forecast) in forecasts.iter().enumerate() {
        let (phase, says) = (forecast.phase, forecast.says());
        let (name, kind, load) = (&phase.name, phase.kind.as_str(), load(phase));
        let _ = writeln!(text, "{:>3} {name:names$}  {kind:11}  {load:loads$}  {says}", place + 1);
    }
    let _ = writeln!(text, "\n{}", total(forecasts));
    text
}

/// How long all phases issue, as far as that is known.
fn total(forecasts: &[Forecast<'_>]) -> String {
    let known = forecasts.iter().filter_map(|forecast| forecast.time);
    let sum = known.fold(Span::ZERO, |sum, time| sum + time);
    let open: Vec<_> =
        forecasts.iter().filter(|f| f.time.is_none()).map(|f| f.phase.name.as_str()).collect();
    match (&open[..], sum) {
        ([], sum) => format!("takes about {sum}, and what the last answers need"),
        (_, Span::ZERO) => "takes as long as the server needs".to_owned(),
        (open, sum) => {
            format!("takes about {sum}, and what the server needs for {}", open.join(", "))
        }
    }
}

fn load(phase: &Phase) -> String {
    let pattern = phase.load.pattern();
    match phase.load {
        Load::MaxThroughput { max_in_flight } => format!("{pattern}, {max_in_flight} in flight"),
        Load::Ramp { from, to, .. } => format!("{pattern} {from} to {to}/s"),
        Load::Trace { speed, .. } if speed != 1.0 => format!("{pattern}, {speed} times as fast"),
        ref load => match (load.rate(), load.in_flight()) {
            (Some(rate), _) => format!("{pattern} {rate}/s"),
            (None, Some(target)) => format!("{pattern} {target}"),
            (None, None) => pattern.to_owned(),
        },
    }
}

fn to_json(config: &Config, forecasts: &[Forecast<'_>]) -> String {
    let document = json!({
        "valid": true,
        "phases": forecasts.iter().map(Forecast::to_json).collect::<Vec<_>>(),
        "config": config.resolved(),
    });
    format!("{document:#}\n")
}
