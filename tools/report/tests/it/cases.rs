//! The rows of the case list that are about numbers, by name.

use takt_record::{ErrorKind, PhasePlan, PhaseState, RampRates, VerdictStatus};

use crate::run::{Request, Run, closed, failed, near, ok, open};

/// T1: two chunks for nine tokens, four of them in the first.
#[test]
fn t1_intervals_follow_token_counts_and_tpot_leaves_out_the_first_event() {
    let request = ok(0, 0.0, 150.0).streamed(&[(50.0, Some(4)), (150.0, Some(5))], 9);
    let phase = Run::new(vec![closed("p", 1)]).phase(0, 0.0, 150.0).add(&request).only_phase();
    // (150 - 50) / (9 - 4) = 20 ms; five intervals of 20 ms; one gap of 100 ms.
    near(phase.tpot_ms.unwrap().mean, 20.0);
    let itl = phase.itl_ms.unwrap();
    assert_eq!(itl.count, 5);
    near(itl.max, 20.0);
    let gap = phase.event_gap_ms.unwrap();
    assert_eq!(gap.count, 1);
    near(gap.mean, 100.0);
}

/// T1 without counts in the events: the total is the server's, its spread over events is not known.
#[test]
fn t1_without_counts_in_events_the_total_still_rules() {
    let events = [(50.0, None), (90.0, None), (170.0, None)];
    let request = ok(0, 0.0, 170.0).streamed(&events, 9);
    let phase = Run::new(vec![closed("p", 1)]).phase(0, 0.0, 170.0).add(&request).only_phase();
    // One token in the first event by estimate: 120 / 8 = 15; gaps of 40 and 80 with four tokens each.
    near(phase.tpot_ms.unwrap().mean, 15.0);
    let itl = phase.itl_ms.unwrap();
    near(itl.min, 10.0);
    near(itl.max, 20.0);
    assert_eq!(phase.event_gap_ms.unwrap().count, 2);
}

/// T1 with a count in the first event alone: what is left of the total is shared out.
#[test]
fn t1_tokens_of_a_first_event_that_tells_them_are_left_out_of_intervals() {
    let events = [(50.0, Some(4)), (90.0, None), (170.0, None)];
    let request = ok(0, 0.0, 170.0).streamed(&events, 9);
    let phase = Run::new(vec![closed("p", 1)]).phase(0, 0.0, 170.0).add(&request).only_phase();
    // Five tokens behind the first event: 120 / 5 = 24; gaps of 40 and 80 with two and a half each.
    near(phase.tpot_ms.unwrap().mean, 24.0);
    let itl = phase.itl_ms.unwrap();
    near(itl.min, 16.0);
    near(itl.max, 32.0);
}

/// T2: one output token.
#[test]
fn t2_one_token_has_no_tpot() {
    let request = ok(0, 0.0, 50.0).streamed(&[(50.0, None)], 1);
    let phase = Run::new(vec![closed("p", 1)]).phase(0, 0.0, 50.0).add(&request).only_phase();
    assert_eq!((phase.tpot_ms, phase.itl_ms, phase.event_gap_ms), (None, None, None));
    assert_eq!(phase.ttft_ms.from_send.unwrap().count, 1);
}

/// T6: when all tokens came in one read, nothing was seen of the time between them.
#[test]
fn t6_tokens_of_one_read_have_no_tpot() {
    let request = ok(0, 0.0, 50.0).streamed(&[(50.0, None), (50.0, None), (50.0, None)], 3);
    let phase = Run::new(vec![closed("p", 1)]).phase(0, 0.0, 50.0).add(&request).only_phase();
    assert_eq!((phase.tpot_ms, phase.itl_ms, phase.event_gap_ms), (None, None, None));
    assert_eq!(phase.ttft_ms.from_send.unwrap().count, 1);
}

