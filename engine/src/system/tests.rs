//! The turn, in virtual time.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::{Context, Semaphore, StreamId, Target, VirtualClock};

/// What happened, in order: (instant, what).
type Log = Rc<RefCell<Vec<(u64, String)>>>;

#[derive(Clone)]
enum Do {
    Note(&'static str),
    /// Pretends to work for so many nanoseconds.
    Work(&'static str, u64),
    Arm(u64, Box<Do>),
    Soon(Box<Do>),
    Send(Addr<Do>, Box<Do>),
    Many(Vec<Do>),
    Open(u32),
    Leave,
    Stop,
}

struct Probe {
    log: Log,
    clock: VirtualClock,
}

impl Actor for Probe {
    type Msg = Do;

    fn handle(&mut self, msg: Do, cx: &mut Context<'_, Self>) {
        let note = |what: &str| self.log.borrow_mut().push((cx.now().as_nanos(), what.into()));
        match msg {
            Do::Note(what) => note(what),
            Do::Work(what, ns) => {
                note(what);
                self.clock.advance(Span::from_nanos(ns));
            }
            Do::Arm(at, then) => {
                cx.call_at(Nanos::from_nanos(at), *then);
            }
            Do::Soon(then) => cx.call_soon(*then),
            Do::Send(to, what) => to.send(*what),
            Do::Many(all) => all.into_iter().for_each(|one| self.handle(one, cx)),
            Do::Open(count) => {
                let target = Target::tcp(([127, 0, 0, 1], 1).into());
                (0..count).for_each(|_| drop(cx.connect(&target)));
            }
            Do::Leave => cx.stop(),
            Do::Stop => cx.stop_system(),
        }
    }

    fn ready(&mut self, event: Ready, cx: &mut Context<'_, Self>) {
        let Ready::Readable(stream) = event else { return };
        let what = format!("ready {}", stream.index());
        self.log.borrow_mut().push((cx.now().as_nanos(), what));
        self.clock.advance(Span::from_nanos(100));
    }
}

/// Runs a system of two probes that were sent `first` and `second`; gives the log as "instant what".
fn run(
    first: Vec<Do>,
    second: Vec<Do>,
    clock: &VirtualClock,
) -> (Vec<String>, System<VirtualClock>) {
    let log = Log::default();
    let mut system = System::new(clock.clone());
    for script in [first, second] {
        let probe = Probe { log: log.clone(), clock: clock.clone() };
        let addr = system.spawn(probe, 1024);
        script.into_iter().for_each(|msg| addr.send(msg));
    }
    system.run().unwrap();
    let lines = log.borrow().iter().map(|(at, what)| format!("{at} {what}")).collect();
    (lines, system)
}

fn check(first: Vec<Do>, second: Vec<Do>, expected: &[&str]) {
    assert_eq!(run(first, second, &VirtualClock::default()).0, expected);
}

fn arm(at: u64, what: &'static str) -> Do {
    Do::Arm(at, Box::new(Do::Note(what)))
}

fn stop_at(at: u64) -> Do {
    Do::Arm(at, Box::new(Do::Stop))
}

#[test]
fn timers_fire_at_their_instant_in_order_of_deadline_and_call() {
    check(
        vec![arm(500, "b"), arm(100, "a"), arm(500, "c"), stop_at(600)],
        vec![arm(500, "d"), arm(99, "z")],
        &["99 z", "100 a", "500 b", "500 c", "500 d"],
    );
}

#[test]
fn a_due_timer_waits_for_the_running_handler_and_not_for_the_messages_behind_it() {
    let work = |what| Do::Work(what, 400);
    check(
        vec![arm(1_000, "timer"), stop_at(9_999), work("1"), work("2"), work("3"), work("4")],
        vec![],
        &["0 1", "400 2", "800 3", "1200 timer", "1200 4"],
    );
}

#[test]
fn a_due_timer_does_not_wait_for_a_batch_of_readiness() {
    let clock = VirtualClock::default();
    let script = vec![Do::Open(5), arm(250, "timer"), stop_at(9_999)];
    let log = Log::default();
    let mut system = System::new(clock.clone());
    let addr = system.spawn(Probe { log: log.clone(), clock: clock.clone() }, 64);
    script.into_iter().for_each(|msg| addr.send(msg));
    system.turn().unwrap();
    for index in 0..5 {
        clock.queue(Ready::Readable(StreamId::new(index, 0)));
    }
    system.run().unwrap();
    let seen: Vec<_> = log.borrow().iter().map(|(_, what)| what.clone()).collect();
    assert_eq!(seen, ["ready 0", "ready 1", "ready 2", "timer", "ready 3", "ready 4"]);
}

#[test]
fn what_a_timer_sets_in_motion_runs_before_what_waited_already() {
    let log = Log::default();
    let clock = VirtualClock::default();
    let mut system = System::new(clock.clone());
    let probe = || Probe { log: log.clone(), clock: clock.clone() };
    let (busy, carrier) = (system.spawn(probe(), 64), system.spawn(probe(), 64));
    // While `busy` works through its queue a timer of it comes due that hands a note to `carrier`.
    busy.send(Do::Arm(150, Box::new(Do::Send(carrier, Box::new(Do::Note("sent"))))));
    busy.send(stop_at(9_999));
    (0..4).for_each(|_| busy.send(Do::Work("work", 100)));
    system.run().unwrap();
    let seen: Vec<_> = log.borrow().iter().map(|(_, what)| what.clone()).collect();
    assert_eq!(seen, ["work", "work", "sent", "work", "work"]);
}

#[test]
fn call_soon_runs_after_what_is_queued_and_after_a_look_at_the_sockets() {
    let clock = VirtualClock::default();
    let soon = |what| Do::Soon(Box::new(Do::Note(what)));
    let script = vec![soon("soon"), Do::Note("queued"), stop_at(10)];
    let (lines, _) = run(script, vec![Do::Note("other")], &clock);
    assert_eq!(lines, ["0 queued", "0 other", "0 soon"]);
    assert!(clock.parks() >= 2, "the sockets were looked at in between");
}

#[test]
fn a_chain_of_call_soon_starves_neither_timers_nor_sockets() {
    struct Burst(u64, VirtualClock);
    impl Actor for Burst {
        type Msg = bool;
        fn started(&mut self, cx: &mut Context<'_, Self>) {
            cx.call_at(Nanos::from_nanos(1_000), true);
            cx.call_soon(false);
        }
        fn handle(&mut self, timer: bool, cx: &mut Context<'_, Self>) {
            if timer {
                return cx.stop_system();
            }
            self.0 += 1;
            assert!(self.0 <= 100, "the timer is past due");
            self.1.advance(Span::from_nanos(10));
            cx.call_soon(false);
        }
    }
    let clock = VirtualClock::default();
    let mut system = System::new(clock.clone());
    system.spawn(Burst(0, clock.clone()), 8);
    system.run().unwrap();
    assert!(clock.parks() >= 99);
}

#[test]
fn timers_that_are_due_faster_than_served_leave_the_sockets_their_turn() {
    /// Each timer takes 10 us and arms the next for 1 us later: it never catches up.
    struct Overload(VirtualClock, u64);
    impl Actor for Overload {
        type Msg = u64;
        fn started(&mut self, cx: &mut Context<'_, Self>) {
            cx.call_at(Nanos::from_nanos(1_000), 1);
        }
        fn handle(&mut self, n: u64, cx: &mut Context<'_, Self>) {
            self.0.advance(Span::from_micros(10));
            self.1 = n;
            if n == 1_000 {
                return cx.stop_system();
            }
            cx.call_at(Nanos::from_nanos((n + 1) * 1_000), n + 1);
        }
    }
    let clock = VirtualClock::default();
    let mut system = System::new(clock.clone());
    system.spawn(Overload(clock.clone(), 0), 8);
    system.run().unwrap();
    // 10 ms of work with a look at the sockets every 20 us, give or take the handler that runs.
    assert!((300..=1_001).contains(&clock.parks()), "{} looks", clock.parks());
    assert_eq!(system.stats().timers, 1_000);
}

#[test]
fn the_meter_tells_the_kinds_of_work_apart_and_hides_nothing() {
    /// Each timer takes 300 ns and a message of it 200; what it makes ready takes 100 and a message 50.
    struct Worker(VirtualClock, u64);
    impl Actor for Worker {
        type Msg = (bool, u64);
        fn started(&mut self, cx: &mut Context<'_, Self>) {
            let target = Target::tcp(([127, 0, 0, 1], 1).into());
            cx.connect(&target).unwrap();
            cx.call_at(Nanos::from_nanos(10_000), (true, 0));
        }
        fn handle(&mut self, (timer, ns): Self::Msg, cx: &mut Context<'_, Self>) {
            self.0.advance(Span::from_nanos(ns));
            if !timer {
                return;
            }
            self.1 += 1;
            if self.1 == 610 {
                return cx.stop_system();
            }
            self.0.advance(Span::from_nanos(300));
            self.0.queue(Ready::Readable(StreamId::new(0, 0)));
            cx.call_at(cx.now() + Span::from_nanos(10_000), (true, 0));
            cx.addr().send((false, 200));
        }
        fn ready(&mut self, _event: Ready, cx: &mut Context<'_, Self>) {
            self.0.advance(Span::from_nanos(100));
            cx.addr().send((false, 50));
        }
    }
    let clock = VirtualClock::default();
    let mut system = System::new(clock.clone());
    system.spawn(Worker(clock.clone(), 0), 8);
    system.run().unwrap();
    let (stats, ns) = (*system.stats(), Span::from_nanos);
    let sampled = stats.sampled;
    // A timer's turn and that of its readiness come by turns, and 61 is odd: half of each.
    assert_eq!(sampled.turns, stats.turns / 61);
    let (timers, ready) = (sampled.turns.div_ceil(2), sampled.turns / 2);
    assert!(timers == 10 && ready >= 9, "{sampled:?}");
    let of_timers = sampled.timers.as_nanos() / 500;
    assert!(of_timers == timers || of_timers == ready, "{sampled:?}");
    let of_ready = sampled.turns - of_timers;
    assert_eq!((sampled.timers, sampled.readiness), (ns(500 * of_timers), ns(100 * of_ready)));
    assert_eq!((sampled.messages, sampled.rest), (ns(50 * of_ready), Span::ZERO));
    // Each turn has either; the last timer did nothing.
    assert_eq!(stats.busy, ns(609 * (300 + 200 + 100 + 50)));
}

#[test]
fn a_cancelled_timer_gives_its_message_back_and_never_fires() {
    struct Canceller;
    impl Actor for Canceller {
        type Msg = &'static str;
        fn started(&mut self, cx: &mut Context<'_, Self>) {
            let key = cx.call_at(Nanos::from_nanos(10), "never");
            cx.call_at(Nanos::from_nanos(20), "end");
            assert_eq!(cx.cancel(key), Some("never"));
            assert_eq!(cx.cancel(key), None);
        }
        fn handle(&mut self, msg: &'static str, cx: &mut Context<'_, Self>) {
            assert_eq!((msg, cx.now().as_nanos()), ("end", 20));
            cx.stop_system();
        }
    }
    let mut system = System::new(VirtualClock::default());
    system.spawn(Canceller, 1);
    system.run().unwrap();
}

#[test]
fn an_actor_that_leaves_takes_its_timers_and_messages_with_it() {
    let leave = Do::Many(vec![arm(50, "never"), Do::Leave]);
    check(vec![leave, Do::Note("never")], vec![arm(70, "there"), stop_at(90)], &["70 there"]);
}

#[test]
fn the_same_script_gives_the_same_trace_and_another_gives_another() {
    let hash = |at| {
        let clock = VirtualClock::default();
        let script = vec![arm(at, "x"), Do::Work("w", 7), stop_at(5_000)];
        let (_, system) = run(script, vec![arm(9, "y")], &clock);
        (system.trace().hash(), system.trace().count())
    };
    assert_eq!(hash(100), hash(100));
    assert_ne!(hash(100).0, hash(101).0);
    assert_eq!(hash(100).1, hash(101).1);
}

#[test]
fn a_message_from_another_thread_arrives_and_a_full_queue_gives_it_back() {
    let (log, clock) = (Log::default(), VirtualClock::default());
    let mut system = System::new(clock.clone());
    let addr = system.spawn(Probe { log: log.clone(), clock: clock.clone() }, 8);
    addr.send(stop_at(10));
    // `Do` holds addresses of this thread; a message that may travel is a plain one.
    struct Counter(Log);
    impl Actor for Counter {
        type Msg = u32;
        fn handle(&mut self, msg: u32, cx: &mut Context<'_, Self>) {
            self.0.borrow_mut().push((cx.now().as_nanos(), msg.to_string()));
        }
    }
    let counter = system.spawn(Counter(log.clone()), 8);
    let remote = system.remote(&counter, 2);
    #[allow(clippy::disallowed_methods, reason = "the sender must be another thread")]
    std::thread::spawn(move || {
        assert_eq!(remote.send(1), Ok(()));
        assert_eq!(remote.clone().send(2), Ok(()));
        assert_eq!(remote.send(3), Err(3), "clones share one bounded queue");
    })
    .join()
    .unwrap();
    system.run().unwrap();
    let seen: Vec<_> = log.borrow().iter().map(|(_, what)| what.clone()).collect();
    assert_eq!(seen, ["1", "2"]);
    assert_eq!(system.stats().remote, 2);
}

#[test]
fn a_semaphore_grants_in_the_order_of_asking() {
    let (log, clock) = (Log::default(), VirtualClock::default());
    let mut system = System::new(clock.clone());
    let addr = system.spawn(Probe { log: log.clone(), clock }, 8);
    let mut slots = Semaphore::new(1);
    for what in ["first", "second", "third"] {
        slots.acquire(&addr, Do::Note(what));
    }
    assert_eq!((slots.held(), slots.waiting(), slots.available()), (1, 2, 0));
    assert!(!slots.try_acquire(), "those in line come first");
    for _ in 0..3 {
        slots.release().unwrap();
    }
    assert_eq!((slots.held(), slots.waiting(), slots.available()), (0, 0, 1));
    assert!(slots.release().is_err(), "a permit that nobody holds");
    assert_eq!(slots.available(), 1, "and nothing changed");
    addr.send(Do::Stop);
    system.run().unwrap();
    let seen: Vec<_> = log.borrow().iter().map(|(_, what)| what.clone()).collect();
    assert_eq!(seen, ["first", "second", "third"]);
}
