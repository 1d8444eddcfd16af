//! What a load of conversations can say.

use serde_json::{Value as Json, json};
use takt_actors::ThinkTime;
use takt_dataset::ConversationFormat;
use takt_time::Span;

use super::dataset::Source;
use super::endpoint::EndpointConfig;
use super::error::ConfigError;
use super::keys;
use super::load::{Load, Spacing, TARGET_MAX, rate, spacing};
use super::node::Value;
use super::phase::Stop;
use super::reader::{Field, Table};
use super::resolved::span;

/// A load of conversations.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgenticLoad {
    pub(crate) begin: Begin,
    /// What was said of the history, until the dataset is known.
    history: Option<bool>,
    /// What the model answered is the history.
    pub(crate) live: bool,
    pub(crate) turn_timeout: Option<Span>,
    pub(crate) salt: bool,
    /// The delays of the dataset are kept.
    pub(crate) delays: bool,
    pub(crate) think: Option<ThinkTime>,
    /// Conversations to begin.
    pub(crate) conversations: Option<u64>,
    pub(crate) stop_on_first: bool,
    pub(crate) routing: Vec<String>,
}

/// What begins a conversation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Begin {
    /// So many are active.
    Concurrency(u32),
    /// Arrivals a second.
    Arrivals(f64, Spacing),
}

impl AgenticLoad {
    pub(super) fn read(table: &Table<'_>) -> Result<Self, ConfigError> {
        let flag = |key| table.get(key).map_or(Ok(false), |field| field.flag());
        let words = [("recorded", false), ("live", true)];
        let routing = match table.get("routing_headers") {
            None => vec![ROUTING.to_owned()],
            Some(field) => {
                let names = field.items();
                names.iter().map(|name| header(name)).collect::<Result<_, _>>()?
            }
        };
        Ok(Self {
            begin: Begin::read(table)?,
            history: table.get("history").map(|f| f.choice(&words, &[])).transpose()?,
            live: false,
            turn_timeout: table.get("turn_timeout").map(|f| f.span()).transpose()?,
            salt: flag("enable_salt")?,
            delays: flag("inject_tool_delay")?,
            think: table.get("think_time").map(|f| think(&f)).transpose()?,
            conversations: (table.get("num_trajectories_to_issue"))
                .map(|f| f.count(1, u64::MAX))
                .transpose()?,
            stop_on_first: flag("stop_issuing_on_first_user_complete")?,
            routing,
        })
    }

    /// Conversations that it keeps active, where it says so.
    pub(crate) fn target(&self) -> Option<u32> {
        match self.begin {
            Begin::Concurrency(target) => Some(target),
            Begin::Arrivals(..) => None,
        }
    }

    /// Whether the gaps between its arrivals are drawn.
    pub(super) fn draws_gaps(&self) -> bool {
        matches!(self.begin, Begin::Arrivals(_, spacing) if spacing != Spacing::Constant)
    }

    pub(super) fn to_json(&self) -> Json {
        let mut out = json!({
            "history": if self.live { "live" } else { "recorded" },
            "turn_timeout": span(self.turn_timeout),
            "inject_tool_delay": self.delays,
            "think_time": self.think.map(|think| match think {
                ThinkTime::Fixed(time) => json!(span(Some(time))),
                ThinkTime::Uniform(min, max) => json!({"min": span(Some(min)), "max": span(Some(max))}),
                ThinkTime::Exponential(mean) => json!({"mean": span(Some(mean))}),
            }),
            "enable_salt": self.salt,
            "num_trajectories_to_issue": self.conversations,
            "stop_issuing_on_first_user_complete": self.stop_on_first,
            "routing_headers": self.routing,
        });
        match self.begin {
            Begin::Concurrency(target) => out["target_concurrency"] = json!(target),
            Begin::Arrivals(rate, spacing) => {
                let (arrivals, burstiness) = spacing.words();
                out["rate"] = json!(rate);
                (out["arrivals"], out["burstiness"]) = (json!(arrivals), json!(burstiness));
            }
        }
        out
    }
}

