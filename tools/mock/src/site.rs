//! The routes: what a request gets.

use std::sync::Arc;

use takt_wire::{FramingError, Request};

use crate::config::{Mode, ServerConfig, TimedConfig};
use crate::counts::Counts;
use crate::generation::{Generation, Names};
use crate::hostile::{Fault, HostileConfig};
use crate::instant::Prepared;
use crate::json;
use crate::openai::{Api, error, models};
use crate::page::Page;
use crate::plan::{Plan, PlanKey};
use crate::scheduler::{Prompt, SchedulerConfig, StepCounts};

/// Everything that answers, apart from connections and time.
#[derive(Debug)]
pub(crate) struct Site {
    service: Service,
    /// What spoils answers, in its mode, and which of it has nothing to spoil on which route.
    faults: Option<Box<HostileConfig>>,
    lacking: Vec<(Fault, Api)>,
    pub(crate) names: Names,
    pub(crate) counts: Arc<Counts>,
    /// Generating requests so far.
    generations: u64,
}

#[derive(Debug)]
enum Service {
    Instant(Box<Prepared>),
    Timed(Box<TimedConfig>),
    Scheduler(Box<SchedulerConfig>, Arc<StepCounts>),
}

/// What became of a request.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "lives on the stack of one call, never in a list")]
pub(crate) enum Reply {
    /// The answer is on the page.
    Written,
    /// The answer is on the page, and the profiler is to start or to stop.
    Profile {
        /// Or to stop.
        start: bool,
    },
    /// The answer is to be generated.
    Generate(Generation),
}

impl Site {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let mut model = Vec::new();
        json::text(&mut model, config.model.as_bytes());
        let names = Names { model, anchor: config.anchor };
        let service = match &config.mode {
            Mode::Instant(instant) => {
                let created_s = names.created_s(config.anchor.mono);
                Service::Instant(Box::new(Prepared::new(*instant, &names.model, created_s)))
            }
            Mode::Timed(timed) => Service::Timed(Box::new(timed.clone())),
            Mode::Scheduler(config) => Service::Scheduler(config.clone(), Arc::default()),
            Mode::Hostile(hostile) => Service::Timed(Box::new(hostile.answers.clone())),
        };
        let faults = match &config.mode {
            Mode::Hostile(hostile) => Some(hostile.clone()),
            _ => None,
        };
        let all = faults.iter().flat_map(|faults| faults.faults.iter().copied());
        let lacking = all.flat_map(|fault| fault.lacks().map(move |api| (fault, api))).collect();
        Self { service, faults, lacking, names, counts: Arc::default(), generations: 0 }
    }

    /// Whether no answer has to wait for anything.
    pub(crate) fn is_instant(&self) -> bool {
        matches!(self.service, Service::Instant(_))
    }

    /// Requests that may be in service at once.
    pub(crate) fn slots(&self) -> usize {
        match &self.service {
            Service::Timed(timed) => timed.slots.map_or(usize::MAX, |slots| slots.get() as usize),
            Service::Instant(_) | Service::Scheduler(..) => usize::MAX,
        }
    }

    /// What the scheduler is to count, in its mode.
    pub(crate) fn step_counts(&self) -> Option<&Arc<StepCounts>> {
        match &self.service {
            Service::Scheduler(_, counts) => Some(counts),
            Service::Instant(_) | Service::Timed(_) => None,
        }
    }

    fn answers(&self) -> Option<&TimedConfig> {
        match &self.service {
            Service::Instant(_) => None,
            Service::Timed(timed) => Some(timed),
            Service::Scheduler(scheduler, _) => Some(&scheduler.answers),
        }
    }

    /// Answers `request`, or says what it takes to.
    #[inline]
    pub(crate) fn answer(&mut self, request: &Request<'_>, page: &mut Page<'_>) -> Reply {
        match &self.service {
            Service::Instant(prepared) => {
                if matches!(request.method, "GET" | "HEAD") && request.path() == "/metrics" {
                    self.metrics(request, page);
                    return Reply::Written;
                }
                page.begins();
                let streamed = prepared.answer(request, page.out);
                page.ends(200, streamed);
                Reply::Written
            }
            Service::Timed(_) | Service::Scheduler(..) => self.answer_timed(request, page),
        }
    }

    fn answer_timed(&mut self, request: &Request<'_>, page: &mut Page<'_>) -> Reply {
        let get = matches!(request.method, "GET" | "HEAD");
        if let Some(api) = Api::of(request) {
            if request.method == "POST" {
                return self.generate(api, request, page);
            }
            refuse(405, "this route takes POST", request, page);
            return Reply::Written;
        }
        if let Service::Scheduler(config, _) = &self.service
            && let Some(reply) = self.scheduler_route(config, request, page)
        {
            return reply;
        }
        match request.path() {
            "/health" if get => json_answer(request, page, |data| {
                data.extend_from_slice(b"{\"status\":\"ok\"}");
            }),
            "/v1/models" if get => {
                let created_s = self.names.created_s(self.names.anchor.mono);
                json_answer(request, page, |data| models(data, &self.names.model, created_s));
            }
            "/metrics" if get => self.metrics(request, page),
            "/health" | "/v1/models" | "/metrics" => {
                refuse(405, "this route takes GET", request, page);
            }
            _ => refuse(404, "there is no such route", request, page),
        }
        Reply::Written
    }

    /// The routes that only a scheduler has; `None` for others.
    fn scheduler_route(
        &self,
        config: &SchedulerConfig,
        request: &Request<'_>,
        page: &mut Page<'_>,
    ) -> Option<Reply> {
        match (request.method, request.path()) {
            ("GET", "/version") => json_answer(request, page, |data| {
                data.extend_from_slice(b"{\"version\":\"takt-mock-");
                data.extend_from_slice(env!("CARGO_PKG_VERSION").as_bytes());
                data.extend_from_slice(b"\"}");
            }),
            ("GET", "/server_info") => {
                json_answer(request, page, |data| config.describe(&self.names.model, data));
            }
            // As vLLM's: always 200, always empty, and there only with a profiler.
            ("POST", path @ ("/start_profile" | "/stop_profile")) if config.profiler.is_some() => {
                whole(200, JSON, &[], request, page, |_| {});
                return Some(Reply::Profile { start: path == "/start_profile" });
            }
            _ => return None,
        }
        Some(Reply::Written)
    }

    fn generate(&mut self, api: Api, request: &Request<'_>, page: &mut Page<'_>) -> Reply {
        let ordinal = self.generations;
        self.generations += 1;
        let Some(config) = self.answers() else { return Reply::Written };
        let key = request.id.map_or(PlanKey::Ordinal(ordinal), PlanKey::Id);
        let plan = Plan::draw(config, key);
        if let Some(status) = plan.error() {
            refuse(status, "a planned error", request, page);
            return Reply::Written;
        }
        let mut generation = Generation::new(config, api, request, ordinal, plan);
        if let Some(missing) = generation.missing() {
            refuse(400, missing, request, page);
            return Reply::Written;
        }
        if let Service::Scheduler(config, _) = &self.service {
            let prompt = Prompt::read(request.body, config.cache.block_tokens.get());
            let Some(room) = config.context_max.get().checked_sub(prompt.tokens).filter(|r| *r > 0)
            else {
                refuse(400, &too_long(&prompt, config), request, page);
                return Reply::Written;
            };
            generation = generation.fed(prompt, room);
        }
        if let Some(fault) = self.faults.as_ref().and_then(|faults| faults.draw(key)) {
            if self.lacking.contains(&(fault, api)) {
                let path = api.path();
                let says = format!("answers of {path} have nothing that the fault {fault} changes");
                refuse(501, &says, request, page);
                return Reply::Written;
            }
            generation = generation.spoiled(fault);
        }
        if let Some(ledger) = &mut page.ledger {
            ledger.status(200, generation.streams());
        }
        Reply::Generate(generation)
    }

    fn metrics(&self, request: &Request<'_>, page: &mut Page<'_>) {
        let content_type = "text/plain; version=0.0.4; charset=utf-8";
        let counts = &self.counts;
        whole(200, content_type, &[], request, page, |data| {
            counts.expose(data);
            if let Some(steps) = self.step_counts() {
                steps.expose(data);
            }
        });
    }
}

