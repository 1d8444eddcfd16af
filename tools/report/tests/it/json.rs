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
