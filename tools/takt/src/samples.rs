//! Requests prepared before the clock runs: one for each sample and endpoint, whole but for its id.

use std::cell::RefCell;
use std::fs::File;
use std::io::BufReader;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Map, Value};
use takt_actors::{Request, Samples, Scripts, TurnRequests, TurnTexts};
use takt_dataset::{
    Conversations, Dataset, Options, Prompt as Asked, Recording, Sample, Texts, synthetic,
};
use takt_time::Span;
use takt_wire::{
    Api, BodyBuilder, Endpoint, Method, PreparedRequest, Prompt, RequestBuilder, Route, Text,
};

use crate::config::{
    AgenticLoad, Config, ConversationSource, EndpointConfig, FileSource, Phase, RecordingSource,
    Source,
};
use crate::console::Console;
use crate::conversations;
use crate::replay::{self, Replay};

/// The requests of a dataset, in memory.
#[derive(Debug)]
pub(crate) struct Prepared {
    requests: Requests,
    endpoints: usize,
    /// When its rows came, where they were recorded.
    times: Option<Arc<[Span]>>,
    /// What they were made from, where answers are kept: until it is written down.
    dataset: Option<Dataset>,
    /// The conversations that they are turns of.
    talks: Option<Talks>,
}

/// Conversations made ready.
#[derive(Clone, Debug)]
pub(crate) struct Talks {
    pub(crate) scripts: Rc<Scripts>,
    pub(crate) all: Rc<Conversations>,
    texts: Rc<TurnTexts>,
}

#[derive(Debug)]
enum Requests {
    /// Sample after sample, of each the endpoints in order.
    Held(Vec<PreparedRequest>),
    /// What is too much to be held is made when it is sent.
    Made(Box<Replay>),
    /// The same holds of turns, whose histories would be held many times.
    Turns(Box<TurnRequests>),
}

impl Prepared {
    /// When its rows came, where they were recorded.
    pub(crate) fn times(&self) -> Option<Arc<[Span]>> {
        self.times.clone()
    }

    /// Gives up what the requests were made from.
    pub(crate) fn forget_dataset(&mut self) {
        self.dataset = None;
    }

    /// The conversations that the samples are turns of.
    pub(crate) fn talks(&self) -> Option<&Talks> {
        self.talks.as_ref()
    }

    /// What the requests were made from, while it is kept.
    pub(crate) fn dataset(&self) -> Option<&Dataset> {
        self.dataset.as_ref()
    }
}

impl Samples for Prepared {
    fn len(&self) -> u32 {
        let samples = match &self.requests {
            Requests::Held(requests) => requests.len() / self.endpoints,
            Requests::Made(replay) => replay.len(),
            Requests::Turns(turns) => turns.len() as usize,
        };
        // `Maker` refuses more.
        samples as u32
    }

    fn request(&mut self, sample: u32, endpoint: usize) -> &mut PreparedRequest {
        match &mut self.requests {
            Requests::Held(requests) => &mut requests[sample as usize * self.endpoints + endpoint],
            Requests::Made(replay) => replay.request(sample as usize, endpoint),
            Requests::Turns(turns) => turns.request(sample, endpoint),
        }
    }

    fn request_for(&mut self, asked: &Request, endpoint: usize) -> &mut PreparedRequest {
        match self.requests {
            Requests::Turns(ref mut turns) => turns.request_for(asked, endpoint),
            Requests::Held(_) | Requests::Made(_) => self.request(asked.sample, endpoint),
        }
    }

    fn heard(&mut self, asked: &Request, text: &Text<'_>) {
        if let Requests::Turns(turns) = &mut self.requests {
            turns.heard(asked, text);
        }
    }

    fn forget(&mut self, conversation: u64) {
        if let Requests::Turns(turns) = &mut self.requests {
            turns.forget(conversation);
        }
    }
}

/// Prepares the samples of every phase. Phases with the same source share one set.
pub(crate) fn prepare(
    config: &Config,
    console: &Console,
) -> anyhow::Result<Vec<Rc<RefCell<Prepared>>>> {
    let mut maker = Maker::new(&config.endpoint)?;
    maker.keep = config.phases.iter().any(Phase::keeps_text);
    let mut made: Vec<(&Phase, Rc<RefCell<Prepared>>)> = Vec::new();
    for phase in &config.phases {
        let known = made
            .iter()
            .find(|(other, _)| same_samples(other, phase))
            .map(|(_, prepared)| prepared.clone());
        let prepared = match known {
            Some(prepared) => prepared,
            None => {
                let like = made.iter().filter(|(other, _)| same_texts(other, phase));
                log_salts(phase, like.clone().map(|(other, _)| *other), console);
                let talks = like.filter_map(|(_, made)| made.borrow().talks().cloned()).next();
                Rc::new(RefCell::new(match (talks, phase.load.agentic()) {
                    (Some(talks), Some(load)) => maker.turns(talks, load),
                    _ => maker.make(phase, console)?,
                }))
            }
        };
        if let Some(dataset) = prepared.borrow().dataset() {
            crate::accuracy::check_truths(phase, dataset)?;
        }
        made.push((phase, prepared));
    }
    Ok(made.into_iter().map(|(_, prepared)| prepared).collect())
}