/// T3: a request that fails leaves no time of 0 and moves no median.
#[test]
fn t3_failures_enter_no_series_of_the_service() {
    let good = || ok(0, 0.0, 100.0).streamed(&[(40.0, None), (100.0, None)], 2);
    let alone = Run::new(vec![closed("p", 1)]).phase(0, 0.0, 500.0).add(&good()).only_phase();
    let mut run = Run::new(vec![closed("p", 1)]);
    run.phase(0, 0.0, 500.0).add(&good());
    run.add(&failed(1, 100.0, 101.0));
    // Fails after its second token.
    let mut late = failed(2, 110.0, 400.0).streamed(&[(120.0, None), (121.0, None)], 2);
    late.done.tokens.output = None;
    let both = run.add(&late).only_phase();
    assert_eq!((both.failed, both.errors[&ErrorKind::HttpStatus]), (2, 2));
    assert_eq!(both.latency_ms, alone.latency_ms);
    assert_eq!(both.ttft_ms, alone.ttft_ms);
    assert_eq!((both.tpot_ms, both.itl_ms), (alone.tpot_ms, alone.itl_ms));
    assert_eq!(both.event_gap_ms, alone.event_gap_ms);
    assert_eq!(both.tokens, alone.tokens);
    assert_eq!(both.error_samples[0].message, "busy");
    assert_eq!(both.error_samples[0].count, 2);
}

/// T4: two counts of the same tokens, ten per cent apart.
#[test]
fn t4_counts_that_disagree_are_a_reason_and_name_their_source() {
    let mut run = Run::new(vec![closed("p", 1)]);
    run.phase(0, 0.0, 1_000.0);
    // 1 + 54 + 55 = 110 by the events, 100 by the total.
    let events = [(10.0, Some(1)), (20.0, Some(54)), (30.0, Some(55))];
    let result = run.add(&ok(0, 0.0, 40.0).streamed(&events, 100)).result();
    let tokens = result.phases[0].tokens.as_ref().unwrap();
    assert_eq!((tokens.disagreeing, tokens.source.unwrap().as_str()), (1, "continuous_usage"));
    assert!(result.verdict.reasons.iter().any(|reason| reason.name == "token_counts"));
}

/// What was counted and never seen, and what came in another form than was asked for.
#[test]
fn tokens_without_text_and_streams_that_nobody_asked_for_are_reasons() {
    let text = [(10.0, None), (20.0, None)];
    let seen = || ok(0, 0.0, 40.0).streamed(&text, 2);
    let unseen = |output| ok(0, 0.0, 40.0).streamed(&[], output);
    let (asked, whole) = (closed("p", 1), PhasePlan { stream: false, ..closed("p", 1) });
    for (plan, request, counted, name) in [
        (&asked, seen(), (0, 0), None),
        (&asked, unseen(7), (1, 0), Some("unseen_tokens")),
        // One token may be the end alone.
        (&asked, unseen(1), (0, 0), None),
        (&whole, unseen(7), (0, 0), None),
        (&whole, seen(), (0, 1), Some("unasked_stream")),
    ] {
        let mut run = Run::new(vec![plan.clone()]);
        let result = run.phase(0, 0.0, 1_000.0).add(&request).result();
        let tokens = result.phases[0].tokens.as_ref().unwrap();
        assert_eq!((tokens.unseen, tokens.unasked), counted, "{name:?}");
        let said = |name: &str| result.verdict.reasons.iter().any(|reason| reason.name == name);
        for reason in ["unseen_tokens", "unasked_stream"] {
            assert_eq!(said(reason), name == Some(reason), "{:?}", result.verdict);
        }
    }
}

/// T5: usage comes 20 ms after the last token.
#[test]
fn t5_the_last_token_and_the_end_are_both_known() {
    let request = ok(0, 0.0, 120.0).streamed(&[(40.0, None), (100.0, None)], 2);
    let phase = Run::new(vec![closed("p", 1)]).phase(0, 0.0, 120.0).add(&request).only_phase();
    near(phase.latency_ms.from_send.unwrap().mean, 120.0);
    near(phase.last_token_ms.from_send.unwrap().mean, 100.0);
    near(phase.tpot_ms.unwrap().mean, 60.0);
}

