//! Random networks, random schedules: what holds whatever happens.

use std::io::ErrorKind as Io;

use proptest::prelude::*;
use takt_record::{Blame, ErrorKind, PhaseId, Stage};
use takt_time::Nanos;

use super::*;
use crate::api::{Cancel, SampleIssuer};
use crate::client::ClientConfig;
use crate::client::testing::Dial;

/// What a random server does on one request.
#[derive(Clone, Debug)]
enum Whim {
    Answer(u64),
    AnswerAndEnd(u64),
    Part(u64),
    Reset(u64),
    End(u64),
    Never,
    Trickle,
}

#[derive(Clone, Debug)]
enum Step {
    Issue(u16),
    Rehearse,
    Cancel(u16),
    CancelAll,
    Pass(u64),
    Kill(usize),
}

fn whim() -> impl Strategy<Value = Whim> {
    let us = 1..3_000_u64;
    prop_oneof![
        6 => us.clone().prop_map(Whim::Answer),
        2 => us.clone().prop_map(Whim::AnswerAndEnd),
        1 => us.clone().prop_map(Whim::Part),
        1 => us.clone().prop_map(Whim::Reset),
        1 => us.prop_map(Whim::End),
        1 => Just(Whim::Never),
        1 => Just(Whim::Trickle),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..2_u16).prop_map(Step::Issue),
        4 => Just(Step::Rehearse),
        1 => (0..2_u16).prop_map(Step::Cancel),
        1 => Just(Step::CancelAll),
        6 => (0..2_000_u64).prop_map(Step::Pass),
        1 => (0..8_usize).prop_map(Step::Kill),
    ]
}

fn dial() -> impl Strategy<Value = Dial> {
    prop_oneof![
        6 => (1..500_u64).prop_map(|after| Dial::Up(us(after))),
        1 => (1..500_u64).prop_map(|after| Dial::Fail(us(after), Io::ConnectionRefused)),
        1 => Just(Dial::NoAttempt(Io::Other)),
        1 => Just(Dial::Silent),
    ]
}

fn on_a_whim(whim: &Whim) -> Vec<Act> {
    let after = |n: u64, bytes: Vec<u8>| Act::Send(us(n), bytes);
    match *whim {
        Whim::Answer(n) => vec![after(n, answer())],
        Whim::AnswerAndEnd(n) => vec![after(n, answer()), Act::End(us(n + 30))],
        Whim::Part(n) => vec![after(n, answer()[..25].to_vec()), Act::End(us(n + 30))],
        Whim::Reset(n) => vec![Act::Reset(us(n))],
        Whim::End(n) => vec![Act::End(us(n))],
        Whim::Never => Vec::new(),
        Whim::Trickle => {
            let one = |(n, byte): (usize, &u8)| after(1 + 7 * n as u64, vec![*byte]);
            answer().iter().enumerate().map(one).collect()
        }
    }
}

/// A network without silence: every connect and every request comes to an end by itself.
fn talkative() -> impl Strategy<Value = (Vec<Whim>, Vec<Dial>)> {
    let whim = whim().prop_filter("silent", |whim| !matches!(whim, Whim::Never));
    let dial = dial().prop_filter("silent", |dial| !matches!(dial, Dial::Silent));
    (prop::collection::vec(whim, 1..20), prop::collection::vec(dial, 1..20))
}