/// Where the prompts of a phase are found, for whoever has not prepared its requests.
#[derive(Clone, Debug)]
pub(crate) enum Prompts {
    /// There are none: one body is sent over and over.
    None,
    /// In a data set.
    Dataset(Rc<Dataset>),
    /// Each in what was recorded before it.
    Turns(Rc<Conversations>),
    /// In nothing: they are put together again, one at a time.
    Recording(Rc<(Recording, Texts)>),
}

/// The prompts of every phase, what phases share once.
pub(crate) fn prompts(config: &Config) -> anyhow::Result<Vec<Prompts>> {
    let mut made: Vec<(&Phase, Prompts)> = Vec::new();
    for phase in &config.phases {
        let known = made.iter().find(|(other, _)| same_samples(other, phase));
        let prompts = match known {
            Some((_, prompts)) => prompts.clone(),
            None => match &phase.source {
                Source::Conversations(file)
                    if phase.load.agentic().is_some_and(|load| !load.live && !load.salt) =>
                {
                    Prompts::Turns(Rc::new(conversations::read(file)?))
                }
                // What a model has answered is in no dataset, nor are salts.
                Source::Fixed | Source::Conversations(_) => Prompts::None,
                Source::Recording(source) => {
                    let recording = replay::read(source)?;
                    let texts = Texts::new(&recording, phase.seed);
                    Prompts::Recording(Rc::new((recording, texts)))
                }
                Source::Synthetic { prompts, words } => {
                    Prompts::Dataset(Rc::new(synthetic(*prompts, *words, phase.seed)?))
                }
                Source::File(file) => Prompts::Dataset(Rc::new(read(file)?)),
            },
        };
        made.push((phase, prompts));
    }
    Ok(made.into_iter().map(|(_, prompts)| prompts).collect())
}

/// Have both phases conversations whose turns say the same? Each has its own histories.
fn same_texts(one: &Phase, other: &Phase) -> bool {
    let salted = |phase: &Phase| phase.load.agentic().map(|agentic| agentic.salt);
    one.source == other.source && salted(one).is_some() && salted(one) == salted(other)
}

/// Says that a server may know salted messages of `phase` from those before it, which say the same.
fn log_salts<'p>(phase: &Phase, same: impl Iterator<Item = &'p Phase>, console: &Console) {
    let names: Vec<String> = same.map(|other| format!("`{}`", other.name)).collect();
    if phase.load.agentic().is_some_and(|load| load.salt) && !names.is_empty() {
        console.info(format!(
            "phase `{}`: its salts are those of {}, so a prefix cache may know its system messages",
            phase.name,
            names.join(", ")
        ));
    }
}

/// Have both phases the same samples? Made-up prompts come from the phase's own seed.
fn same_samples(one: &Phase, other: &Phase) -> bool {
    if one.load.agentic().is_some() || other.load.agentic().is_some() {
        return false;
    }
    let made_up = matches!(one.source, Source::Synthetic { .. } | Source::Recording(_));
    one.source == other.source && (one.seed == other.seed || !made_up)
}

/// Turns samples into requests.
struct Maker<'c> {
    endpoint: &'c EndpointConfig,
    builders: Vec<RequestBuilder>,
    body: BodyBuilder,
    /// Datasets are kept.
    keep: bool,
}

impl<'c> Maker<'c> {
    fn new(endpoint: &'c EndpointConfig) -> anyhow::Result<Self> {
        let route = endpoint.api.route();
        let builders = endpoint.urls.iter();
        let builders = builders.map(|url| builder(endpoint, url, Method::Post, route));
        let stream = endpoint.stream;
        let body = BodyBuilder::new(endpoint.api, &endpoint.model, stream);
        let body = if endpoint.api == Api::Raw {
            body
        } else {
            body.params(endpoint.body.clone())?.extra(endpoint.extra_body.clone())?
        };
        Ok(Self { endpoint, builders: builders.collect::<anyhow::Result<_>>()?, body, keep: false })
    }

