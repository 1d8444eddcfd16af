//! From the state of a fold to the document that `result.json` holds.

use std::collections::BTreeMap;

use serde_json::Value;
use takt_record::{
    Distribution, EndpointCounts, ErrorKind, FinishReason, Goodput, Instrument, Load, PhasePlan,
    PhaseResult, RESULT_SCHEMA, ResultDoc, RunState, TokenSource, Tokens,
};
use takt_time::{Nanos, Span};

use crate::fold::RunFold;
use crate::gone::GONE;
use crate::health::{HealthSpan, worse};
use crate::phase::PhaseFold;
use crate::rate::per_second;
use crate::slo::Slo;
use crate::timeline::Timeline;
use crate::tracked::Tracked;
use crate::verdict::{self, Limits};
use crate::windows::Windows;

impl RunFold {
    /// The result of what was folded so far, judged by `limits`. A session whose end was not seen is
    /// `killed`; what was measured until then is in it.
    #[must_use]
    pub fn result(&self, limits: &Limits) -> ResultDoc {
        let state = self.state();
        let phases: Vec<_> = (self.plan.phases.iter().zip(&self.phases))
            .map(|(plan, phase)| {
                let (now, slo, windows) = (self.last_at, self.slo.as_ref(), &self.windows);
                let mut result = Source { plan, phase, now, slo, windows }.result();
                result.endpoints = endpoints(&self.plan.config, phase);
                if self.partial {
                    leave_out_what_needs_all(&mut result);
                }
                result
            })
            .collect();
        ResultDoc {
            schema: RESULT_SCHEMA.to_owned(),
            takt: self.plan.takt.clone(),
            session_id: self.plan.session_id.clone(),
            started_at: self.plan.started_at.clone(),
            start_time_ns: self.first_at.map(Nanos::as_nanos),
            end_time_ns: self.first_at.map(|_| self.last_at.as_nanos()),
            state,
            complete: state == RunState::Complete,
            failed_by: self.session.failed,
            verdict: verdict::judge(self, state, &phases, limits),
            host: self.plan.host.clone(),
            config: self.plan.config.clone(),
            counted: self.counted,
            journal: None,
            phases,
            opprof: None,
        }
    }

    /// How the session ended, if nothing more comes.
    pub(crate) fn state(&self) -> RunState {
        let unknown = self.known_end.unwrap_or(RunState::Killed);
        match self.session {
            flags if !flags.ended => unknown,
            flags if flags.failed.is_some() => RunState::Failed,
            flags if flags.interrupted => RunState::Interrupted,
            // Whether all of it ended so is not known.
            _ if self.left_out.is_some() => unknown,
            _ => RunState::Complete,
        }
    }

    /// When the last record was.
    #[must_use]
    pub fn last_at(&self) -> Nanos {
        self.last_at
    }
}

/// What the result of one phase is made of.
struct Source<'a> {
    plan: &'a PhasePlan,
    phase: &'a PhaseFold,
    now: Nanos,
    slo: Option<&'a Slo>,
    windows: &'a Windows,
}

