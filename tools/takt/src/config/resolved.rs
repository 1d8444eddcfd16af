//! The configuration written out again: nothing implied, secrets taken out. What `config.yaml` and the
//! `config` of a result hold.

use std::path::Path;

use serde_json::{Map, Value as Json, json};
use takt_dataset::Lengths;
use takt_record::PhaseKind;
use takt_time::Span;
use takt_wire::{Api, REDACTED, is_secret_name};

use super::Config;
use super::dataset::{SYNTHETIC, Source};
use super::endpoint::EndpointConfig;
use super::load::Load;
use super::opprof::Opprof;
use super::pacer::Pacer;
use super::phase::Phase;
use super::publish::{Aggregator, Publish};
use super::score::Scoring;
use super::secret::{self, Credential};
#[cfg(feature = "zmq")]
use super::{ConfigError, Node};

impl Config {
    /// The configuration as JSON. Reading it again gives the same, secrets aside.
    pub(crate) fn resolved(&self) -> Json {
        let limits = &self.limits;
        let mut json = json!({
            "name": self.name,
            "endpoint": endpoint(&self.endpoint),
            "engine": {
                "wait": self.wait.to_string(),
                "core": self.core,
                "reactors": self.reactors,
                "pacer": self.pacer.word(),
                "pacer_core": self.pacer_core,
                "rx_timestamps": self.stamps.words().0,
                "ttft_until": self.stamps.words().1,
            },
            "connections": self.connections.to_json(self.endpoint.urls.len(), self.endpoint.has_tls()),
            "journal": self.journal.word(),
            "journal_size_cap": self.journal.size_cap,
            "seed": self.seed,
            "order": self.order.word(),
            "rng": self.rng.word(),
            "limits": {
                "request_timeout": span(limits.request_timeout),
                "first_byte_timeout": span(limits.first_byte_timeout),
                "connect_timeout": span(limits.connect_timeout),
                "endpoint_response_idle_timeout": span(limits.endpoint_response_idle_timeout),
                "run_timeout": span(limits.run_timeout),
                "service_ready_timeout": self.has_services().then(|| span(Some(self.service_ready_timeout))),
            },
            "verdict": super::verdict::to_json(&self.verdict),
            "publish": publish(&self.publish),
            "opprof": self.opprof.as_ref().map(Opprof::to_json),
            "control": self.control.as_deref().map(absolute),
            "tokenizer": self.tokenizer.as_deref().map(absolute),
            "phases": self.phases.iter().map(phase).collect::<Vec<_>>(),
        });
        if let Some(slo) = &self.slo {
            json["slo"] = slo.to_json();
        }
        self.hide(&mut json);
        json
    }

    /// Takes every secret out of a document that is to be written.
    pub(crate) fn hide(&self, json: &mut Json) {
        secret::hide(json, &self.secrets);
    }

    /// Processes of its own belong to the run.
    fn has_services(&self) -> bool {
        self.publish.aggregator != Aggregator::Off || self.pacer == Pacer::Process
    }

    /// The configuration on one line for a process that has to do with its phases alone: nowhere to send to,
    /// no secrets.
    #[cfg(feature = "zmq")]
    pub(crate) fn for_pacer(&self) -> String {
        phases_alone(self.resolved()).to_string()
    }

    /// Reads what [`Self::for_pacer`] wrote.
    #[cfg(feature = "zmq")]
    pub(crate) fn from_run(json: &str) -> Result<Self, ConfigError> {
        Self::read(&Node::from_yaml(json, "from the run")?, "run")
    }

    /// The configuration as a file that can be run again once its secrets are put back.
    pub(crate) fn to_yaml(&self) -> String {
        let mut json = self.resolved();
        escape(&mut json);
        // A tree of strings, numbers and maps can always be written; JSON is YAML too.
        serde_saphyr::to_string(&json).unwrap_or_else(|_| json.to_string())
    }
}

/// Of a configuration that was written out, what its phases need: nowhere to send to, nothing to say there, and
/// so none of what was hidden.
pub(crate) fn phases_alone(mut json: Json) -> Json {
    json["endpoint"] = json!({"url": "http://127.0.0.1", "api": json["endpoint"]["api"]});
    for key in ["connections", "publish", "opprof", "control"] {
        json[key] = Json::Null;
    }
    json
}

fn publish(publish: &Publish) -> Json {
    let any = publish.events.is_some() || publish.snapshots.is_some();
    json!({
        "events": publish.events,
        "snapshots": publish.snapshots,
        "aggregator": match &publish.aggregator {
            Aggregator::Off => json!(false),
            Aggregator::Own => json!(true),
            Aggregator::At(address) => json!(address),
        },
        "queue": any.then_some(publish.queue),
    })
}