    fn make(&self, phase: &Phase, console: &Console) -> anyhow::Result<Prepared> {
        let (prepared, what) = match &phase.source {
            Source::Fixed => {
                (self.held(self.fixed()?, None), "one request, sent over and over".to_owned())
            }
            Source::Synthetic { prompts, words } => {
                let dataset = synthetic(*prompts, *words, phase.seed)?;
                let what = format!("{prompts} different made-up prompts, seed {}", phase.seed);
                (self.all(dataset, "synthetic")?, what)
            }
            Source::Recording(recording) => self.recorded(recording, phase.seed)?,
            Source::Conversations(file) => self.conversations(file, phase, console)?,
            Source::File(file) => {
                let dataset = read(file)?;
                log_columns(&dataset, console);
                let path = file.path.display().to_string();
                let what = format!("{} samples of {path}", dataset.len());
                (self.all(dataset, &path)?, what)
            }
        };
        match &prepared.requests {
            Requests::Held(requests) => {
                let bytes: usize = requests.iter().map(|request| request.bytes().len()).sum();
                let megabytes = bytes as f64 / 1e6;
                console.info(format!("prepared {what}: {megabytes:.1} MB of requests in memory"));
            }
            Requests::Made(_) | Requests::Turns(_) => {
                console.info(format!("prepared {what}: each request is made when it is sent"));
            }
        }
        Ok(prepared)
    }

    fn all(&self, dataset: Dataset, file: &str) -> anyhow::Result<Prepared> {
        let count = dataset.len();
        anyhow::ensure!(u32::try_from(count).is_ok(), "{file}: more than 2^32 rows");
        let mut requests = Vec::with_capacity(count * self.builders.len());
        for sample in dataset.samples() {
            let body = self.body(sample).with_context(|| format!("{file}:{}", sample.row))?;
            requests.extend(self.builders.iter().map(|builder| builder.build(&body)));
        }
        let dataset = self.keep.then_some(dataset);
        Ok(Prepared { dataset, ..self.held(requests, None) })
    }

    fn held(&self, requests: Vec<PreparedRequest>, times: Option<Arc<[Span]>>) -> Prepared {
        let (requests, endpoints) = (Requests::Held(requests), self.builders.len());
        Prepared { requests, endpoints, times, dataset: None, talks: None }
    }

    /// Conversations, turn by turn; of other loads than those of conversations, what each begins with.
    fn conversations(
        &self,
        source: &ConversationSource,
        phase: &Phase,
        console: &Console,
    ) -> anyhow::Result<(Prepared, String)> {
        let all = conversations::read(source)?;
        let (count, turns, file) =
            (all.list().len(), all.turns(), source.path.display().to_string());
        let Some(load) = phase.load.agentic() else {
            let mut requests = Vec::with_capacity(count * self.builders.len());
            for talk in all.list() {
                let json = format!("[{}]", talk.prompt(&talk.turns()[0]));
                let row = |name: &'static str, value: &Value| (name.to_owned(), value.clone());
                let row =
                    talk.turns()[0].params.iter().map(|(name, value)| row(name, value)).collect();
                let prompt = Prompt::Messages { json: &json, system: None };
                let body = self.body.build(&prompt, Some(&row));
                let body = body.with_context(|| format!("{file}:{}", talk.row))?;
                requests.extend(self.builders.iter().map(|builder| builder.build(&body)));
            }
            let what = format!("what {count} conversations of {file} begin with");
            conversations::log(&all, console);
            if turns > count {
                console.info(format!(
                    "  {} turns after the first of their conversation are not sent: pattern `agentic` sends \
                     them all",
                    turns - count
                ));
            }
            return Ok((self.held(requests, None), what));
        };
        conversations::log(&all, console);
        let texts = conversations::texts(&all, &file, self.builders.clone(), &self.body, load)?;
        let megabytes = all.bytes() as f64 / 1e6;
        let what = format!("{count} conversations of {file} with {turns} turns, {megabytes:.1} MB");
        let scripts = Rc::new(conversations::scripts(&all));
        let talks = Talks { scripts, all: Rc::new(all), texts: Rc::new(texts) };
        Ok((self.turns(talks, load), what))
    }

    fn turns(&self, talks: Talks, load: &AgenticLoad) -> Prepared {
        let requests = conversations::requests(talks.texts.clone(), load);
        let (requests, endpoints) = (Requests::Turns(Box::new(requests)), self.builders.len());
        Prepared { requests, endpoints, times: None, dataset: None, talks: Some(talks) }
    }