impl Source<'_> {
    fn result(&self) -> PhaseResult {
        let phase = self.phase;
        let mut result = self.counts();
        let Some(tracked) = &phase.tracked else { return result };
        let duration = self.duration();
        let windows = self.profiler_windows();
        let issue_window = phase.sent.span();
        result.duration_s = duration.map(Span::as_secs_f64);
        result.issue_window_s = issue_window.map(Span::as_secs_f64);
        // While it is profiled a server is slower, and so is a closed loop.
        let undisturbed = windows == 0;
        let steady = phase.started.and_then(|start| phase.steady.result(start));
        let served = duration.is_none_or(|length| phase.gone.share(length.as_secs_f64()) <= GONE);
        result.steady = steady.filter(|_| undisturbed && served);
        result.requests_per_s = issue_window
            .and_then(|window| per_second(phase.sent.count, phase.sent.count, window))
            .filter(|_| undisturbed || phase.scheduled.span().is_some());
        let clear = self.clear_time();
        let per_duration = |amount| clear.and_then(|time| per_second(amount, phase.clear, time));
        result.successful_per_s = per_duration(phase.clear);
        result.output_tokens_per_s =
            Some(phase.clear_tokens).filter(|&sum| sum > 0).and_then(per_duration);
        result.goodput = self.slo.map(|slo| {
            let ended = phase.succeeded + phase.failed + phase.unanswered - phase.profiled;
            Goodput {
                slo: slo.given().clone(),
                requests_per_s: per_duration(tracked.good).filter(|_| undisturbed),
                share: (ended > 0).then(|| tracked.good as f64 / ended as f64),
                gates: Vec::new(),
            }
        });
        distributions(&mut result, tracked);
        if let Some((slo, mut goodput)) = self.slo.zip(result.goodput.take()) {
            goodput.gates = slo.gates(&result);
            result.goodput = Some(goodput);
        }
        result.in_flight =
            tracked.in_flight.distribution(1.0).map(|d| Distribution { count: phase.changes, ..d });
        result.tokens = tokens(tracked);
        result.turns = self.plan.conversations.is_some().then(|| phase.talks.turns());
        result.series = tracked.timeline.as_ref().and_then(Timeline::over_time);
        result
    }

    /// What every phase has, warm-up included.
    fn counts(&self) -> PhaseResult {
        let (plan, phase) = (self.plan, self.phase);
        PhaseResult {
            name: plan.name.clone(),
            kind: plan.kind,
            state: phase.state,
            ended_by: phase.ended_by,
            start_time_ns: phase.started.map(Nanos::as_nanos),
            end_time_ns: phase.ended.map(Nanos::as_nanos),
            load: Load {
                pattern: plan.pattern.clone(),
                rate: plan.rate,
                ramp: plan.ramp,
                target_concurrency: plan.target_concurrency,
                conversations_per_s: plan.conversations.as_ref().and_then(|c| c.arrivals_per_s),
                requests: plan.requests,
                stream: plan.stream,
            },
            issued: phase.issued,
            completed: phase.succeeded + phase.failed,
            succeeded: phase.succeeded,
            failed: phase.failed,
            unanswered: phase.unanswered,
            skipped: phase.talks.skipped(),
            late: phase.late,
            inherited: phase.inherited,
            retried: phase.retried,
            profiled: phase.profiled,
            duration_s: None,
            issue_window_s: None,
            steady: None,
            requests_per_s: None,
            successful_per_s: None,
            output_tokens_per_s: None,
            goodput: None,
            endpoints: None,
            errors: occurring(ErrorKind::ALL, &phase.errors),
            error_samples: phase.samples.sorted(),
            finish_reasons: occurring(FinishReason::ALL, &phase.finish),
            latency_ms: Default::default(),
            ttft_ms: Default::default(),
            last_token_ms: Default::default(),
            first_byte_ms: None,
            first_event_ms: None,
            first_content_ms: None,
            tpot_ms: None,
            itl_ms: None,
            event_gap_ms: None,
            lateness_us: None,
            queue_ms: None,
            connect_ms: None,
            tls_ms: None,
            write_ms: None,
            socket_wait_ms: None,
            in_flight: None,
            tokens: None,
            turns: None,
            conversations: plan.conversations.is_some().then(|| phase.talks.result()),
            series: None,
            score: None,
            instrument: instrument(phase),
        }
    }

    /// The tracking window; up to the last record while it is open.
    fn duration(&self) -> Option<Span> {
        let (from, until) = self.tracking()?;
        until.checked_since(from)
    }

    /// What of the tracking window is outside of profiler windows.
    fn clear_time(&self) -> Option<Span> {
        let (from, until) = self.tracking()?;
        let clear = self.duration()?.as_nanos() - self.windows.covered(from, until).as_nanos();
        Some(Span::from_nanos(clear))
    }

    /// Profiler windows that the phase met.
    fn profiler_windows(&self) -> u64 {
        self.tracking().map_or(0, |(from, until)| self.windows.count(from, until))
    }

    fn tracking(&self) -> Option<(Nanos, Nanos)> {
        let phase = self.phase;
        let until = phase.tracking_stopped.or(phase.ended).unwrap_or(self.now);
        Some((phase.tracking_started?, until))
    }
}

