//! The conversations of a simulated phase: drawn from its seed, the same for whoever asks.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Map, Value, json};
use takt_actors::{
    Agentic, AgenticConfig, Around, Arrivals, Begin, Constant, Order, Poisson, SALT_AT, Samples,
    Scripts, TalkText, Think, ThinkTime, TurnPlan, TurnRequests, TurnText, TurnTexts, Until,
    salted, stream,
};
use takt_mock::Mode;
use takt_time::Span;
use takt_wire::{Api, BodyBuilder, Endpoint, Method, RequestBuilder};

use super::random::{Chance, Purpose};
use super::scenario::{Load, OrderKind, Phase};

/// A load of conversations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Talks {
    /// How many are active, or how many arrive a second.
    pub begin: Beginning,
    /// How many are begun.
    pub conversations: Option<u64>,
    /// The longest delay of a turn; nothing keeps none.
    pub longest_delay: Span,
    /// Delays are kept.
    pub delays: bool,
    /// Users think, this long in the mean.
    pub think: Option<Span>,
    /// See [`AgenticConfig`].
    pub stop_on_first: bool,
    /// The model's answers are the history.
    pub live: bool,
    /// Marks system messages.
    pub salt: bool,
    /// The longest time of a turn.
    pub turn_timeout: Option<Span>,
}

/// What begins conversations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Beginning {
    /// So many are active.
    Active(u32),
    /// So many arrive a second, evenly or at random.
    Arrivals(f64, bool),
}

impl Talks {
    /// Any load of conversations.
    pub(super) fn draw(c: &mut Chance, peaceful: bool) -> Self {
        let begin = match c.between(0, 3) {
            0 => Beginning::Arrivals(c.magnitude(2, 5_000) as f64, c.coin()),
            _ => Beginning::Active(c.magnitude(1, 40) as u32),
        };
        let span = |c: &mut Chance| c.span(Span::from_nanos(1), Span::from_secs(2));
        Self {
            begin,
            conversations: c.coin().then(|| c.magnitude(1, 120)),
            longest_delay: span(c),
            delays: c.coin(),
            think: c.per_mille(300).then(|| span(c)),
            stop_on_first: c.per_mille(200),
            live: c.coin(),
            salt: c.per_mille(300),
            turn_timeout: (!peaceful && c.per_mille(400))
                .then(|| c.span(Span::from_micros(10), Span::from_secs(5))),
        }
    }
}

impl Phase {
    /// Puts conversations in the place of whatever it is, now and then.
    pub(super) fn talk(&mut self, c: &mut Chance, peaceful: bool) {
        if !c.per_mille(150) {
            return;
        }
        let talks = Talks::draw(c, peaceful);
        self.samples = self.samples.min(c.magnitude(1, 60) as u32);
        if let OrderKind::Single(sample) = &mut self.order {
            *sample = (*sample).min(self.samples - 1);
        }
        match (talks.conversations, talks.begin) {
            // The one or the other says how many.
            (Some(_), _) => self.limits.min_duration = None,
            (None, Beginning::Arrivals(rate, _)) => {
                // No more passes than the rate allows in a while.
                let most = Span::from_secs_f64(PASSES_ARRIVALS / rate);
                self.limits.min_duration = self.limits.min_duration.map(|least| least.min(most));
            }
            (None, Beginning::Active(_)) => {
                // A closed loop knows no time: spans alone would be no limit.
                self.limits.min_duration = None;
                if self.limits.duration.is_some() {
                    self.limits.requests.get_or_insert(CLOSED_REQUESTS);
                }
            }
        }
        self.prompt_bytes = self.prompt_bytes.min(MESSAGE_MAX);
        self.load = Load::Agentic(talks);
    }

    /// Prompts that a scheduler takes, with all that was said before them.
    pub(super) fn fit(&mut self, mode: &Mode) {
        if matches!(mode, Mode::Scheduler(_)) {
            let turns = if matches!(self.load, Load::Agentic(_)) { TURNS_MAX as usize } else { 1 };
            self.prompt_bytes = self.prompt_bytes.min(CONTEXT as usize * 2 / turns);
        }
    }

    pub(super) fn has_turn_timeout(&self) -> bool {
        matches!(self.load, Load::Agentic(Talks { turn_timeout: Some(_), .. }))
    }
}

/// The turns of a phase's conversations.
pub(super) fn scripts(phase: &Phase, talks: &Talks) -> Scripts {
    let mut chance = Chance::new(phase.seed, Purpose::Talks);
    let longest = talks.longest_delay.as_nanos();
    let mut scripts = Scripts::default();
    for _ in 0..phase.samples {
        let turns = chance.magnitude(1, TURNS_MAX) as u32;
        let turns: Vec<TurnPlan> = (0..turns)
            .map(|turn| TurnPlan {
                number: 2 * turn + 1,
                delay: chance.coin().then(|| Span::from_nanos(chance.between(1, longest))),
                is_tool: turn > 0 && chance.per_mille(300),
            })
            .collect();
        scripts.push(turns);
    }
    scripts
}

