//! The clock itself: waits for one moment after another.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use takt_actors::Arrivals;
use takt_record::PhaseId;
use takt_time::{Nanos, Span};

use super::{Arrival, Command};
use crate::config::Config;
use crate::plan::{self, Times};

/// A clock with the arrivals of every phase.
pub(crate) struct Beat {
    phases: Vec<Option<Box<dyn Arrivals>>>,
}

/// What became of a wait.
enum Waited {
    Due,
    Told(Option<Command>),
}

impl Beat {
    /// The clock of `config`, all of whose phases are timed; those that replay a recording send at `times`.
    pub(crate) fn new(config: &Config, times: &Times) -> anyhow::Result<Self> {
        let phases = config.phases.iter().zip(times);
        let phases = phases.map(|(phase, times)| plan::arrivals(config.rng, phase, times.as_ref()));
        Ok(Self { phases: phases.collect::<Result<_, _>>()? })
    }

    /// Sends arrivals when they are due, until there is no one left to command it or to send to. `send`
    /// gets those that are due together and may wait; `false` ends it.
    pub(crate) fn run(
        mut self,
        commands: &Receiver<Command>,
        mut send: impl FnMut(&[Arrival]) -> bool,
    ) {
        let mut next = commands.recv().ok();
        while let Some(command) = next {
            next = match command {
                Command::Begin { phase, start, end } => {
                    let arrivals = self.phases.get_mut(usize::from(phase.0)).and_then(Option::take);
                    match arrivals {
                        Some(arrivals) => {
                            let moments = Moments { arrivals, start, end, cut: None };
                            beat(moments, phase, commands, &mut send)
                        }
                        None => commands.recv().ok(),
                    }
                }
                Command::End => commands.recv().ok(),
            };
        }
    }
}

/// The moments of a phase.
struct Moments {
    arrivals: Box<dyn Arrivals>,
    start: Nanos,
    end: Option<Nanos>,
    /// The end of the phase, once there was a moment behind it.
    cut: Option<Nanos>,
}

impl Iterator for Moments {
    type Item = Nanos;

    fn next(&mut self) -> Option<Nanos> {
        let at = self.start + self.arrivals.next()?;
        self.cut = self.end.filter(|end| at >= *end);
        if self.cut.is_some() { None } else { Some(at) }
    }
}

/// Sends the arrivals of one phase. Comes back with the command that ended it; `None`: there is none to
/// come.
fn beat(
    mut moments: Moments,
    phase: PhaseId,
    commands: &Receiver<Command>,
    send: &mut impl FnMut(&[Arrival]) -> bool,
) -> Option<Command> {
    let mut due = Vec::with_capacity(TOGETHER_MAX);
    let mut ordinal = 0;
    let mut next = moments.next();
    while let Some(at) = next {
        if let Waited::Told(command) = wait(at, commands) {
            return command;
        }
        let now = takt_net::now();
        while let Some(scheduled) = next.filter(|at| *at <= now && due.len() < TOGETHER_MAX) {
            due.push(Arrival { phase, ordinal, scheduled: Some(scheduled) });
            ordinal += 1;
            next = moments.next();
        }
        if !send(&due) {
            return None;
        }
        due.clear();
    }
    if let Some(end) = moments.cut
        && let Waited::Told(command) = wait(end, commands)
    {
        return command;
    }
    let last = Arrival { phase, ordinal, scheduled: None };
    if send(&[last]) { commands.recv().ok() } else { None }
}