/// T6: two events in one read.
#[test]
fn t6_coalesced_events_are_counted_and_give_no_gap() {
    let events = [(10.0, None), (30.0, None), (30.0, None), (60.0, None)];
    let request = ok(0, 0.0, 60.0).streamed(&events, 4);
    let phase = Run::new(vec![closed("p", 1)]).phase(0, 0.0, 60.0).add(&request).only_phase();
    let tokens = phase.tokens.unwrap();
    assert_eq!((tokens.events, tokens.coalesced, tokens.coalesced_share), (4, 1, Some(0.25)));
    // Gaps of 20 and 30 ms between reads; the 20 ms brought two tokens: intervals 10, 10, 30.
    let (gap, itl) = (phase.event_gap_ms.unwrap(), phase.itl_ms.unwrap());
    assert_eq!(gap.count, 2);
    near(gap.min, 20.0);
    assert_eq!(itl.count, 3);
    near(itl.min, 10.0);
    near(itl.mean, 50.0 / 3.0);
}

/// C7: a server without TCP_NODELAY.
#[test]
fn c7_plateaus_of_forty_ms_are_named_as_what_they_are() {
    let named = |gap: f64, together: usize| {
        let mut run = Run::new(vec![closed("p", 1)]);
        run.phase(0, 0.0, 10_000.0);
        for i in 0..20u64 {
            let sent = i as f64 * 500.0;
            let at = |n: usize| (sent + 5.0 + (n / together) as f64 * gap, None);
            let events: Vec<_> = (0..12).map(at).collect();
            run.add(&ok(i, sent, events[11].0).streamed(&events, 12));
        }
        let result = run.result();
        result.verdict.reasons.iter().any(|reason| reason.name == "delayed_ack")
    };
    assert!(named(40.5, 4) && named(44.0, 2));
    // A model of 40 ms a token, a server that sends four at a time, a slow gateway.
    assert!(!named(40.5, 1) && !named(20.0, 4) && !named(80.0, 4));
}

/// E3: every request fails.
#[test]
fn e3_where_everything_fails_there_is_no_rate_of_success() {
    let mut run = Run::new(vec![open("p", 10.0)]);
    run.phase(0, 0.0, 2_000.0);
    for i in 0..20u64 {
        let sent = i as f64 * 100.0;
        run.add(&failed(i, sent, sent + 5.0).scheduled(sent));
    }
    let phase = run.only_phase();
    assert_eq!((phase.succeeded, phase.failed, phase.completed), (0, 20, 20));
    assert_eq!(phase.errors.values().sum::<u64>(), 20);
    assert_eq!((phase.successful_per_s, phase.output_tokens_per_s), (None, None));
    assert_eq!((phase.latency_ms.from_send, phase.latency_ms.from_schedule), (None, None));
    // Sends happened, so their rate and lateness are facts: 20 in 1.9 s.
    near(phase.requests_per_s.unwrap(), 20.0 / 1.9);
    assert_eq!(phase.lateness_us.unwrap().count, 20);
}

/// E3: the server goes after two seconds of ten: what found no connection was not sent.
#[test]
fn e3_the_rate_of_sends_is_that_of_what_was_sent() {
    let mut run = Run::new(vec![open("p", 10.0)]);
    run.phase(0, 0.0, 10_000.0);
    for i in 0..100u64 {
        let due = i as f64 * 100.0;
        let mut request = if i < 20 { ok(i, due, due + 5.0) } else { failed(i, due, due) };
        if i >= 20 {
            (request.done.times.acquired, request.done.times.sent) = (None, None);
            request.done.times.written = None;
        }
        run.add(&request.scheduled(due));
    }
    let phase = run.only_phase();
    assert_eq!((phase.issued, phase.failed), (100, 80));
    near(phase.requests_per_s.unwrap(), 20.0 / 1.9);
}

