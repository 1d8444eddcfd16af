//! Whether the answers of an API have anything that a fault changes: tried on one of them.
//!
//! The answer is streamed where the API streams, has a dozen tokens and every count, and many came before it. What
//! counts is when which bytes leave, and how it ends.

use takt_time::Nanos;
use takt_wire::{Limits, RequestParser, Step};

use super::faults::NOTHING;
use super::{Fault, Script, Setting};
use crate::config::TimedConfig;
use crate::distribution::CountDistribution;
use crate::generation::{Generation, Names};
use crate::openai::Api;
use crate::plan::{Plan, PlanKey};

/// Whether `fault` makes a difference to an answer of `api`, with the setting that it has by itself.
pub(super) fn changes(fault: Fault, api: Api) -> bool {
    let fault = Fault { setting: fault.kind.default, ..fault };
    let nothing = Fault { kind: &NOTHING, setting: Setting::Nothing };
    answer(fault, api) != answer(nothing, api)
}

fn answer(fault: Fault, api: Api) -> Option<Script> {
    let request =
        format!("POST {} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{BODY}", api.path(), BODY.len());
    let mut parser = RequestParser::new(Limits::default());
    let Ok(Step::Request { request, .. }) = parser.next(request.as_bytes()) else { return None };
    let config = TimedConfig { tokens: CountDistribution::fixed(TOKENS), ..TimedConfig::default() };
    let plan = Plan::draw(&config, PlanKey::Ordinal(0));
    let names = Names { model: b"mock".to_vec(), anchor: takt_time::Anchor::default() };
    let mut generation = Generation::new(&config, api, &request, u64::MAX / 2, plan);
    Some(generation.script(fault, Nanos::ZERO, &names))
}

const BODY: &str = "{\"stream\":true,\"stream_options\":{\"include_usage\":true}}";
const TOKENS: u32 = 12;
