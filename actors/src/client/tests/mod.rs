//! The client against a scripted network.

mod answers;
mod ending;
mod making;
mod pooling;
mod random;
mod rehearsal;

use takt_record::{Completed, Outcome};
use takt_time::Span;

use super::testing::{Act, Asked, Rig, answer};

fn us(us: u64) -> Span {
    Span::from_micros(us)
}

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// One line per answer: ordinal, outcome, attempts, whether the connection had been used.
fn told(rig: &Rig) -> Vec<String> {
    rig.answers().iter().map(|answer| tell(&answer.completed)).collect()
}

fn tell(done: &Completed) -> String {
    let how = match done.outcome {
        Outcome::Ok => "ok".to_owned(),
        Outcome::Unanswered => "unanswered".to_owned(),
        Outcome::Failed(f) => format!("{} {} {}", f.kind, f.blame, f.stage),
    };
    let reused = if done.reused { " reused" } else { "" };
    let again = if done.attempts == 2 { " again" } else { "" };
    format!("{} {how}{reused}{again}", done.key.ordinal)
}

/// Issues one request, waits for what comes of it, and checks that.
#[track_caller]
fn check(rig: &mut Rig, expect: &str) -> Completed {
    rig.issue();
    rig.run(ms(5));
    let done = rig.answers().last().expect("an answer").completed;
    assert_eq!(tell(&done), format!("{} {expect}", rig.issued() - 1));
    done
}

fn send(bytes: impl Into<Vec<u8>>) -> Act {
    Act::Send(us(50), bytes.into())
}

/// A server that closes each connection without an answer to the second request on it.
fn closes_on_second(end: fn(Span) -> Act) -> impl FnMut(&Asked) -> Vec<Act> {
    move |asked| if asked.nth == 0 { vec![send(answer())] } else { vec![end(us(20))] }
}