/// E3: the server of a closed loop goes; the client is refused, and tries again without hurry.
#[test]
fn e3_a_server_that_goes_before_the_end_is_noticed_though_failures_are_few() {
    // Of each of the last 40: when it was issued and when it failed.
    let judged = |tail: fn(u64) -> (f64, f64)| {
        let mut run = Run::new(vec![closed("p", 4)]);
        run.phase(0, 0.0, 3_000.0);
        for i in 0..20_000u64 {
            run.add(&ok(i, i as f64 * 0.05, i as f64 * 0.05 + 0.2));
        }
        for i in 0..40u64 {
            let (issued, ended) = tail(i);
            run.add(&failed(20_000 + i, issued, ended));
        }
        let result = run.result();
        let reason = result.verdict.reasons.iter().find(|reason| reason.name == "endpoint_gone");
        (reason.map(|reason| (reason.status, reason.value)), result.phases[0].steady.is_some())
    };
    let (reason, steady) = judged(|i| (1_001.0 + i as f64 * 50.0, 1_001.0 + i as f64 * 50.0));
    let (status, share) = reason.expect("it is gone for two seconds of three");
    assert_eq!((status, steady), (VerdictStatus::Invalid, false));
    near(share, (1_001.0 + 39.0 * 50.0 - 1_000.15) / 3_000.0);
    // Those that were under way, and time out in the end, do not say that it is gone.
    assert_eq!(judged(|i| (999.0, 2_000.0 + i as f64)).0, None);
    assert_eq!(judged(|i| (1_001.0, 1_001.0 + i as f64)).0, None);
    assert!(judged(|i| (1_001.0, 1_001.0 + i as f64)).1, "only the last moment");
}

/// R2: ten a second, one in flight at a time, half a second of service.
#[test]
fn r2_latency_from_schedule_grows_while_from_send_stays() {
    let mut run = Run::new(vec![open("p", 10.0)]);
    run.phase(0, 0.0, 10_000.0);
    for i in 0..20u64 {
        let (scheduled, sent) = (i as f64 * 100.0, i as f64 * 500.0);
        run.add(&ok(i, sent, sent + 500.0).scheduled(scheduled));
    }
    let result = run.result();
    let phase = &result.phases[0];
    let (send, schedule) =
        (phase.latency_ms.from_send.unwrap(), phase.latency_ms.from_schedule.unwrap());
    near(send.min, 500.0);
    near(send.max, 500.0);
    // Request i ends 500 (i + 1) - 100 i after its time: 500 for the first, 8,100 for the last.
    near(schedule.min, 500.0);
    near(schedule.max, 8_100.0);
    near(schedule.mean, 4_300.0);
    let text = takt_report::render(&result);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Mean lateness is 400 * 9.5 = 3,800 ms.
    assert!(text.contains("by 3800 ms in the mean and 7600 ms at most"), "{text}");
}

/// R7: runs shorter than a second.
#[test]
fn r7_a_short_run_has_no_absurd_rate() {
    let mut run = Run::new(vec![closed("p", 2)]);
    run.phase(0, 0.0, 3.0).add(&ok(0, 0.0, 2.0)).add(&ok(1, 0.01, 3.0));
    let phase = run.only_phase();
    assert_eq!((phase.requests_per_s, phase.successful_per_s), (None, None));
    near(phase.issue_window_s.unwrap(), 0.000_01);
    near(phase.duration_s.unwrap(), 0.003);
    assert_eq!(phase.state, Some(PhaseState::Complete));
}

/// R7: of one request there is a latency and no rate.
#[test]
fn r7_one_request_has_no_rate() {
    let mut run = Run::new(vec![open("p", 50.0)]);
    let phase = run.phase(0, 0.0, 20.0).add(&ok(0, 1.0, 20.0).scheduled(1.0)).only_phase();
    assert_eq!((phase.requests_per_s, phase.successful_per_s), (None, None));
    near(phase.latency_ms.from_schedule.unwrap().p.p50, 19.0);
}

