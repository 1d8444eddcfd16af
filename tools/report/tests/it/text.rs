//! The report as it stands on a screen. Expected figures are worked out beside each request.

use takt_record::{EndedBy, PhaseState};
use takt_report::render;

use crate::run::{Run, closed, failed, ok, open, warmup};

/// Shows what two texts differ in.
#[track_caller]
fn same(got: &str, want: &str) {
    assert!(got == want, "got:\n{got}\nwanted:\n{want}");
}

#[test]
fn a_head_that_is_too_long_for_a_line_goes_on_in_the_next() {
    let mut run = Run::new(vec![closed("p", 1)]);
    let model = "m".repeat(60);
    run.plan.config["endpoint"]["model"] = model.as_str().into();
    run.plan.config["engine"]["reactors"] = 2.into();
    run.phase(0, 0.0, 10.0).add(&ok(0, 0.0, 5.0));
    let mut result = run.result();
    result.state = takt_record::RunState::Interrupted;
    result.started_at = "2026-01-02T03:04:05.678Z".into();
    let text = render(&result);
    let head: Vec<&str> = text.lines().take(4).collect();
    let want = [
        "takt 0.1.0   demo   http://127.0.0.1:8000   openai-chat",
        &format!("  model {model}"),
        "2026-01-02T03:04:05.678Z   session 00112233   0.01 s   wait guard   INCOMPLETE: interrupted",
        "  2 reactors",
    ];
    assert_eq!(head, want, "{text}");
}

#[test]
fn a_run_reads_at_a_glance() {
    let mut run = Run::new(vec![warmup("warm"), open("perf", 100.0)]);
    run.start(0, 0.0, 0).end(0, 500.0, EndedBy::Requests, PhaseState::Complete);
    run.add(&ok(0, 0.0, 400.0)).add(&ok(1, 1.0, 600.0));
    run.start(1, 1_000.0, 1).end(1, 2_000.0, EndedBy::Requests, PhaseState::Complete);
    // A hundred requests, one each 10 ms, each 0.02 ms late: 25 ms from send, first token after 5 ms,
    // two more 10 ms apart. The last is refused.
    for i in 0..100u64 {
        let (due, sent) = (1_000.0 + i as f64 * 10.0, 1_000.02 + i as f64 * 10.0);
        let events = [(sent + 5.0, None), (sent + 15.0, None), (sent + 25.0, None)];
        let request = match i {
            99 => failed(i, sent, sent + 1.0),
            _ => ok(i, sent, sent + 25.0).streamed(&events, 3),
        };
        run.add(&request.scheduled(due).of_phase(1));
    }
    // Request 98 is sent at 1,980.02 and ends at 2,005.02, after its phase: it is late. So 98 of 100
    // succeeded in time, 97 of them by the last issue at 1,990; first to last send are 0.99 s.
    // In flight: 98 * 25.02 + 20 (98) + 1.02 (99) = 2,472.98 ms in 1 s; three at a time in the first
    // 5.02 ms after issues 2 to 98 and for 1.02 ms after issue 99, which is 48.8 % of the time.
    // From issue 2 on three are in flight at an issue; at issue 11 three times as many have ended: steady
    // from 0.11 s with 9 done to 0.99 s with 97.
    let text = render(&run.result());
    same(
        &text,
        "\
takt 0.1.0   demo   http://127.0.0.1:8000   openai-chat   model tiny
2026-01-02T03:04:05Z   session 00112233   2.005 s   wait guard   complete
verdict: suspect (one reason, at the end)

warm   warmup   concurrency 1   complete, ended by requests   0.5 s
  issued 2   succeeded 1   failed 0   late 1

perf   performance   poisson 100/s   complete, ended by requests   1 s
  issued 100   succeeded 98   failed 1   late 1   inherited 1
  101 requests/s sent   98 succeeded/s   294 output tokens/s
  steady from 0.11 s to 0.99 s: 100 succeeded/s   300 output tokens/s
  errors: http_status 1
    1 x http_status 503: busy
                              mean    p50    p90    p99  p99.9    max
  latency ms, from schedule  25.02  25.02  25.02  25.02  25.02  25.02
  latency ms, from send      25.00  25.00  25.00  25.00  25.00  25.00
  TTFT ms, from schedule     5.020  5.020  5.020  5.020  5.020  5.020
  TTFT ms, from send         5.000  5.000  5.000  5.000  5.000  5.000
  TPOT ms                    10.00  10.00  10.00  10.00  10.00  10.00
  inter-token ms             10.00  10.00  10.00  10.00  10.00  10.00
  inter-event gap ms         10.00  10.00  10.00  10.00  10.00  10.00
  lateness us                20.00  20.00  20.00  20.00  20.00  20.00
  in flight                  2.473      2      3      3      3      3
  output tokens              3.000      3      3      3      3      3
  tokens: output 294   output counted by the server (usage)
  finish reasons: stop 98

verdict: suspect: use these figures with care
  suspect  perf: survivors 0.98, limit 0.99
      Only 98 of 100 requests succeeded in time: the latencies are those of the survivors.
",
    );
}

#[test]
fn a_sweep_has_a_summary_in_front() {
    let mut run = Run::new(vec![closed("c1", 1), closed("c2", 2)]);
    for phase in 0..2u16 {
        let from = f64::from(phase) * 2_000.0;
        run.phase(phase, from, from + 1_000.0);
        for i in 0..10u64 {
            let sent = from + i as f64 * 100.0;
            run.add(&ok(i, sent, sent + 100.0).of_phase(phase));
        }
    }
    let text = render(&run.result());
    let summary: Vec<_> = text.lines().skip(4).take(4).collect();
    assert_eq!(
        summary,
        [
            "  phase  load           ok  ok/s    p50    p99",
            "  c1     concurrency 1  10    10  100.0  100.0",
            "  c2     concurrency 2  10    10  100.0  100.0",
            "  (latency and others in ms, from schedule where there is one)",
        ]
    );
}

#[test]
fn no_line_is_wider_than_the_terminal_and_no_control_character_comes_through() {
    let mut run = Run::new(vec![closed("p", 1)]);
    run.phase(0, 0.0, 100.0);
    let mut request = failed(0, 0.0, 10.0);
    request.message = "\u{1b}[31mred\u{1b}[0m and then some more text that goes on and on and on until \
                       the line is certainly full, and then further still";
    let text = render(&run.add(&request).result());
    assert!(text.contains("http_status 503: [31mred"), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
        assert!(!line.chars().any(char::is_control), "{line}");
    }
}

#[test]
fn what_was_not_measured_is_left_out() {
    let mut run = Run::new(vec![closed("p", 1), closed("never", 1)]);
    run.start(0, 0.0, 0).add(&ok(0, 0.0, 50.0));
    let text = render(&run.fold().result(&takt_report::Limits::default()));
    for word in ["TTFT", "TPOT", "lateness", "tokens", "connect", "TLS", "null", "NaN", "errors"] {
        assert!(!text.contains(word), "{word} in\n{text}");
    }
    assert!(text.contains("INCOMPLETE: killed") && text.contains("never   performance"), "{text}");
    assert!(text.contains("not begun") && text.contains("not finished"), "{text}");
}
