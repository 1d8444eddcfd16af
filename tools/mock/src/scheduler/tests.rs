//! Facts about the scheduler alone, in virtual time, and about what it tells of itself.

use std::num::NonZeroU32;
use std::sync::Arc;

use proptest::prelude::*;
use takt_engine::StreamId;
use takt_opprof::{
    AttributeOptions, Families, FileCheck, RankWork, StepFacts, Trace, Window, attribute,
    calibrate, samples,
};
use takt_record::StepRecord;
use takt_time::{Anchor, Nanos};

use super::core::{Asking, Core, Ticket};
use super::*;

fn n(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

/// A small server: 64 tokens a step, 40 blocks of 8 tokens, contexts of 200.
fn small(change: impl FnOnce(&mut SchedulerConfig)) -> SchedulerConfig {
    let mut config = SchedulerConfig {
        batch: BatchLimits { tokens: n(64), requests: n(8) },
        cache: CacheConfig { blocks: n(40), block_tokens: n(8), prefixes: true },
        context_max: n(200),
        ..SchedulerConfig::default()
    };
    change(&mut config);
    config
}

/// A scheduler, a clock and what came of them.
struct Sim {
    core: Core,
    now: Nanos,
    records: Vec<StepRecord<'static>>,
    windows: Vec<ProfiledWindow>,
    /// Tokens and the time of the first, by stream.
    made: Vec<(u32, Option<Nanos>)>,
    tickets: Vec<Ticket>,
}

impl Sim {
    fn new(config: &SchedulerConfig) -> Self {
        config.check().unwrap();
        let anchor = Anchor { mono: Nanos::ZERO, wall_ns: 1_790_000_000_000_000_000 };
        Self {
            core: Core::new(config, anchor, Arc::default()),
            now: Nanos::ZERO,
            records: Vec::new(),
            windows: Vec::new(),
            made: Vec::new(),
            tickets: Vec::new(),
        }
    }

    /// Asks for `tokens` after a prompt of `prompt`, four bytes a token.
    fn ask(&mut self, prompt: &str, tokens: u32) -> usize {
        self.ask_with(Prompt::read(format!("{{\"prompt\":\"{prompt}\"}}").as_bytes(), 8), tokens)
    }

    fn ask_with(&mut self, prompt: Prompt, tokens: u32) -> usize {
        let number = self.made.len();
        self.made.push((0, None));
        let stream = StreamId::new(number as u32, 0);
        self.tickets.push(self.core.add(Asking { stream, prompt, tokens }, self.now));
        number
    }

    /// One step, or the time until one can begin; false when there is nothing to do.
    fn step(&mut self) -> bool {
        let Some(at) = self.core.next_at(self.now) else { return false };
        self.now = at;
        let (ends, window) = self.core.begin(at);
        self.windows.extend(window);
        self.now = ends;
        let completed = self.core.complete(ends).unwrap();
        assert_eq!(completed.planned, ends);
        self.records.push(completed.record);
        for emitted in completed.emitted {
            let (tokens, first) = &mut self.made[emitted.stream.index()];
            *tokens += emitted.tokens;
            first.get_or_insert(ends);
        }
        self.windows.extend(self.core.stopped(ends));
        true
    }

    fn run(&mut self) {
        for _ in 0..100_000 {
            if !self.step() {
                return;
            }
        }
        panic!("it does not come to an end");
    }

    fn check(&self) {
        let mut check = FileCheck::new(None);
        for (line, record) in (1..).zip(&self.records) {
            check.record(line, record);
        }
        assert_eq!(check.end(None).findings, []);
    }

    fn sum(&self, of: impl Fn(&StepRecord<'_>) -> u64) -> u64 {
        self.records.iter().map(of).sum()
    }
}

/// A prompt of so many tokens, like no other with another letter.
fn text(letter: char, tokens: usize) -> String {
    letter.to_string().repeat(4 * tokens)
}

#[test]
fn a_prompt_is_cut_at_the_budget_and_decodes_go_first() {
    let mut sim = Sim::new(&small(|_| {}));
    sim.ask(&text('a', 150), 3);
    sim.step();
    sim.ask(&text('b', 20), 2);
    sim.run();
    sim.check();
    let rows: Vec<_> = sim
        .records
        .iter()
        .map(|r| {
            let c = &r.chunked_prefill;
            ([c.first, c.middle, c.last, c.unsplit], r.prefill_tokens, r.decode_tokens)
        })
        .collect();
    // 64 + 64 + 22 tokens; the second prompt comes in where the first leaves room. The last step is
    // empty: it hears that the batch has ended.
    let expect = [
        ([1, 0, 0, 0], 64, 0),
        ([0, 1, 0, 0], 64, 0),
        ([0, 0, 1, 1], 42, 0),
        ([0, 0, 0, 0], 0, 2),
        ([0, 0, 0, 0], 0, 1),
        ([0, 0, 0, 0], 0, 0),
    ];
    assert_eq!(rows, expect);
    assert!(!sim.records[5].model_executed);
    assert_eq!(sim.records[5].kv.used_blocks, 0);
    assert_eq!((sim.made[0].0, sim.made[1].0), (3, 2));
    let modes: Vec<_> = sim.records.iter().filter_map(|r| r.cudagraph.as_ref()).collect();
    assert_eq!((&*modes[0].runtime_mode, modes[0].bucket_tokens), ("PIECEWISE", 64));
    assert_eq!((&*modes[3].runtime_mode, modes[3].bucket_tokens), ("FULL", 2));
}

#[test]
fn a_prompt_seen_before_is_found_but_for_its_last_token() {
    let mut sim = Sim::new(&small(|_| {}));
    sim.ask(&text('a', 48), 1);
    sim.run();
    let cold = sim.now;
    sim.ask(&text('a', 48), 1);
    let started = sim.now;
    sim.run();
    sim.check();
    let found = &sim.records[2].prefix.local;
    // Six whole blocks; the last would leave nothing to compute.
    assert_eq!((found.requests, found.queries, found.hits), (1, 48, 40));
    assert_eq!(sim.records[2].prefill_tokens, 8);
    let warm = sim.made[1].1.unwrap().saturating_since(started);
    assert!(warm.as_nanos() < cold.as_nanos());
    let mut off = Sim::new(&small(|c| c.cache.prefixes = false));
    off.ask(&text('a', 48), 1);
    off.run();
    off.ask(&text('a', 48), 1);
    off.run();
    assert_eq!(off.sum(|r| r.prefix.local.queries), 0);
    assert_eq!(off.sum(|r| r.prefill_tokens), 96);
}

#[test]
fn who_finds_no_block_throws_out_the_newest_and_that_one_is_computed_again() {
    let mut sim = Sim::new(&small(|c| c.cache.prefixes = false));
    // Two prompts of 100 tokens hold 26 of 40 blocks; their answers need 25 more.
    sim.ask(&text('a', 100), 100);
    sim.ask(&text('b', 100), 100);
    sim.run();
    sim.check();
    assert_eq!((sim.made[0].0, sim.made[1].0), (100, 100));
    assert!(sim.sum(|r| r.preemptions) >= 1);
    assert!(sim.sum(|r| r.resumed_tokens.unwrap()) > 100);
    let waited = sim.records.iter().find(|r| r.preemptions > 0).unwrap();
    assert_eq!((waited.queues.running, waited.queues.waiting), (1, 1));
    // With a prefix cache, what is thrown out is looked up again.
    let mut cached = Sim::new(&small(|_| {}));
    cached.ask(&text('a', 100), 100);
    cached.ask(&text('b', 100), 100);
    cached.run();
    cached.check();
    assert!(cached.sum(|r| r.prefix.local.preempted_queries) > 0);
}

#[test]
fn a_request_with_a_grammar_is_passed_by_others() {
    let mut sim = Sim::new(&small(|_| {}));
    let body = r#"{"prompt":"grammar","response_format":{"type":"json_object"}}"#;
    let slow = sim.ask_with(Prompt::read(body.as_bytes(), 8), 1);
    let quick = sim.ask(&text('b', 10), 1);
    sim.run();
    sim.check();
    assert_eq!(sim.records[0].queues.deferred, 1);
    assert!(sim.made[slow].1 > sim.made[quick].1);
    assert!(sim.made[slow].1.unwrap() >= Nanos::ZERO + SchedulerConfig::default().grammar);
}

#[test]
fn guessed_tokens_shorten_an_answer_by_the_share_that_is_right() {
    let steps = |accepted| {
        let speculative = SpeculativeConfig { tokens: 3, accepted };
        let mut sim = Sim::new(&small(|c| c.speculative = speculative));
        sim.ask(&text('a', 10), 101);
        sim.run();
        sim.check();
        assert_eq!(sim.made[0].0, 101);
        sim.records.iter().filter(|r| r.decode_tokens == 4).count()
    };
    // A hundred tokens after the first, four a step or one.
    assert_eq!((steps(1.0), steps(0.0)), (25, 100));
    // 1 + 0.5 + 0.25 + 0.125 tokens a step are 53 steps.
    assert!((43..65).contains(&steps(0.5)), "{}", steps(0.5));
}

#[test]
fn a_client_that_goes_away_leaves_its_blocks() {
    let mut sim = Sim::new(&small(|_| {}));
    sim.ask(&text('a', 100), 50);
    sim.ask(&text('b', 100), 5);
    sim.step();
    sim.core.abort(sim.tickets[0]);
    sim.run();
    sim.check();
    assert_eq!((sim.made[0].0, sim.made[1].0), (0, 5));
    assert_eq!(sim.records.last().unwrap().kv.used_blocks, 0);
}

proptest! {
    #[test]
    fn whatever_comes_every_answer_is_whole_and_every_record_holds(
        asks in prop::collection::vec((0_u64..40, 0_u8..4, 1_usize..190, 1_u32..60), 1..40),
        tokens in 8_u32..80,
        guessed in 0_u32..3,
        prefixes: bool,
    ) {
        let config = small(|c| {
            c.batch.tokens = n(tokens);
            c.cache.prefixes = prefixes;
            c.speculative.tokens = guessed;
        });
        let mut sim = Sim::new(&config);
        let mut wanted = Vec::new();
        for (steps, letter, prompt, answer) in asks {
            for _ in 0..steps {
                sim.step();
            }
            sim.ask(&text(char::from(b'a' + letter), prompt), answer);
            wanted.push(answer.min(200 - prompt as u32));
        }
        sim.run();
        let made: Vec<u32> = sim.made.iter().map(|(tokens, _)| *tokens).collect();
        prop_assert_eq!(made, wanted);
        sim.check();
        prop_assert_eq!(sim.records.last().unwrap().kv.used_blocks, 0);
    }
}

/// A server of the usual size with a profiler, under a load whose composition changes: windows of eight
/// steps, one after another.
fn profiled(graphs: GraphPolicy, windows: usize) -> Sim {
    let profiler = Some(ProfilerConfig { steps_max: 8, ..ProfilerConfig::default() });
    let mut sim = Sim::new(&SchedulerConfig { profiler, graphs, ..SchedulerConfig::default() });
    let mut asked = 0_usize;
    for window in 0..windows {
        sim.core.start_profile();
        // The step after the last writes the window, so there is one more.
        for step in 0..14 {
            for _ in 0..(window * 7 + step * 3) % 6 {
                let letter = char::from(b'a' + (asked % 20) as u8);
                sim.ask(&text(letter, 10 + asked * 37 % 300), 20 + (asked * 13 % 50) as u32);
                asked += 1;
            }
            sim.step();
        }
        sim.core.stop_profile();
        sim.step();
    }
    sim.run();
    sim.check();
    assert_eq!(sim.windows.len(), windows);
    sim
}

/// The windows as `takt opprof` reads them.
fn attributed(sim: &Sim, families: &Families) -> Vec<Window> {
    let records: Vec<StepFacts> = sim.records.iter().map(StepFacts::of).collect();
    let of = |window: &ProfiledWindow| {
        let rank = |rank| {
            let mut bytes = Vec::new();
            window.write(rank, &mut bytes).unwrap();
            let trace = Trace::read(bytes.as_slice()).unwrap();
            assert_eq!((trace.rank, trace.unreadable), (Some(u64::from(rank)), 0));
            RankWork::of(&trace, u64::from(rank), families, false)
        };
        attribute((0..window.ranks()).map(rank).collect(), &records, AttributeOptions::default())
    };
    sim.windows.iter().map(of).collect()
}

#[test]
fn attribution_finds_the_truth_to_the_nanosecond() {
    let families = Families::standard().unwrap();
    for graphs in [GraphPolicy::Full, GraphPolicy::Piecewise, GraphPolicy::Eager] {
        let sim = profiled(graphs, 3);
        for (window, found) in sim.windows.iter().zip(attributed(&sim, &families)) {
            assert_eq!((window.ranks(), found.steps.len()), (2, 8));
            assert_eq!(found.coverage(), 1.0);
            assert_eq!(
                found.contradictions(AttributeOptions {
                    clock_error_ns: 0,
                    ..AttributeOptions::default()
                }),
                []
            );
            for (step, attribution) in found.steps.iter().enumerate() {
                let shape = window.shapes().nth(step).unwrap();
                assert_eq!(attribution.record.unwrap().index, shape.index);
                assert!(attribution.residual_ns.unwrap() > 0);
                for (rank, work) in (0..).zip(&found.ranks) {
                    assert_eq!((work.lost.all(), work.unclassified.as_slice()), (0, &[][..]));
                    let cover = &work.steps[step].cover;
                    let (truth, covered_ns) = window.truth(step, rank);
                    assert_eq!(cover.union_ns, covered_ns);
                    assert!(cover.overlap_ns() > 0, "collectives overlap");
                    let found: Vec<_> = cover
                        .families
                        .iter()
                        .map(|f| {
                            (
                                families.names()[usize::from(f.family.0)].as_str(),
                                f.count,
                                f.union_ns,
                            )
                        })
                        .collect();
                    let mut truth: Vec<_> =
                        truth.iter().map(|f| (f.family.name(), f.count, f.ns)).collect();
                    truth.sort_by_key(|(name, ..)| families.names().iter().position(|n| n == name));
                    assert_eq!(found, truth);
                }
            }
        }
    }
}

#[test]
fn a_graph_is_one_launch_with_one_correlation() {
    let sim = profiled(GraphPolicy::Full, 6);
    let full =
        |w: &ProfiledWindow| w.shapes().filter(|s| s.graph == super::step::Graph::Full).count();
    let window = sim.windows.iter().max_by_key(|window| full(window)).unwrap();
    let full = full(window);
    let mut bytes = Vec::new();
    window.write(0, &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let trace = Trace::read(text.as_bytes()).unwrap();
    let mut kernels = std::collections::BTreeMap::new();
    for kernel in &trace.kernels {
        *kernels.entry(kernel.correlation.unwrap()).or_insert(0) += 1;
    }
    assert!(full > 0);
    // Eight layers of fifteen kernels.
    assert_eq!(kernels.values().filter(|count| **count == 120).count(), full);
    for name in ["cudaGraphLaunch", "cudaLaunchKernel", "cuLaunchKernelEx", "cudaMemcpyAsync"] {
        assert!(text.contains(name), "{name}");
    }
}

#[test]
fn calibration_holds_within_5_percent_on_windows_held_out() {
    let families = Families::standard().unwrap();
    let windows = attributed(&profiled(GraphPolicy::Full, 24), &families);
    let found = calibrate(&samples(&windows)).unwrap();
    let union = found.union.unwrap();
    assert!(union.mape < 0.05 && union.steps >= 20, "{}", found.render(&families));
    for (family, score) in &found.families {
        assert!(score.mape < 0.05, "{family:?}: {}", found.render(&families));
    }
}

#[test]
fn the_same_arrivals_and_seed_give_the_same_steps() {
    let (one, other) = (profiled(GraphPolicy::Full, 2), profiled(GraphPolicy::Full, 2));
    assert_eq!(one.records, other.records);
    assert_eq!(one.windows, other.windows);
}
