//! The prompts of a run, found again through the data sets and recordings that its configuration names.

use std::borrow::Cow;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use takt_dataset::{Prompt, Sample};
use takt_record::{EventData, Issued, SessionPlan};

use crate::config::{self, Config, Node, Origin};
use crate::samples::{self, Prompts as Source};

/// Where those of each phase are; the default has none.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    phases: Vec<Source>,
}

impl Prompts {
    /// Reads the data sets of `plan` again, those that several phases share once.
    ///
    /// # Errors
    /// A file is gone, or is not what it was.
    pub(super) fn of(plan: &SessionPlan) -> anyhow::Result<Self> {
        // Of what was said to the endpoint parts were hidden or are no longer there, and no prompt needs it.
        let config = config::phases_alone(plan.config.clone());
        let tree = Node::from_json(config, &Origin::Implied);
        let config = Config::read(&tree, "run").context("the run's configuration")?;
        ensure!(config.phases.len() == plan.phases.len(), "the run's configuration is another's");
        Ok(Self { phases: samples::prompts(&config)? })
    }

    /// The prompt of `issued`, if it has one.
    pub(super) fn of_request(&self, issued: &Issued) -> Option<EventData<'_>> {
        let index = issued.sample as usize;
        match self.phases.get(usize::from(issued.key.phase.0))? {
            Source::None => None,
            Source::Dataset(dataset) => dataset.get(index).map(of_sample),
            Source::Turns(talks) => {
                let (talk, turn) = talks.turn(index)?;
                let messages = serde_json::from_str(&format!("[{}]", talk.prompt(turn))).ok();
                Some(EventData::Prompt { text: None, messages })
            }
            Source::Recording(recorded) => {
                let (recording, texts) = &**recorded;
                recording.calls().get(index)?;
                let mut text = String::new();
                texts.write(recording, index, &mut text);
                Some(EventData::Prompt { text: Some(Cow::Owned(text)), messages: None })
            }
        }
    }
}

fn of_sample(sample: &Sample) -> EventData<'_> {
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    match (&sample.prompt, sample.system.as_deref()) {
        (Prompt::Text(text), None) => {
            EventData::Prompt { text: Some(Cow::Borrowed(text)), messages: None }
        }
        (Prompt::Text(text), Some(system)) => {
            let messages = json!([said("system", system), said("user", text)]);
            EventData::Prompt { text: None, messages: Some(messages) }
        }
        (Prompt::Messages(json), system) => {
            let mut messages = serde_json::from_str(json.get()).ok();
            if let (Some(Value::Array(list)), Some(system)) = (&mut messages, system) {
                list.insert(0, said("system", system));
            }
            EventData::Prompt { text: None, messages }
        }
    }
}
