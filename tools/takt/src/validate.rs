//! `takt validate`: everything that can be known to be wrong without sending anything, and what a run would
//! do.

use std::fmt::Write as _;

use serde_json::{Value, json};
use takt_time::Span;

use crate::cli::{Format, ValidateArgs};
use crate::config::{self, Begin, Config, Load, Phase};
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::forecast::{Forecast, forecasts};
use crate::shares::Shares;
use crate::{flags, outcome, run, samples};

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
    let alone = Shares::alone(config.phases.len());
    run::phases(&config, &prepared, &times, None, &alone)?;
    let forecasts = forecasts(&config, &prepared, &times);
    let mut text = match args.format {
        Format::Text => to_text(&config, &path.display().to_string(), &forecasts),
        Format::Json => to_json(&config, &forecasts),
    };
    config::clear(&mut text, &config.secrets);
    outcome::print(&text)?;
    Ok(Exit::Done)
}

impl Forecast<'_> {
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
        Load::Agentic(ref agentic) => match agentic.begin {
            Begin::Concurrency(target) => format!("{pattern} {target}"),
            Begin::Arrivals(rate, _) => format!("{pattern}, {rate} conversations/s"),
        },
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