fn endpoint(endpoint: &EndpointConfig) -> Json {
    let urls: Vec<_> = endpoint.urls.iter().map(ToString::to_string).collect();
    let mut out = Map::new();
    out.insert("url".into(), if let [one] = &urls[..] { json!(one) } else { json!(urls) });
    out.insert("api".into(), json!(endpoint.api.as_str()));
    if !endpoint.model.is_empty() {
        out.insert("model".into(), json!(endpoint.model));
    }
    if let Some(key) = &endpoint.api_key {
        out.insert("api_key".into(), credential(key, true));
    }
    let mut headers: Map<String, Json> = Map::new();
    for (name, value) in &endpoint.headers {
        let values = headers.entry(name.clone()).or_insert_with(|| json!([]));
        if let Json::Array(values) = values {
            values.push(credential(value, is_secret_name(name)));
        }
    }
    out.insert("headers".into(), Json::Object(headers));
    if endpoint.api != Api::Raw {
        if endpoint.api.streams() {
            out.insert("stream".into(), json!(endpoint.stream));
        }
        out.insert("extra_body".into(), without_secrets(&endpoint.extra_body));
    }
    out.insert("body".into(), without_secrets(&endpoint.body));
    Json::Object(out)
}

/// A header's value: what can be read again from its file is, what is secret is not shown.
fn credential(given: &Credential, is_secret: bool) -> Json {
    match &given.file {
        Some(path) => json!({"file": absolute(path)}),
        None if is_secret => json!(REDACTED),
        None => json!(given.value.reveal()),
    }
}

fn phase(phase: &Phase) -> Json {
    let stop = &phase.stop;
    let limited = stop.requests.is_some() || stop.duration.is_some() || stop.min_duration.is_some();
    let passes = !limited && !matches!(phase.load, Load::Trace { .. });
    let repeats = (phase.kind == PhaseKind::Accuracy && passes).then_some(phase.repeats);
    json!({
        "name": phase.name,
        "type": phase.kind.as_str(),
        "load": load(&phase.load),
        "dataset": source(&phase.source),
        "requests": phase.stop.requests,
        "duration": span(phase.stop.duration),
        "min_duration": span(phase.stop.min_duration),
        "max_duration": span(phase.stop.max_duration),
        "drain_after": phase.drain_after,
        "drain_timeout": span(phase.drain_timeout),
        "seed": phase.seed,
        "repeats": repeats,
        "score": phase.score.as_ref().map(Scoring::to_json),
    })
}

fn load(load: &Load) -> Json {
    let mut out = match load {
        Load::Poisson { rate } | Load::Constant { rate } => json!({"rate": rate}),
        Load::Gamma { rate, burstiness } => json!({"rate": rate, "burstiness": burstiness}),
        Load::Ramp { from, to, spacing } => {
            let (arrivals, burstiness) = spacing.words();
            json!({"rate": from, "rate_to": to, "arrivals": arrivals, "burstiness": burstiness})
        }
        Load::Trace { times, speed } => {
            json!({"path": times.as_ref().map(|times| absolute(&times.path)), "speed": speed})
        }
        Load::MaxThroughput { max_in_flight } => json!({"max_in_flight": max_in_flight}),
        Load::Concurrency { target } => json!({"target_concurrency": target}),
        Load::Agentic(agentic) => agentic.to_json(),
    };
    out["pattern"] = json!(load.pattern());
    out
}

fn source(source: &Source) -> Json {
    match source {
        Source::Fixed => Json::Null,
        Source::Synthetic { prompts, words } => {
            let words = match words {
                Lengths::Fixed(words) => json!(words),
                Lengths::Uniform { min, max } => json!({"min": min, "max": max}),
            };
            json!({"format": SYNTHETIC, "prompts": prompts, "words": words})
        }
        Source::Recording(recording) => {
            json!({"path": absolute(&recording.path), "format": recording.format.name()})
        }
        Source::Conversations(file) => {
            json!({"path": absolute(&file.path), "format": file.format.name()})
        }
        Source::File(file) => json!({
            "path": absolute(&file.path),
            "format": file.format.name(),
            "prompt": file.columns.prompt,
            "system": file.columns.system,
        }),
    }
}

/// From anywhere the same file.
pub(super) fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

pub(super) fn span(span: Option<Span>) -> Option<String> {
    span.map(Span::exact)
}

/// Strings whose names say that they are secrets are taken out, at any depth.
pub(crate) fn without_secrets(map: &Map<String, Json>) -> Json {
    fn clean(name: &str, value: &Json) -> Json {
        match value {
            Json::String(_) if is_secret_name(name) => json!(REDACTED),
            Json::Array(items) => items.iter().map(|item| clean(name, item)).collect(),
            Json::Object(map) => without_secrets(map),
            other => other.clone(),
        }
    }
    Json::Object(map.iter().map(|(name, value)| (name.clone(), clean(name, value))).collect())
}

/// Dollar signs are doubled, so that none is read as the start of a variable.
fn escape(json: &mut Json) {
    match json {
        Json::String(text) if text.contains('$') => *text = text.replace('$', "$$"),
        Json::Array(items) => items.iter_mut().for_each(escape),
        Json::Object(map) => map.values_mut().for_each(escape),
        _ => {}
    }
}