/// How the requests were spread over the endpoints of a configuration that has several.
fn endpoints(config: &Value, phase: &PhaseFold) -> Option<Vec<EndpointCounts>> {
    let urls = config.get("endpoint")?.get("url")?.as_array()?;
    let counted = |(place, url): (usize, &Value)| EndpointCounts {
        url: url.as_str().unwrap_or_default().to_owned(),
        ..phase.endpoints.get(place).cloned().unwrap_or_default()
    };
    Some(urls.iter().enumerate().map(counted).collect())
}

/// Of a part of the requests there are counts and distributions, and nothing a second.
fn leave_out_what_needs_all(result: &mut PhaseResult) {
    result.issue_window_s = None;
    result.steady = None;
    result.requests_per_s = None;
    result.successful_per_s = None;
    result.output_tokens_per_s = None;
    if let Some(goodput) = &mut result.goodput {
        goodput.requests_per_s = None;
    }
    result.in_flight = None;
    if let Some(tokens) = &mut result.tokens {
        (tokens.input_total, tokens.output_total, tokens.cached_total) = (None, None, None);
    }
    result.series = None;
}

fn distributions(result: &mut PhaseResult, tracked: &Tracked) {
    result.latency_ms = tracked.latency.result(MS);
    result.ttft_ms = tracked.ttft.result(MS);
    result.last_token_ms = tracked.last_token.result(MS);
    for (place, series) in [
        (&mut result.first_byte_ms, &tracked.first_byte),
        (&mut result.first_event_ms, &tracked.first_event),
        (&mut result.first_content_ms, &tracked.first_content),
        (&mut result.tpot_ms, &tracked.tpot),
        (&mut result.itl_ms, &tracked.itl),
        (&mut result.event_gap_ms, &tracked.event_gap),
        (&mut result.queue_ms, &tracked.queue),
        (&mut result.connect_ms, &tracked.connect),
        (&mut result.tls_ms, &tracked.tls),
        (&mut result.write_ms, &tracked.write),
        (&mut result.socket_wait_ms, &tracked.socket_wait),
    ] {
        *place = series.distribution(MS);
    }
    result.lateness_us = tracked.lateness.distribution(US);
}

fn tokens(tracked: &Tracked) -> Option<Tokens> {
    let total = |series: &crate::series::Series| {
        (series.count() > 0).then(|| u64::try_from(series.sum()).unwrap_or(u64::MAX))
    };
    let sources = occurring(TokenSource::ALL, &tracked.sources);
    let tokens = Tokens {
        input: tracked.input.distribution(1.0),
        output: tracked.output.distribution(1.0),
        cached: tracked.cached.distribution(1.0),
        input_total: total(&tracked.input),
        output_total: total(&tracked.output),
        cached_total: total(&tracked.cached),
        source: sources.iter().max_by_key(|&(_, count)| count).map(|(&source, _)| source),
        sources,
        events: tracked.events,
        coalesced: tracked.coalesced,
        coalesced_share: (tracked.events > 0)
            .then(|| tracked.coalesced as f64 / tracked.events as f64),
        disagreeing: tracked.disagreeing,
        unseen: tracked.unseen,
        unasked: tracked.unasked,
        tokenizer: tracked.counted.result(),
    };
    let any = tokens.input.or(tokens.output).or(tokens.cached).is_some() || tokens.events > 0;
    any.then_some(tokens)
}

fn instrument(phase: &PhaseFold) -> Option<Instrument> {
    let mut seen = phase.health.iter().filter_map(|span: &HealthSpan| span.result(0));
    let first = seen.next()?;
    let all = seen.fold(first, |all, next| worse(&all, &next));
    Some(Instrument { anomalies: phase.all_anomalies(), ..all })
}

/// The members of a closed list that occur, with their counts.
fn occurring<K: Copy + Ord>(all: &[K], counts: &[u64]) -> BTreeMap<K, u64> {
    let pairs = all.iter().zip(counts).filter(|&(_, &count)| count > 0);
    pairs.map(|(&key, &count)| (key, count)).collect()
}

const MS: f64 = 1e6;
const US: f64 = 1e3;
