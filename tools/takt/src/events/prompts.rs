//! The prompts of a run, found again through the data sets that its configuration names.

use std::rc::Rc;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use takt_dataset::{Dataset, Prompt};
use takt_record::{Event, EventData, Issued, SessionPlan};

use crate::config::{Config, Node, Origin};
use crate::samples;

/// The data set of each phase; the default has none.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    phases: Vec<Option<Rc<Dataset>>>,
}

impl Prompts {
    /// Reads the data sets of `plan` again, those that several phases share once.
    ///
    /// # Errors
    /// A file is gone, or is not what it was.
    pub(super) fn of(plan: &SessionPlan) -> anyhow::Result<Self> {
        let mut config = plan.config.clone();
        if let Some(endpoint) = config.get_mut("endpoint").and_then(Value::as_object_mut) {
            // They may come from files that are no longer there, and no prompt needs them.
            endpoint.retain(|key, _| key != "api_key" && key != "headers");
        }
        let tree = Node::from_json(config, &Origin::Implied);
        let config = Config::read(&tree, "run").context("the run's configuration")?;
        ensure!(config.phases.len() == plan.phases.len(), "the run's configuration is another's");
        Ok(Self { phases: samples::datasets(&config)? })
    }

    /// Puts the prompt of `issued` into its event.
    pub(super) fn fill_in(&self, issued: &Issued, event: &mut Event<'_>) {
        let dataset = self.phases.get(usize::from(issued.key.phase.0)).and_then(Option::as_ref);
        let sample = dataset.and_then(|dataset| dataset.get(issued.sample as usize));
        let Some(sample) = sample else { return };
        let system = sample.system.as_deref();
        event.data = match (&sample.prompt, system) {
            (Prompt::Text(text), None) => {
                EventData::Prompt { text: Some(text.to_string().into()), messages: None }
            }
            (Prompt::Text(text), Some(system)) => {
                let said = |role: &str, text: &str| json!({"role": role, "content": text});
                let messages = json!([said("system", system), said("user", text)]);
                EventData::Prompt { text: None, messages: Some(messages) }
            }
            (Prompt::Messages(json), system) => {
                let messages = serde_json::from_str(json.get()).ok().map(|messages| {
                    match (messages, system) {
                        (Value::Array(mut list), Some(system)) => {
                            list.insert(0, json!({"role": "system", "content": system}));
                            Value::Array(list)
                        }
                        (messages, _) => messages,
                    }
                });
                EventData::Prompt { text: None, messages }
            }
        };
    }
}
