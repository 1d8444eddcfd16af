//! Facts about the scheduler as clients see it.

use std::sync::{Arc, Mutex};

use takt_engine::Target;
use takt_record::StepRecord;
use takt_time::{Nanos, Span};

use super::{CostModel, ProfiledWindow, ProfilerConfig, SchedulerConfig, SchedulerSink};
use crate::config::{Mode, ServerConfig};
use crate::distribution::CountDistribution;
use crate::server::{Server, ServerMsg};
use crate::testing::{CHAT, MS, Rig, STREAM, post};
use crate::truth::{Truth, TruthSink};

/// What both sinks were told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    records: Vec<StepRecord<'static>>,
    windows: Vec<ProfiledWindow>,
    unfinalized: Option<u64>,
    /// Planned and written instants of each event, and the request's tokens.
    truths: Vec<(Vec<(Nanos, Nanos)>, u32)>,
}

impl SchedulerSink for Told {
    fn step(&mut self, record: StepRecord<'static>) {
        self.0.lock().unwrap().records.push(record);
    }
    fn window(&mut self, window: ProfiledWindow) {
        self.0.lock().unwrap().windows.push(window);
    }
    fn end(&mut self, unfinalized: u64) {
        self.0.lock().unwrap().unfinalized = Some(unfinalized);
    }
}

impl TruthSink for Told {
    fn truth(&mut self, line: &Truth<'_>) {
        let events = line.events.iter().map(|event| (event.planned, event.written)).collect();
        self.0.lock().unwrap().truths.push((events, line.tokens));
    }
}

/// Steps of 10 ms whatever they hold, three tokens an answer, a profiler.
fn rig(change: impl FnOnce(&mut SchedulerConfig)) -> (Rig, Told) {
    let cost = CostModel {
        step: Span::from_millis(10),
        prompt_token: Span::ZERO,
        decode_token: Span::ZERO,
        padding_token: Span::ZERO,
        request: Span::ZERO,
        context_1k: Span::ZERO,
        noise: 0.0,
        ..CostModel::default()
    };
    let profiler = Some(ProfilerConfig { steps_max: 2, ..ProfilerConfig::default() });
    let mut config = SchedulerConfig { cost, profiler, ..SchedulerConfig::default() };
    config.answers.tokens = CountDistribution::fixed(3);
    change(&mut config);
    let listen = Target::tcp(([127, 0, 0, 1], 0).into());
    let config = ServerConfig::new(listen, Mode::Scheduler(Box::new(config)));
    let told = Told::default();
    let server = Server::new(config).unwrap();
    (Rig::new(server.with_truth(told.clone()).with_scheduler_sink(told.clone())), told)
}

#[test]
fn tokens_leave_when_their_step_is_complete_and_the_truth_says_so() {
    let (mut rig, told) = rig(|_| {});
    for number in 0..2 {
        rig.connect();
        rig.send(number, post(CHAT, "", STREAM));
    }
    rig.run_to(1_000 * MS);
    let lines = told.0.lock().unwrap();
    // Three steps of the model and one that hears of the end.
    let [first, second, third, last] = &lines.records[..] else { panic!("four steps") };
    assert_eq!(
        (first.prefill_requests, second.decode_batch_size, third.decode_batch_size),
        (2, 2, 2)
    );
    assert!(!last.model_executed);
    let ends: Vec<u64> = lines.records[..3].iter().map(|r| r.complete_mono_ns).collect();
    for (number, (events, tokens)) in lines.truths.iter().enumerate() {
        let written: Vec<u64> = events.iter().map(|(_, written)| written.as_nanos()).collect();
        assert_eq!((&written, *tokens), (&ends, 3));
        assert!(events.iter().all(|(planned, written)| planned == written));
        let answer = &rig.answers(number)[0];
        assert!(answer.complete && answer.events().last().unwrap() == "[DONE]");
        assert_eq!(answer.events().len(), 3 + 3, "a role, three tokens, a reason, an end");
    }
}