/// Waits for `at`: asleep while that is far off, then on the clock alone.
fn wait(at: Nanos, commands: &Receiver<Command>) -> Waited {
    loop {
        let left = at.saturating_since(takt_net::now());
        if left <= AWAKE {
            // Once for each arrival, however fast they come.
            match commands.try_recv() {
                Ok(command) => return Waited::Told(Some(command)),
                Err(TryRecvError::Disconnected) => return Waited::Told(None),
                Err(TryRecvError::Empty) => {}
            }
            while takt_net::now() < at {}
            return Waited::Due;
        }
        match commands.recv_timeout(Duration::from_nanos(left.as_nanos() - AWAKE.as_nanos())) {
            Ok(command) => return Waited::Told(Some(command)),
            Err(RecvTimeoutError::Disconnected) => return Waited::Told(None),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// How long before a moment the clock no longer sleeps: many times what the kernel is late by.
const AWAKE: Span = Span::from_millis(1);
/// Arrivals sent in one go while the clock is behind.
const TOGETHER_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct Each(u64);

    impl Arrivals for Each {
        fn next(&mut self) -> Option<Span> {
            self.0 = self.0.checked_sub(1)?;
            Some(Span::ZERO)
        }
    }

    #[test]
    fn arrivals_come_in_order_none_left_out_and_the_last_is_said() {
        let beat = Beat { phases: vec![Some(Box::new(Each(150)))] };
        let (tell, commands) = mpsc::channel();
        tell.send(Command::Begin { phase: PhaseId(0), start: takt_net::now(), end: None }).unwrap();
        drop(tell);
        let mut seen = Vec::new();
        // Nobody is left to command it: the phase that began is over at once.
        beat.run(&commands, |due| {
            seen.extend_from_slice(due);
            true
        });
        assert_eq!(seen, []);

        let beat = Beat { phases: vec![Some(Box::new(Each(150)))] };
        let (tell, commands) = mpsc::channel();
        tell.send(Command::Begin { phase: PhaseId(0), start: takt_net::now(), end: None }).unwrap();
        beat.run(&commands, |due| {
            seen.extend_from_slice(due);
            due.iter().all(|arrival| arrival.scheduled.is_some())
        });
        let ordinals: Vec<_> = seen.iter().map(|arrival| arrival.ordinal).collect();
        assert_eq!(ordinals, (0..=150).collect::<Vec<_>>());
        assert!(seen[..150].iter().all(|arrival| arrival.scheduled.is_some()));
        assert_eq!(seen[150].scheduled, None);
    }

    #[test]
    fn what_is_due_before_the_end_is_sent_and_then_the_last_is_said_at_the_end() {
        struct EachMs(u64);
        impl Arrivals for EachMs {
            fn next(&mut self) -> Option<Span> {
                self.0 += 1;
                Some(Span::from_millis(self.0))
            }
        }
        // All of it is over: a clock that was held up sends what it owes.
        for (ms, expect) in [(20, 19), (1, 0)] {
            let start = Nanos::from_nanos(1_000);
            let end = Some(start + Span::from_millis(ms));
            let beat = Beat { phases: vec![Some(Box::new(EachMs(0)))] };
            let (tell, commands) = mpsc::channel();
            tell.send(Command::Begin { phase: PhaseId(0), start, end }).unwrap();
            let mut seen = Vec::new();
            beat.run(&commands, |due| {
                seen.extend_from_slice(due);
                due.iter().all(|arrival| arrival.scheduled.is_some())
            });
            assert_eq!(seen.len(), expect + 1);
            assert_eq!(seen[expect].scheduled, None);
            assert!(seen[..expect].iter().all(|arrival| arrival.scheduled < end));
        }
    }

    #[test]
    fn a_phase_that_is_over_is_waited_for_no_longer() {
        struct Never;
        impl Arrivals for Never {
            fn next(&mut self) -> Option<Span> {
                Some(Span::from_secs(1 << 30))
            }
        }
        let phases = (0..2).map(|_| Some(Box::new(Never) as Box<dyn Arrivals>)).collect();
        let (tell, commands) = mpsc::channel();
        for command in [
            Command::Begin { phase: PhaseId(0), start: Nanos::ZERO, end: None },
            Command::End,
            Command::Begin { phase: PhaseId(1), start: Nanos::ZERO, end: None },
        ] {
            tell.send(command).unwrap();
        }
        drop(tell);
        Beat { phases }.run(&commands, |_| panic!("nothing is due"));
    }
}
