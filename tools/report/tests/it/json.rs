//! The document as JSON.

use takt_record::ResultDoc;

use crate::run::{Run, closed, ok, open, warmup};

fn document() -> ResultDoc {
    let mut run = Run::new(vec![warmup("warm"), open("perf", 10.0), closed("never", 1)]);
    run.phase(0, 0.0, 100.0).phase(1, 100.0, 400.0);
    run.add(&ok(0, 0.0, 90.0));
    let events = [(200.0, None), (300.0, None)];
    run.add(&ok(0, 150.0, 300.0).streamed(&events, 2).of_phase(1).scheduled(150.0));
    run.result()
}

#[test]
fn a_document_comes_back_from_json_as_it_was() {
    let result = document();
    let text = serde_json::to_string(&result).unwrap();
    assert_eq!(serde_json::from_str::<ResultDoc>(&text).unwrap(), result);
}

#[test]
fn every_key_of_the_schema_is_there_and_absent_is_null() {
    let json = serde_json::to_value(document()).unwrap();
    for key in [
        "schema",
        "takt",
        "session_id",
        "started_at",
        "start_time_ns",
        "end_time_ns",
        "state",
        "complete",
        "verdict",
        "host",
        "config",
        "phases",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
    assert_eq!(json["schema"], "takt-result-1");
    assert_eq!(json["verdict"]["status"], "valid");
    for phase in json["phases"].as_array().unwrap() {
        for key in [
            "name",
            "type",
            "state",
            "ended_by",
            "start_time_ns",
            "end_time_ns",
            "issued",
            "completed",
            "succeeded",
            "failed",
            "unanswered",
            "skipped",
            "late",
            "inherited",
            "retried",
            "profiled",
            "duration_s",
            "issue_window_s",
            "steady",
            "requests_per_s",
            "successful_per_s",
            "output_tokens_per_s",
            "goodput",
            "errors",
            "error_samples",
            "finish_reasons",
            "latency_ms",
            "ttft_ms",
            "tpot_ms",
            "itl_ms",
            "event_gap_ms",
            "lateness_us",
            "queue_ms",
            "connect_ms",
            "tls_ms",
            "write_ms",
            "in_flight",
            "tokens",
            "turns",
            "series",
            "score",
        ] {
            assert!(phase.get(key).is_some(), "{key}");
        }
    }
    let perf = &json["phases"][1];
    assert!(perf["connect_ms"].is_null() && perf["requests_per_s"].is_null());
    let keys: Vec<_> = perf["latency_ms"]["from_send"]["p"].as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 10);
    assert!(perf["latency_ms"]["from_send"]["p"]["99.9"].is_number());
}

#[test]
fn a_snapshot_counts_by_phase_and_in_all_and_comes_back_from_json() {
    let mut run = Run::new(vec![warmup("warm"), open("perf", 10.0)]);
    run.phase(0, 0.0, 100.0).phase(1, 100.0, 400.0);
    run.add(&ok(0, 0.0, 90.0));
    let events = [(200.0, None), (300.0, None)];
    run.add(&ok(0, 150.0, 300.0).streamed(&events, 2).of_phase(1).scheduled(150.0));
    let fold = run.fold();
    let snapshot = fold.snapshot(7, fold.last_at(), true);
    let text = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(serde_json::from_str::<takt_record::MetricsSnapshot>(&text).unwrap(), snapshot);

    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json["schema"], &json["counter"]), (&"takt-snapshot-1".into(), &7.into()));
    let named = |metrics: &serde_json::Value, name: &str| {
        metrics.as_array().unwrap().iter().find(|metric| metric["name"] == name).cloned()
    };
    let total = |name: &str| named(&json["metrics"], name).unwrap()["value"].clone();
    assert_eq!(
        (total("total_samples_issued"), total("tracked_samples_issued")),
        (2.into(), 1.into())
    );
    let (warm, perf) = (&json["phases"][0]["metrics"], &json["phases"][1]["metrics"]);
    assert_eq!(named(warm, "samples_succeeded").unwrap()["value"], 1);
    assert_eq!(named(warm, "sample_latency_ns"), None, "a warm-up has no series");
    // Sent at 150 ms, first token at 200 ms, the end at 300 ms.
    let ttft = named(perf, "ttft_ns").unwrap();
    assert_eq!((&ttft["type"], &ttft["count"]), (&"series".into(), &1.into()));
    assert_eq!((&ttft["total"], &ttft["min"]), (&50_000_000.into(), &50_000_000.into()));
    assert_eq!(ttft["percentiles"]["99.9"].as_f64(), Some(50e6));
    assert_eq!(named(perf, "sample_latency_ns").unwrap()["max"], 150_000_000);
}
