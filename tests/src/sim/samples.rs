//! The requests of a simulated phase, prepared as the command prepares them.

use serde_json::{Map, Value};
use takt_actors::Samples;
use takt_wire::{Api, BodyBuilder, Endpoint, Method, PreparedRequest, Prompt, RequestBuilder};

use super::random::{Chance, Purpose};
use super::scenario::Phase;

/// Prepared requests by sample; the same for every endpoint.
pub(super) struct Prepared(Vec<PreparedRequest>);

impl Prepared {
    pub(super) fn new(phase: &Phase) -> Self {
        let mut chance = Chance::new(phase.seed, Purpose::Scenario);
        let api = Api::OpenaiChat;
        let endpoint = Endpoint::parse("http://10.0.0.1:8000").expect("an address");
        let target = endpoint.target(api.route());
        let requests = RequestBuilder::new(Method::Post, &endpoint, &target).expect("a target");
        let requests = requests.streaming(phase.stream);
        let bodies = BodyBuilder::new(api, "sim", phase.stream).include_usage(phase.usage);
        let prepare = |sample| {
            let text = "word ".repeat(chance.size(1, phase.prompt_bytes).div_ceil(5));
            let prompt = Prompt::Text { text: &text, system: None };
            let mut row = Map::new();
            if let Some(most) = phase.max_tokens.filter(|_| sample % 2 == 0) {
                row.insert("max_tokens".to_owned(), Value::from(most));
            }
            requests.build(&bodies.build(&prompt, Some(&row)).expect("a body"))
        };
        Self((0..phase.samples).map(prepare).collect())
    }
}

impl Samples for Prepared {
    fn len(&self) -> u32 {
        self.0.len() as u32
    }

    fn request(&mut self, sample: u32, _endpoint: usize) -> &mut PreparedRequest {
        &mut self.0[sample as usize]
    }
}