/// Of a ramp the rate is a mean, and both are said.
#[test]
fn a_ramp_says_from_where_to_where_and_that_its_rate_is_a_mean() {
    let (ramp, pattern) = (Some(RampRates { from: 0.0, to: 20.0 }), "ramp".to_owned());
    let mut run = Run::new(vec![PhasePlan { pattern, ramp, ..open("p", 10.0) }]);
    run.phase(0, 0.0, 10_000.0);
    for i in 0..100u64 {
        // Arrival n of a ramp from 0 comes at 10 s * sqrt(n/100).
        let at = 10_000.0 * ((i + 1) as f64 / 100.0).sqrt();
        run.add(&ok(i, at, at + 5.0).scheduled(at));
    }
    let result = run.result();
    let phase = &result.phases[0];
    assert_eq!((phase.load.rate, phase.load.ramp), (Some(10.0), ramp));
    // From 1 s to 10 s.
    near(phase.requests_per_s.unwrap(), 100.0 / 9.0);
    let text = takt_report::render(&result);
    assert!(text.contains("ramp 0 to 20/s"), "{text}");
    assert!(text.contains("11.11 requests/s sent in the mean"), "{text}");
}

/// Several endpoints: what became of the requests to each.
#[test]
fn requests_are_counted_under_their_endpoints() {
    let mut run = Run::new(vec![closed("p", 1)]);
    run.plan.config["endpoint"]["url"] = serde_json::json!(["http://a", "http://b", "http://c"]);
    run.phase(0, 0.0, 100.0);
    let to = |mut request: Request, endpoint| {
        request.done.endpoint = endpoint;
        request
    };
    run.add(&to(ok(0, 0.0, 10.0), 0)).add(&to(ok(1, 0.0, 10.0), 1));
    run.add(&to(failed(2, 0.0, 10.0), 1)).add(&to(ok(3, 0.0, 200.0), 1));
    let endpoints = run.only_phase().endpoints.expect("there are several");
    let counts: Vec<_> =
        endpoints.iter().map(|e| (&*e.url, e.ended, e.succeeded, e.failed)).collect();
    // The last one ended late: it counts as ended alone.
    assert_eq!(counts, [("http://a", 1, 1, 0), ("http://b", 3, 1, 1), ("http://c", 0, 0, 0)]);
    let text = takt_report::render(&run.result());
    assert!(text.contains("http://b: 3 ended, 1 succeeded, 1 failed"), "{text}");
}

/// The kernel's stamps: how long first tokens lay in the socket, and a TTFT that leaves that out.
#[test]
fn socket_waits_are_a_distribution_and_leave_the_first_token_where_that_is_asked_for() {
    for (asked, ttft) in [("read", 50.0), ("arrival", 40.0)] {
        let mut run = Run::new(vec![closed("p", 1)]);
        run.plan.config["engine"]["ttft_until"] = serde_json::json!(asked);
        let mut request = ok(0, 0.0, 150.0).streamed(&[(50.0, None), (150.0, None)], 2);
        request.done.times.socket_wait = Some(takt_time::Span::from_millis(10));
        run.phase(0, 0.0, 150.0).add(&request);
        let result = run.result();
        let phase = &result.phases[0];
        near(phase.socket_wait_ms.unwrap().mean, 10.0);
        near(phase.ttft_ms.from_send.unwrap().mean, ttft);
        near(phase.tpot_ms.unwrap().mean, 100.0);
        // A fifth, and more, of the time to the first token: the client is late to read.
        let reason = result.verdict.reasons.iter().find(|r| r.name == "socket_wait").unwrap();
        near(reason.value, 10.0 / ttft);
        assert_eq!(reason.status, VerdictStatus::Suspect);
    }
}

/// C5: what was tried before the address that is used.
#[test]
fn c5_notes_about_addresses_are_in_the_report() {
    let mut run = Run::new(vec![closed("p", 1)]);
    let note = "[::1]:8000: Connection refused; using 127.0.0.1:8000";
    run.plan.host =
        serde_json::json!({"endpoints": [{"url": "http://localhost:8000", "notes": [note]}]});
    run.phase(0, 0.0, 10.0).add(&ok(0, 0.0, 10.0));
    let text = takt_report::render(&run.result());
    assert!(text.contains(&format!("note: {note}")), "{text}");
}
