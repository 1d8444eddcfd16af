//! The wheel against a sorted list.

use super::*;
use proptest::prelude::*;

/// The model: timers as (deadline, call number), always sorted.
#[derive(Default)]
struct Model {
    timers: Vec<(u64, u64)>,
}

#[derive(Clone, Debug)]
enum Step {
    /// Arms at the current instant plus this, minus this.
    Arm(u64, u64),
    /// Cancels the armed timer with this rank among the keys ever given.
    Cancel(usize),
    /// Time goes on by this and all that is due fires.
    Advance(u64),
    /// One timer fires, if due after this much time.
    FireOne(u64),
}

fn any_delay() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..4u64,
        0..200u64,
        0..100_000u64,
        Just(64),
        Just(4096),
        (0..63u32).prop_map(|bits| 1u64 << bits),
        any::<u64>().prop_map(|n| n >> 20),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any_delay().prop_map(|d| Step::Arm(d, 0)),
        1 => any_delay().prop_map(|d| Step::Arm(0, d)),
        2 => any::<usize>().prop_map(Step::Cancel),
        2 => any_delay().prop_map(Step::Advance),
        1 => any_delay().prop_map(Step::FireOne),
    ]
}

/// The last instant there is.
const LAST: u64 = Nanos::MAX.as_nanos();

fn check(steps: &[Step]) {
    let (mut wheel, mut model) = (Wheel::default(), Model::default());
    let (mut now, mut calls, mut keys) = (0u64, 0u64, Vec::new());
    let fire = |wheel: &mut Wheel<u64>, model: &mut Model, now: u64| {
        let expected = match model.timers.first() {
            Some(&(deadline, _)) if deadline <= now => Some(model.timers.remove(0)),
            _ => None,
        };
        let fired = wheel.pop_due(Nanos::from_nanos(now)).map(|(at, call)| (at.as_nanos(), call));
        assert_eq!(fired, expected, "at {now}");
        fired.is_some()
    };
    for step in steps {
        match *step {
            Step::Arm(ahead, behind) => {
                let deadline = now.saturating_add(ahead).saturating_sub(behind).min(LAST);
                let key = wheel.insert(Nanos::from_nanos(deadline), calls);
                let place = model.timers.partition_point(|&(d, _)| d <= deadline);
                model.timers.insert(place, (deadline, calls));
                keys.push((key, calls));
                calls += 1;
            }
            Step::Cancel(rank) if !keys.is_empty() => {
                let (key, call) = keys[rank % keys.len()];
                let place = model.timers.iter().position(|&(_, c)| c == call);
                let expected = place.map(|place| model.timers.remove(place).1);
                assert_eq!(wheel.cancel(key), expected);
            }
            Step::Cancel(_) => {}
            Step::Advance(by) => {
                now = now.saturating_add(by);
                while fire(&mut wheel, &mut model, now) {}
            }
            Step::FireOne(by) => {
                now = now.saturating_add(by);
                fire(&mut wheel, &mut model, now);
            }
        }
        let next = model.timers.first().map(|&(deadline, _)| Nanos::from_nanos(deadline));
        assert_eq!(wheel.next_deadline(), next, "after {step:?}");
        assert_eq!(wheel.len(), model.timers.len());
    }
    while fire(&mut wheel, &mut model, u64::MAX) {}
    assert!(wheel.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_order_of_calls_agrees_with_a_sorted_list(
        steps in prop::collection::vec(any_step(), 0..120)
    ) {
        check(&steps);
    }
}

#[test]
fn ties_fire_in_call_order_over_a_cascade() {
    // Both armed for the same instant, the second when the first has moved to a lower level.
    check(&[
        Step::Arm(5_000, 0),
        Step::Arm(4_096, 0),
        Step::Advance(4_096),
        Step::Arm(904, 0),
        Step::Advance(904),
    ]);
}

#[test]
fn the_ends_of_the_clock_are_ordinary_instants() {
    check(&[Step::Arm(u64::MAX, 0), Step::Arm(0, 0), Step::Advance(u64::MAX - 1), Step::Arm(1, 0)]);
}

#[test]
fn a_key_is_good_for_one_arming() {
    let mut wheel = Wheel::default();
    let first = wheel.insert(Nanos::from_nanos(7), 'a');
    assert_eq!(wheel.cancel(first), Some('a'));
    let second = wheel.insert(Nanos::from_nanos(7), 'b');
    assert_eq!(wheel.cancel(first), None, "the slot is in use again, the key is not");
    assert_eq!(wheel.cancel(second), Some('b'));
}