#[test]
fn an_answer_that_does_not_stream_leaves_with_its_last_token_and_counts_its_prompt() {
    let (mut rig, told) = rig(|_| {});
    rig.connect();
    rig.send(0, post("/v1/completions", "", r#"{"prompt":"abcdefghi","max_tokens":2}"#));
    rig.run_to(1_000 * MS);
    let answer = &rig.answers(0)[0];
    assert!(answer.body.contains(r#""prompt_tokens":3,"completion_tokens":2"#), "{}", answer.body);
    assert!(answer.body.contains(r#""finish_reason":"length""#));
    let lines = told.0.lock().unwrap();
    let written = rig.with(0, |pipe| pipe.writes[0].0);
    assert_eq!(written.as_nanos(), lines.records[1].complete_mono_ns);
}

#[test]
fn a_client_that_resets_leaves_the_batch() {
    let (mut rig, told) = rig(|c| c.answers.tokens = CountDistribution::fixed(100));
    rig.connect();
    rig.connect();
    rig.send(0, post(CHAT, "", STREAM));
    rig.send(1, post(CHAT, "", r#"{"stream":true,"max_tokens":9}"#));
    rig.run_to(25 * MS);
    rig.reset(0);
    rig.run_to(1_000 * MS);
    let lines = told.0.lock().unwrap();
    let batches: Vec<u64> = lines.records.iter().map(|r| r.scheduled_requests).collect();
    assert_eq!(batches[..3], [2, 2, 2]);
    assert_eq!(batches[3..9], [1; 6]);
    assert_eq!(lines.records.last().unwrap().kv.used_blocks, 0);
    assert_eq!(rig.counts.gone(), 1);
}

#[test]
fn a_prompt_that_leaves_no_room_is_refused() {
    let (mut rig, told) = rig(|c| c.context_max = std::num::NonZeroU32::new(8).unwrap());
    rig.connect();
    let prompt = "x".repeat(32);
    rig.send(0, post("/v1/completions", "", &format!(r#"{{"prompt":"{prompt}"}}"#)));
    rig.send(0, post("/v1/completions", "", r#"{"prompt":"twenty-four bytes of text"}"#));
    rig.run_to(1_000 * MS);
    let answers = rig.answers(0);
    assert_eq!((answers[0].status, answers[1].status), (400, 200));
    assert!(answers[0].body.contains("maximum context length is 8 tokens"), "{}", answers[0].body);
    assert!(answers[1].body.contains(r#""prompt_tokens":7,"completion_tokens":1"#));
    assert_eq!(told.0.lock().unwrap().records[0].prefill_tokens, 7);
}

#[test]
fn the_profiler_answers_200_and_nothing_and_writes_what_it_saw() {
    let (mut rig, told) = rig(|c| c.answers.tokens = CountDistribution::fixed(9));
    rig.connect();
    rig.connect();
    rig.send(0, post(CHAT, "", STREAM));
    rig.run_to(15 * MS);
    rig.send(1, post("/start_profile", "", ""));
    rig.run_to(60 * MS);
    rig.send(1, post("/stop_profile", "", ""));
    rig.run_to(65 * MS);
    // Started and stopped while one step is under way: a window over no step.
    rig.send(1, post("/start_profile", "", ""));
    rig.run_to(66 * MS);
    rig.send(1, post("/stop_profile", "", ""));
    rig.run_to(1_000 * MS);
    let answers = rig.answers(1);
    assert!(answers.iter().all(|a| a.status == 200 && a.body.is_empty()));
    let lines = told.0.lock().unwrap();
    let steps: Vec<Vec<u64>> =
        lines.windows.iter().map(|w| w.shapes().map(|shape| shape.index).collect()).collect();
    // The step at 15 ms, the second one, was under way.
    assert_eq!(steps, [vec![2, 3], vec![]]);
    drop(lines);
    let (mut plain, _) = self::rig(|c| c.profiler = None);
    plain.connect();
    plain.send(0, post("/start_profile", "", ""));
    plain.run_to(MS);
    assert_eq!(plain.answers(0)[0].status, 404);
}

#[test]
fn figures_of_the_scheduler_are_in_the_metrics_and_its_shape_in_server_info() {
    let (mut rig, _) = rig(|_| {});
    rig.connect();
    rig.send(0, post(CHAT, "", r#"{"messages":[{"role":"user","content":"abcdefgh"}]}"#));
    rig.run_to(1_000 * MS);
    for path in ["/metrics", "/server_info", "/version"] {
        rig.send(0, format!("GET {path} HTTP/1.1\r\n\r\n"));
    }
    rig.run_to(1_001 * MS);
    let answers = rig.answers(0);
    for line in
        ["steps_total 4", "prompt_tokens_total 3", "generation_tokens_total 3", "kv_blocks 8192"]
    {
        assert!(answers[1].body.contains(&format!("\ntakt_mock_scheduler_{line}\n")), "{line}");
    }
    let info: serde_json::Value = serde_json::from_str(&answers[2].body).unwrap();
    assert_eq!(info["config"]["max_num_batched_tokens"], 2048);
    assert_eq!(info["model"], "mock");
    assert!(answers[3].body.contains("takt-mock-"));
}

#[test]
fn a_stop_says_how_many_steps_were_under_way() {
    let (mut rig, told) = rig(|_| {});
    rig.connect();
    rig.send(0, post(CHAT, "", STREAM));
    rig.run_to(5 * MS);
    rig.tell(ServerMsg::Stop);
    rig.run_to(6 * MS);
    assert!(rig.is_stopped());
    assert_eq!(told.0.lock().unwrap().unfinalized, Some(1));
}