/// When conversations of a phase are to begin, where they have a rate.
pub(super) fn arrivals(phase: &Phase, talks: &Talks) -> Option<Box<dyn Arrivals>> {
    let usable = "rates are drawn between two and five thousand";
    let gaps = stream(phase.seed, takt_actors::Purpose::Arrivals);
    match talks.begin {
        Beginning::Active(_) => None,
        Beginning::Arrivals(rate, true) => Some(Box::new(Constant::new(rate).expect(usable))),
        Beginning::Arrivals(rate, false) => Some(Box::new(Poisson::new(rate, gaps).expect(usable))),
    }
}

/// How many conversations a phase begins.
pub(super) fn until(phase: &Phase, talks: &Talks) -> Until {
    let limits = &phase.limits;
    match talks.conversations {
        Some(count) => Until::Conversations(count),
        None if limits.requests.is_some() || limits.duration.is_some() => Until::Endless,
        None => Until::Passes(limits.min_duration),
    }
}

/// The strategy of a phase.
pub(super) fn strategy(
    phase: &Phase,
    talks: &Talks,
    order: Order,
    samples: &Rc<RefCell<dyn Samples>>,
) -> Agentic {
    let begin = match talks.begin {
        Beginning::Active(target) => Begin::Concurrency(target),
        Beginning::Arrivals(..) => {
            Begin::Arrivals(arrivals(phase, talks).expect("a rate has arrivals"))
        }
    };
    let config = AgenticConfig {
        begin,
        until: until(phase, talks),
        recorded_delays: talks.delays,
        think: talks.think.map(|mean| Think::new(ThinkTime::Exponential(mean), phase.seed)),
        stop_on_first_complete: talks.stop_on_first,
        histories: talks.live.then(|| samples.clone()),
    };
    Agentic::new(Rc::new(scripts(phase, talks)), order, config)
}

/// The requests of a phase, as the command makes them.
pub(super) fn requests(phase: &Phase, talks: &Talks) -> TurnRequests {
    let mut chance = Chance::new(phase.seed, Purpose::Talks);
    let api = Api::OpenaiChat;
    let endpoint = Endpoint::parse("http://10.0.0.1:8000").expect("an address");
    let builder = RequestBuilder::new(Method::Post, &endpoint, &endpoint.target(api.route()));
    let builder = builder.expect("a target").streaming(phase.stream);
    let body = BodyBuilder::new(api, "sim", phase.stream).include_usage(phase.usage);
    let around = |most: Option<u32>| {
        let row: Map<String, Value> =
            most.map(|most| ("max_tokens".to_owned(), Value::from(most))).into_iter().collect();
        let (before, after) = body.around_messages(Some(&row)).expect("a body");
        Around { before: before.into(), after: after.into() }
    };
    let mut texts = TurnTexts {
        // The same for every endpoint.
        builders: vec![builder; ENDPOINTS],
        talks: Vec::new(),
        turns: Vec::new(),
        around: vec![around(phase.max_tokens), around(None)],
    };
    let scripts = scripts(phase, talks);
    let mut sample = 0;
    for (number, turns) in scripts.lengths().enumerate() {
        let id = format!("talk-{number}");
        let before = r#"{"role":"system","content":"#;
        let system = format!("{before}{}}}", salted("be brief", &id));
        let mut messages = system.clone();
        for turn in 0..turns {
            if turn > 0 {
                messages += &format!(",{}", json!({"role": "assistant", "content": "recorded"}));
            }
            let text = "word ".repeat(chance.size(1, phase.prompt_bytes).div_ceil(5));
            let asked = json!({"role": "user", "content": text}).to_string();
            let from = messages.len() + 1;
            messages += &format!(",{asked}");
            let around = sample % 2;
            texts.turns.push(TurnText { talk: number as u32, asked: from..messages.len(), around });
            sample += 1;
        }
        let (id, system_end) = (id.into(), system.len());
        let salt_at = before.len() + SALT_AT;
        texts.talks.push(TalkText { id, messages: messages.into(), system_end, salt_at });
    }
    let mut requests =
        TurnRequests::new(Rc::new(texts)).routing_headers(vec!["X-Session-ID".into()]);
    if talks.salt {
        requests = requests.with_salt();
    }
    if talks.live { requests.with_live_history() } else { requests }
}

/// Tokens of prompt and answer that a scheduler has room for; with two bytes of prompt for each there is room for
/// the answers.
pub(super) const CONTEXT: u32 = 4096;
/// Turns of a conversation.
const TURNS_MAX: u64 = 12;
/// Bytes of a message: a whole history goes into the buffers of a link that adds nothing but latency.
const MESSAGE_MAX: usize = 64 << 10;
/// The most requests of a closed loop of conversations that the open loop it replaces had a span for.
const CLOSED_REQUESTS: u64 = 2_000;
/// Arrivals until the least duration of passes, in the mean.
const PASSES_ARRIVALS: f64 = 300.0;
/// The most endpoints of a scenario.
const ENDPOINTS: usize = 4;
