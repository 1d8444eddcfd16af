//! A sweep of six phases in one session, held against what the server wrote down of each request.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use takt_record::{Completed, Fold, Outcome, PhaseEvent, PhaseId, Record, RequestId, fold_journal};

use crate::bench::{Bench, Mock};
use crate::truth::truth;

/// Each completion of a journal, and whether its phase was over by then.
#[derive(Default)]
struct Ends {
    all: Vec<(Completed, bool)>,
    over: BTreeSet<PhaseId>,
}

impl Fold for Ends {
    fn fold(&mut self, record: &Record<'_>) {
        match record {
            Record::Completed(done) => self.all.push((*done, self.over.contains(&done.key.phase))),
            Record::Phase(phase) if matches!(phase.event, PhaseEvent::Ended { .. }) => {
                self.over.insert(phase.phase);
            }
            _ => {}
        }
    }
}

/// Warm-ups, undrained, each before a phase that is measured. The last inherits more than it may have itself.
const PHASES: [(&str, u32, u32); 6] = [
    ("warm_4", 4, 40),
    ("perf_4", 4, 120),
    ("warm_8", 8, 40),
    ("perf_8", 8, 160),
    ("warm_6", 6, 40),
    ("perf_2", 2, 60),
];

fn config(url: &str) -> String {
    let mut text = format!("endpoint: {{url: '{url}', model: m}}\nphases:\n");
    for (name, target, requests) in PHASES {
        let kind = if name.starts_with("warm") { "warmup" } else { "performance" };
        text += &format!(
            "  - {{name: {name}, type: {kind}, requests: {requests}, load: {{pattern: concurrency, \
             target_concurrency: {target}}}}}\n"
        );
    }
    text
}

#[test]
fn a_sweep_of_six_phases_adds_up_to_what_the_server_saw_request_by_request() {
    let bench = Bench::new();
    let timed = ["--ttft", "exp:15ms", "--tpot", "1ms", "--tokens", "uniform:1..9"];
    let mut args = timed.to_vec();
    args.extend(["--errors", "503:0.1", "--truth", "truth.jsonl"]);
    let mock = Mock::start(&bench, &args);
    bench.file("sweep.yaml", &config(&mock.url()));
    bench.takt(&["run", "sweep.yaml", "--out", "out"]).exits(0);
    assert_eq!(mock.stop(), 0);

    let (result, truth) = (bench.result(), truth(&bench));
    let mut ends = Ends::default();
    let journal = bench.path("out/journal/000000.takt");
    fold_journal(&mut takt_recorder::open_journal(&journal).unwrap(), &mut ends).unwrap();
    let done = ends.all;
    let session = u128::from_str_radix(result["session_id"].as_str().unwrap(), 16).unwrap();
    let id = |done: &Completed| RequestId::new(session as u64, done.key).to_string();
    let all: u32 = PHASES.iter().map(|(.., requests)| requests).sum();
    assert_eq!((done.len(), truth.len()), (all as usize, all as usize), "no more and no less");

    // Both sides say the same of each request, and each result counts those of its own phase.
    let mut by_phase: BTreeMap<u16, Vec<(&Value, bool)>> = BTreeMap::new();
    for (done, late) in &done {
        let server = truth.get(&id(done)).unwrap_or_else(|| panic!("{:?} was not seen", done.key));
        assert_eq!(done.outcome == Outcome::Ok, server["status"] == 200, "{server}");
        by_phase.entry(done.key.phase.0).or_default().push((server, *late));
    }
    for (place, (name, target, requests)) in PHASES.iter().enumerate() {
        let phase = &result["phases"][place];
        let count = |key: &str| phase[key].as_u64().unwrap();
        let own = &by_phase[&(place as u16)];
        let in_time: Vec<&Value> =
            own.iter().filter(|(_, late)| !late).map(|(server, _)| *server).collect();
        assert_eq!(phase["name"], *name);
        assert_eq!((count("issued"), own.len()), (u64::from(*requests), *requests as usize));
        assert_eq!(count("completed"), in_time.len() as u64, "{name}");
        assert_eq!(count("late"), (own.len() - in_time.len()) as u64, "{name}");
        let well = in_time.iter().filter(|server| server["status"] == 200);
        assert_eq!(count("succeeded"), well.clone().count() as u64, "{name}");
        let refused = phase["errors"]["http_status"].as_u64().unwrap_or(0);
        assert_eq!(count("failed"), refused, "{name}");
        if name.starts_with("warm") {
            // What it left running is what the next one found running.
            assert_eq!(count("late"), result["phases"][place + 1]["inherited"], "{name}");
            assert!(phase["latency_ms"]["from_send"].is_null() && phase["tokens"].is_null());
            continue;
        }
        assert_eq!(count("late"), 0, "{name} was drained");
        let tokens: u64 = well.clone().map(|server| server["tokens"].as_u64().unwrap()).sum();
        assert_eq!(phase["tokens"]["output_total"], tokens, "{name}");
        assert_eq!(phase["latency_ms"]["from_send"]["count"], count("succeeded"), "{name}");
        let at = |server: &Value, key: &str| server[key].as_u64().unwrap();
        for (server, _) in own {
            let arrived = at(server, "arrived_ns");
            let there = truth.values().filter(|other| {
                (at(other, "arrived_ns")..at(other, "ended_ns")).contains(&arrived)
            });
            let there = there.count() as u32;
            assert!(there <= *target, "{server} came as number {there} of {target}");
        }
    }
}
