//! What a probe prints.

use std::fmt::Write as _;

use serde_json::{Value, json};
use takt_wire::{Api, FinishReason};

use super::exchange::Exchange;
use super::{Probed, ms};

/// For people.
pub(super) fn text(all: &[Probed], api: Api) -> String {
    let mut text = String::new();
    for probed in all {
        one(&mut text, probed, api);
    }
    text
}

fn one(text: &mut String, probed: &Probed, api: Api) {
    let place = probed.reached.to_json();
    let of = |key: &str| place[key].as_str().unwrap_or_default().to_owned();
    // Writing to a string does not fail.
    let over = match &probed.reached.tls {
        Some(spoken) => format!("HTTP over {spoken}"),
        None => "plain HTTP".to_owned(),
    };
    let (url, address) = (of("url"), of("address"));
    let _ = writeln!(text, "{url}   {address}, {over}, api {}", api.as_str());
    if let Some(models) = &probed.models {
        let shown: Vec<_> = models.names.iter().take(MODELS).map(String::as_str).collect();
        let more = models.names.len().saturating_sub(MODELS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(text, "  models: {}{more}; {} is used", shown.join(", "), probed.model);
    }
    let _ = writeln!(
        text,
        "\n  {:9} {:>6} {:>10} {:>11} {:>10} {:>11}  {:14} connection",
        "answer", "status", "first byte", "first token", "all", "tokens", "finish"
    );
    for exchange in &probed.exchanges {
        let _ = writeln!(text, "{}", row(exchange));
        if let Some(why) = &exchange.failure {
            let _ = writeln!(text, "    failed: {why}");
        }
    }
    text.push('\n');
    if let Some(said) = probed.exchanges.iter().map(|e| e.text.trim()).find(|t| !t.is_empty()) {
        let short: String = said.chars().take(SAID).collect();
        let dots = if short.len() < said.len() { " …" } else { "" };
        let _ = writeln!(text, "  it said: {short:?}{dots}");
    }
    let _ = writeln!(text, "  connections: {}", connections(&probed.exchanges));
    let good = probed.exchanges.iter().filter(|exchange| exchange.failure.is_none()).count();
    let _ = writeln!(text, "  {good} of {} requests succeeded", probed.exchanges.len());
}

fn row(exchange: &Exchange) -> String {
    let time = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
    let number = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let usage = exchange.usage.unwrap_or_default();
    let tokens = match exchange.usage {
        Some(_) => {
            let count = |n: Option<u32>| number(n.map(u64::from));
            format!("{} in {} out", count(usage.prompt), count(usage.completion))
        }
        None => "-".to_owned(),
    };
    format!(
        "  {:9} {:>6} {:>10} {:>11} {:>10} {tokens:>11}  {:14} {}",
        if exchange.stream { "streamed" } else { "whole" },
        number(exchange.status.map(u64::from)),
        time(ms(exchange.first_byte)),
        time(ms(exchange.first_token)),
        time(ms(Some(exchange.all))),
        exchange.finish.map_or("-", finish),
        connection(exchange),
    )
}

fn connection(exchange: &Exchange) -> &'static str {
    match (exchange.reused, exchange.stale, exchange.kept) {
        (true, _, true) => "used again, kept",
        (true, _, false) => "used again, closed",
        (false, true, true) => "new (the last was closed unsaid), kept",
        (false, true, false) => "new (the last was closed unsaid), closed",
        (false, false, true) => "new, kept",
        (false, false, false) => "new, closed",
    }
}

fn connections(exchanges: &[Exchange]) -> String {
    let count = |of: &dyn Fn(&Exchange) -> bool| exchanges.iter().filter(|e| of(e)).count();
    let (reused, stale) = (count(&|e| e.reused), count(&|e| e.stale));
    match (reused, stale) {
        (0, 0) => "not kept by the server".to_owned(),
        (reused, 0) => format!("kept, used again {reused} times"),
        (reused, stale) => format!(
            "used again {reused} times, closed without a word {stale} times (a run retries those once)"
        ),
    }
}

/// For programs: the same, absent where it was not seen.
pub(super) fn json(all: &[Probed], api: Api) -> String {
    let endpoints: Vec<_> = all.iter().map(endpoint).collect();
    format!("{:#}\n", json!({"api": api.as_str(), "endpoints": endpoints}))
}

fn endpoint(probed: &Probed) -> Value {
    let mut value = probed.reached.to_json();
    value["models"] = json!(probed.models.as_ref().map(|models| &models.names));
    value["model"] = json!(Some(&probed.model).filter(|model| !model.is_empty()));
    value["requests"] = probed.exchanges.iter().map(exchange).collect();
    value
}

fn exchange(exchange: &Exchange) -> Value {
    let usage = exchange.usage.unwrap_or_default();
    json!({
        "stream": exchange.stream,
        "ok": exchange.failure.is_none(),
        "failure": exchange.failure,
        "status": exchange.status,
        "first_byte_ms": ms(exchange.first_byte),
        "first_token_ms": ms(exchange.first_token),
        "all_ms": ms(Some(exchange.all)),
        "token_events": exchange.events,
        "input_tokens": usage.prompt,
        "output_tokens": usage.completion,
        "finish": exchange.finish.map(finish),
        "text": exchange.text,
        "reused": exchange.reused,
        "kept": exchange.kept,
    })
}

fn finish(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::FunctionCall => "function_call",
        FinishReason::Other => "other",
    }
}

const MODELS: usize = 5;
const SAID: usize = 100;