impl Begin {
    fn read(table: &Table<'_>) -> Result<Self, ConfigError> {
        match (table.get("target_concurrency"), table.get("rate")) {
            (Some(target), None) => {
                let why = "`target_concurrency` begins conversations, not arrivals";
                table.refuse("arrivals", why)?;
                table.refuse("burstiness", why)?;
                Ok(Self::Concurrency(target.count(1, TARGET_MAX)? as u32))
            }
            (None, Some(_)) => Ok(Self::Arrivals(rate(table, "rate")?, spacing(table)?)),
            (Some(_), Some(rate)) => Err(rate.error(
                "conversations arrive at `rate`, or `target_concurrency` of them are kept active; give one",
            )),
            (None, None) => Err(table.error(
                "`target_concurrency` is missing: conversations to keep active (or `rate`, at which they \
                 arrive)",
            )),
        }
    }
}

/// Sees whether load and dataset fit each other, and settles what follows from the dataset.
pub(super) fn settle(
    load: &mut Load,
    source: &Source,
    stop: &Stop,
    endpoint: &EndpointConfig,
    field: &Field<'_>,
) -> Result<(), ConfigError> {
    let Load::Agentic(agentic) = load else { return needs_none(source, field) };
    let Source::Conversations(file) = source else {
        return Err(field.error(
            "pattern `agentic` needs conversations: a dataset of format `agentic`, `messages`, `sharegpt` or \
             `mt-bench`",
        ));
    };
    let said = |key: &str| field.below(key).unwrap_or_else(|| field.clone());
    routing_is_free(&agentic.routing, endpoint, &said("routing_headers"))?;
    agentic.live = agentic.history.unwrap_or(!file.format.has_answers());
    if !agentic.live && !file.format.has_answers() {
        return Err(said("history").error(format!(
            "format `{}` records no answers, so there is no recorded history; use `live`",
            file.format.name()
        )));
    }
    if agentic.delays && file.format != ConversationFormat::Agentic {
        return Err(said("inject_tool_delay").error(format!(
            "has no effect: format `{}` records no delays; `think_time` makes pauses",
            file.format.name()
        )));
    }
    let endless = stop.requests.is_some() || stop.duration.is_some();
    if agentic.stop_on_first && agentic.conversations.is_none() && endless {
        return Err(said("stop_issuing_on_first_user_complete").error(
            "has no effect: `requests` or `duration` ends the phase, and until then a conversation always \
             follows; give `num_trajectories_to_issue`",
        ));
    }
    Ok(())
}

/// Refuses conversations whose turns another load would tear apart.
fn needs_none(source: &Source, field: &Field<'_>) -> Result<(), ConfigError> {
    match source {
        Source::Conversations(file)
            if matches!(
                file.format,
                ConversationFormat::Agentic | ConversationFormat::Messages
            ) =>
        {
            Err(field.error(format!(
                "the turns of format `{}` follow one another: use pattern `agentic`",
                file.format.name()
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses a routing header that requests have with a value of its own.
fn routing_is_free(
    routing: &[String],
    endpoint: &EndpointConfig,
    field: &Field<'_>,
) -> Result<(), ConfigError> {
    let is_routing = |given: &&String| routing.iter().any(|name| given.eq_ignore_ascii_case(name));
    let mut headers = endpoint.headers.iter().map(|(given, _)| given);
    let Some(given) = headers.find(is_routing) else { return Ok(()) };
    Err(field.error(format!(
        "`{given}` is among `endpoint.headers`, too, with one value for all requests"
    )))
}

/// A time, the two between which it lies, or the mean of exponential ones.
fn think(field: &Field<'_>) -> Result<ThinkTime, ConfigError> {
    if !matches!(field.node.value, Value::Map(_)) {
        return Ok(ThinkTime::Fixed(field.span()?));
    }
    let table = field.table(&keys::THINK)?;
    if let Some(mean) = table.get("mean") {
        table.refuse("min", "`mean` is of exponential times, which go on without end")?;
        table.refuse("max", "`mean` is of exponential times, which go on without end")?;
        return Ok(ThinkTime::Exponential(mean.span()?));
    }
    let end = |key| table.need(key, "write {min: 1s, max: 3s} or {mean: 2s}")?.span();
    let (min, max) = (end("min")?, end("max")?);
    if min > max {
        return Err(field.error("`max` is shorter than `min`"));
    }
    Ok(ThinkTime::Uniform(min, max))
}

fn header(name: &Field<'_>) -> Result<String, ConfigError> {
    takt_wire::check_header_name(name.text()?).map_err(|error| name.error(error.to_string()))?;
    Ok(name.text()?.to_owned())
}

/// The header that the reference implementation sends.
const ROUTING: &str = "X-Session-ID";