/// A rig on a network that follows the lists over and over.
fn rig(whims: Vec<Whim>, dials: Vec<Dial>, change: impl FnOnce(&mut ClientConfig)) -> Rig {
    let mut nth = 0;
    Rig::new(change)
        .serve(move |_| {
            nth += 1;
            on_a_whim(&whims[nth % whims.len()])
        })
        .dial(move |nth, _| dials[nth % dials.len()].clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever the network does and whenever requests are given up, each is answered exactly once, the cap
    /// is held, and no connection is left behind.
    #[test]
    fn each_request_is_answered_exactly_once(
        steps in prop::collection::vec(step(), 1..80),
        whims in prop::collection::vec(whim(), 1..20),
        dials in prop::collection::vec(dial(), 1..20),
        cap in prop_oneof![Just(None), (1..5_usize).prop_map(Some)],
        room in prop_oneof![Just(usize::MAX), 1..200_usize],
        (retry, timeouts, warm) in (any::<bool>(), any::<bool>(), 0..4_usize),
    ) {
        let mut rig = rig(whims, dials, |config| {
            config.max_connections = cap;
            config.retry_stale = retry;
            config.warm_connections = warm;
            if timeouts {
                config.connect_timeout = Some(ms(1));
                config.first_byte_timeout = Some(ms(2));
                config.request_timeout = Some(ms(4));
            }
        });
        let cap = cap.unwrap_or(usize::MAX);
        rig.net().room = room;
        for step in steps {
            match step {
                Step::Issue(phase) => rig.issue_in(PhaseId(phase)),
                Step::Rehearse => rig.rehearse(),
                Step::Cancel(phase) => rig.cancel(Cancel::Phase(PhaseId(phase))),
                Step::CancelAll => rig.cancel(Cancel::All),
                Step::Pass(n) => { rig.run(us(n)); }
                Step::Kill(n) => rig.net().kill(n),
            }
            prop_assert!(rig.net().open() <= cap);
        }
        rig.run(ms(20));
        rig.client.shut_down();
        rig.run(ms(1));
        prop_assert_eq!(rig.net().open(), 0);
        let mut ordinals: Vec<u64> =
            rig.answers().iter().map(|answer| answer.completed.key.ordinal).collect();
        ordinals.sort_unstable();
        prop_assert_eq!(ordinals, (0..rig.issued()).collect::<Vec<u64>>());
        for answer in rig.answers() {
            let Completed { outcome, times, attempts, .. } = answer.completed;
            let failed = matches!(outcome, Outcome::Failed(_));
            prop_assert_eq!(answer.error.is_some(), failed);
            prop_assert!(attempts == 1 || (attempts == 2 && retry));
            let order = [times.sent, times.first_byte, Some(times.end)];
            let order: Vec<Nanos> = order.into_iter().flatten().collect();
            prop_assert!(order.is_sorted(), "{times:?}");
            prop_assert!(times.issued <= times.end);
            if let Outcome::Failed(failure) = outcome {
                prop_assert_eq!(failure.blame == Blame::Client, is_ours(failure.kind, failure.stage));
            }
        }
    }

    /// Nobody waits for something that does not come: where each connect and each exchange ends by itself,
    /// each request does, without a time-out.
    #[test]
    fn nobody_waits_for_nothing(
        steps in prop::collection::vec(step(), 1..80),
        (whims, dials) in talkative(),
        cap in prop_oneof![Just(None), (1..5_usize).prop_map(Some)],
        (retry, warm) in (any::<bool>(), 0..4_usize),
    ) {
        let mut rig = rig(whims, dials, |config| {
            config.max_connections = cap;
            config.retry_stale = retry;
            config.warm_connections = warm;
        });
        for step in steps {
            match step {
                Step::Issue(phase) => rig.issue_in(PhaseId(phase)),
                Step::Rehearse => rig.rehearse(),
                Step::Cancel(phase) => rig.cancel(Cancel::Phase(PhaseId(phase))),
                Step::CancelAll => {}
                Step::Pass(n) => { rig.run(us(n)); }
                Step::Kill(n) => rig.net().kill(n),
            }
        }
        // Eighty requests at the most: 3 ms each in a line of one, and at most 100 ms for each failure to
        // connect that all of them wait for.
        rig.run(ms(2_000));
        prop_assert_eq!(rig.answers().len() as u64, rig.issued());
    }
}

/// Failures of this machine or of the client's own queue.
fn is_ours(kind: ErrorKind, stage: Stage) -> bool {
    kind == ErrorKind::LocalLimit || stage == Stage::Queue
}