    /// The calls of a recording: held where that is possible, as every request is.
    fn recorded(&self, source: &RecordingSource, seed: u64) -> anyhow::Result<(Prepared, String)> {
        let recording = replay::read(source)?;
        let shown = source.path.display();
        anyhow::ensure!(u32::try_from(recording.len()).is_ok(), "{shown}: more than 2^32 rows");
        let what = format!("{} calls recorded in {shown}, seed {seed}", recording.len());
        let times = Some(recording.times().clone());
        let bytes = replay::bytes_about(&recording).saturating_mul(self.builders.len() as u64);
        let (builders, body) = (self.builders.clone(), self.body.clone());
        let mut replay = Replay::new(recording, seed, builders, body)?;
        if bytes > HELD_MAX {
            let endpoints = self.builders.len();
            let requests = Requests::Made(Box::new(replay));
            let prepared = Prepared { requests, endpoints, times, dataset: None, talks: None };
            return Ok((prepared, what));
        }
        let mut requests = Vec::with_capacity(replay.len() * self.builders.len());
        for call in 0..replay.len() {
            for endpoint in 0..self.builders.len() {
                requests.push(replay.request(call, endpoint).clone());
            }
        }
        Ok((self.held(requests, times), what))
    }

    /// The body of one sample. Of api `raw` the row's text is the body.
    fn body(&self, sample: &Sample) -> anyhow::Result<Vec<u8>> {
        if self.endpoint.api == Api::Raw {
            return Ok(match &sample.prompt {
                Asked::Text(text) => text.as_bytes().to_vec(),
                Asked::Messages(json) => json.get().as_bytes().to_vec(),
            });
        }
        let system = sample.system.as_deref();
        let prompt = match &sample.prompt {
            Asked::Text(text) => Prompt::Text { text, system },
            Asked::Messages(json) => Prompt::Messages { json: json.get(), system },
        };
        let row: Map<String, Value> =
            sample.params.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        Ok(self.body.build(&prompt, Some(&row))?)
    }

    /// The one request, for each endpoint.
    fn fixed(&self) -> anyhow::Result<Vec<PreparedRequest>> {
        let body = if self.endpoint.body.is_empty() {
            FIXED_BODY.as_bytes().to_vec()
        } else {
            serde_json::to_vec(&self.endpoint.body)?
        };
        Ok(self.builders.iter().map(|builder| builder.build(&body)).collect())
    }
}

/// One request for `prompt` at `url`, as a run would send it.
pub(crate) fn one(
    endpoint: &EndpointConfig,
    url: &Endpoint,
    prompt: &str,
) -> anyhow::Result<PreparedRequest> {
    let endpoint = EndpointConfig { urls: vec![url.clone()], ..endpoint.clone() };
    let maker = Maker::new(&endpoint)?;
    let mut requests = if endpoint.api == Api::Raw {
        maker.fixed()?
    } else {
        let body = maker.body.build(&Prompt::Text { text: prompt, system: None }, None)?;
        maker.builders.iter().map(|builder| builder.build(&body)).collect()
    };
    requests.pop().context("a request for no address")
}

/// Requests of a route at `url`, with the headers of the endpoint.
pub(crate) fn builder(
    config: &EndpointConfig,
    url: &Endpoint,
    method: Method,
    route: Route<'_>,
) -> anyhow::Result<RequestBuilder> {
    let mut builder =
        RequestBuilder::new(method, url, &url.target(route))?.streaming(config.stream);
    if let Some(key) = &config.api_key {
        builder = builder.bearer(key.value.reveal())?;
    }
    for (name, given) in &config.headers {
        builder = builder.header(name, given.value.reveal())?;
    }
    Ok(builder)
}

fn read(file: &FileSource) -> anyhow::Result<Dataset> {
    let shown = file.path.display().to_string();
    let input = File::open(&file.path).with_context(|| format!("{shown}: cannot be opened"))?;
    let options = Options { columns: file.columns.clone(), ..Options::default() };
    Ok(Dataset::read(BufReader::with_capacity(1 << 20, input), &shown, file.format, &options)?)
}

fn log_columns(dataset: &Dataset, console: &Console) {
    let Some(columns) = dataset.columns() else { return };
    let system = columns.system.as_ref().map(|name| format!(", system prompt from `{name}`"));
    console.info(format!(
        "dataset {}: prompt from column `{}`{}",
        dataset.name,
        columns.prompt,
        system.unwrap_or_default()
    ));
    if !columns.params.is_empty() {
        console.info(format!("  rows set {}", columns.params.join(", ")));
    }
    if !columns.ignored.is_empty() {
        console.debug(format!("  columns not used: {}", columns.ignored.join(", ")));
    }
}

/// Requests of a recording that are held: an hour of a service with prompts of a usual length.
const HELD_MAX: u64 = 256 << 20;
/// About as long as the head of a small request: 110 bytes.
const FIXED_BODY: &str = "{\"takt\":\"a small request of a fixed size, to see how many of them a \
                          service can answer\",\"n\":[1,2,3,4,5,6,7,8]}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_body_is_json_of_110_bytes() {
        assert_eq!(FIXED_BODY.len(), 110);
        serde_json::from_str::<Value>(FIXED_BODY).unwrap();
    }
}