/// Answers what cannot be read as a request; the connection is closed behind it.
pub(crate) fn misread(error_: FramingError, page: &mut Page<'_>) {
    let status = match error_ {
        FramingError::HeadTooLarge { .. } => 431,
        FramingError::BodyTooLarge { .. } => 413,
        _ => 400,
    };
    page.answer(status, JSON, false, &[], |data| {
        error(data, &error_.to_string(), kind(status), status);
    });
    page.counts.answered(status);
}

/// In the words that clients know from vLLM.
fn too_long(prompt: &Prompt, config: &SchedulerConfig) -> String {
    format!(
        "This model's maximum context length is {} tokens. However, your prompt has {} and needs room for an \
         answer; shorten it.",
        config.context_max, prompt.tokens
    )
}

fn refuse(status: u16, message: &str, request: &Request<'_>, page: &mut Page<'_>) {
    let extra: &[(&str, &str)] = match status {
        405 => &[("Allow", if Api::of(request).is_some() { "POST" } else { "GET, HEAD" })],
        429 | 503 => &[("Retry-After", "1")],
        _ => &[],
    };
    whole(status, JSON, extra, request, page, |data| error(data, message, kind(status), status));
}

fn json_answer(request: &Request<'_>, page: &mut Page<'_>, body: impl FnOnce(&mut Vec<u8>)) {
    whole(200, JSON, &[], request, page, body);
}

/// A whole answer; to HEAD its head alone.
fn whole(
    status: u16,
    content_type: &str,
    extra: &[(&str, &str)],
    request: &Request<'_>,
    page: &mut Page<'_>,
    body: impl FnOnce(&mut Vec<u8>),
) {
    page.answer(status, content_type, request.keep_alive, extra, body);
    if request.method == "HEAD" {
        page.out.truncate(page.out.len() - page.data.len());
    }
    page.ends(status, false);
}

fn kind(status: u16) -> &'static str {
    match status {
        404 => "not_found_error",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ => "server_error",
    }
}

const JSON: &str = "application/json";
