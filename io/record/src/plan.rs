//! What was planned, known before the first send: the head of a journal and the frame of a result.

use serde::{Deserialize, Serialize};

use crate::kinds::PhaseKind;

/// The plan of a session. The default one plans nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionPlan {
    /// 32 hex characters, new for each run.
    pub session_id: String,
    /// Version of takt.
    pub takt: String,
    /// Wall clock at the start, RFC 3339 in UTC.
    pub started_at: String,
    /// The phases in order; a [`crate::PhaseId`] is a place in this list.
    pub phases: Vec<PhasePlan>,
    /// The resolved configuration, secrets redacted.
    pub config: serde_json::Value,
    /// What is known of the machine.
    pub host: serde_json::Value,
}

impl SessionPlan {
    /// What spreads the ids of the session's requests: the low half of its own id.
    #[must_use]
    pub fn session_key(&self) -> u64 {
        u128::from_str_radix(&self.session_id, 16).map_or(0, |id| id as u64)
    }
}

/// Arrivals a second at the beginning and at the end of a ramp.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RampRates {
    /// When the phase begins.
    pub from: f64,
    /// When its duration is over.
    pub to: f64,
}

/// The plan of a phase, as far as a fold needs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhasePlan {
    /// Unique in the session.
    pub name: String,
    /// What it is for.
    #[serde(rename = "type")]
    pub kind: PhaseKind,
    /// The load pattern by its name in the configuration.
    pub pattern: String,
    /// Mean arrivals a second of an open loop; `None` for a closed one.
    pub rate: Option<f64>,
    /// The rates that a ramp goes between; `rate` is their mean.
    #[serde(default)]
    pub ramp: Option<RampRates>,
    /// Requests to be kept in flight by a closed loop.
    pub target_concurrency: Option<u32>,
    /// Requests asked for, when a count was asked for.
    pub requests: Option<u64>,
    /// Answers are streamed.
    pub stream: bool,
    /// What an agentic phase has beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversations: Option<ConversationsPlan>,
}

/// The plan of an agentic phase. Its `target_concurrency` is of conversations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConversationsPlan {
    /// Conversations that arrive a second, where they do.
    pub arrivals_per_s: Option<f64>,
    /// Names of the dataset's conversations, in its order.
    pub ids: Vec<Box<str>>,
}

impl PhasePlan {
    /// The name of a conversation: that of the dataset, with `__repeat_N` from the second pass on. Its number
    /// where the phase has no names.
    #[must_use]
    pub fn conversation_id(&self, conversation: u64) -> String {
        let ids = self.conversations.as_ref().map_or(&[][..], |plan| &plan.ids);
        let count = ids.len() as u64;
        let Some(pass) = conversation.checked_div(count) else { return conversation.to_string() };
        let id = &ids[(conversation % count) as usize];
        if pass == 0 { id.to_string() } else { format!("{id}__repeat_{}", pass + 1) }
    }
}
