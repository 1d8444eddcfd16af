//! The floor of an open loop: how late a client is that does nothing but keep a schedule.
//!
//! One thread that never sleeps, one mio poll, N keep-alive connections that stand open. The moments are Poisson's, drawn
//! as takt draws them. What is due is sent at once, on the connection whose answer came last; between two looks at the sockets
//! and behind each answer the schedule is looked at. Answers are counted, not parsed; of a request its lateness is kept
//! and nothing else.
//!
//! ```text
//! floor_open --connect 127.0.0.1:8000 --rate 100000 --seconds 60 --connections 1024
//! ```
//!
//! Prints one line of JSON: how many were sent, lateness by percentile, and the 99th percentile of each second in which something
//! was sent (null: nothing was), in us.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a yardstick reads the clock itself")]

use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::Events;
use takt_actors::{Arrivals, Poisson, Purpose, stream};
use takt_bench::{Args, BadArg, Floor, PATIENCE};
use takt_time::Span;

fn main() -> Result<(), Box<dyn Error>> {
    let plan = Plan::read(std::env::args().skip(1))?;
    let mut floor = Floor::open(plan.connect, plan.connections)?;
    let arrivals = Poisson::new(plan.rate, stream(1, Purpose::Arrivals))?;
    let mut schedule = Schedule::new(Box::new(arrivals), plan.seconds);
    let mut seen = Seen::with_room((plan.rate * plan.seconds * 1.1) as usize + 1024);
    run(&mut floor, &plan, &mut schedule, &mut seen)?;
    println!("{}", seen.line());
    Ok(())
}

/// What the command line asks for.
struct Plan {
    connect: SocketAddr,
    connections: usize,
    seconds: f64,
    rate: f64,
}

impl Plan {
    fn read(words: impl Iterator<Item = String>) -> Result<Self, BadArg> {
        let mut args = Args::read(words)?;
        let missing = |what: &str| BadArg(format!("--{what} is missing"));
        let plan = Self {
            connect: args.take("connect")?.ok_or_else(|| missing("connect ADDR:PORT"))?,
            connections: args.take("connections")?.unwrap_or(1024),
            seconds: args.take("seconds")?.ok_or_else(|| missing("seconds S"))?,
            rate: args.take("rate")?.ok_or_else(|| missing("rate R"))?,
        };
        args.done()?;
        if plan.connections == 0 {
            return Err(BadArg("--connections must be 1 at least".into()));
        }
        Ok(plan)
    }
}

/// When to send, from the start.
struct Schedule {
    arrivals: Box<dyn Arrivals>,
    /// The next moment.
    due: Option<Span>,
    end: Span,
}

impl Schedule {
    fn new(arrivals: Box<dyn Arrivals>, seconds: f64) -> Self {
        let mut schedule =
            Self { arrivals, due: None, end: Span::from_nanos((seconds * 1e9) as u64) };
        schedule.draw();
        schedule
    }

    fn draw(&mut self) {
        self.due = self.arrivals.next().filter(|due| *due < self.end);
    }
}

/// How late each send was, in the order of sending.
#[derive(Default)]
struct Seen {
    late_ns: Vec<u64>,
    /// Of each whole second, how many sends there were before its end.
    seconds: Vec<usize>,
}

impl Seen {
    /// With room for so many, whose memory has been touched.
    fn with_room(most: usize) -> Self {
        let mut late_ns = vec![1; most];
        late_ns.clear();
        Self { late_ns, seconds: Vec::new() }
    }

    /// What was `due` is sent `at`.
    fn sent(&mut self, due: Span, at: Span) {
        while at.as_nanos() >= (self.seconds.len() as u64 + 1) * 1_000_000_000 {
            self.seconds.push(self.late_ns.len());
        }
        self.late_ns.push(at.as_nanos() - due.as_nanos());
    }

    fn line(&self) -> String {
        let text = |late: &[u64], p: f64| {
            percentile(late, p).map_or_else(|| "null".to_owned(), |us| us.to_string())
        };
        let ends = self.seconds.iter().copied().chain([self.late_ns.len()]);
        let starts = [0].into_iter().chain(self.seconds.iter().copied());
        let seconds: Vec<String> =
            starts.zip(ends).map(|(start, end)| text(&self.late_ns[start..end], 0.99)).collect();
        format!(
            r#"{{"program":"floor_open","requests":{},"lateness_us":{{"50":{},"99":{}}},"seconds_p99_us":[{}]}}"#,
            self.late_ns.len(),
            text(&self.late_ns, 0.5),
            text(&self.late_ns, 0.99),
            seconds.join(",")
        )
    }
}

/// The least value that so large a share of all is not above, in us; none of nothing.
fn percentile(late_ns: &[u64], share: f64) -> Option<f64> {
    let mut late = late_ns.to_vec();
    late.sort_unstable();
    let rank = (late.len() as f64 * share).ceil() as usize;
    late.get(rank.max(1) - 1).map(|ns| *ns as f64 / 1e3)
}

/// The loop itself.
fn run(
    floor: &mut Floor,
    plan: &Plan,
    schedule: &mut Schedule,
    seen: &mut Seen,
) -> Result<(), Box<dyn Error>> {
    let mut events = Events::with_capacity(1024);
    let mut free: Vec<usize> = (0..plan.connections).collect();
    let began = Instant::now();
    let mut heard = began;
    while schedule.due.is_some() || free.len() < plan.connections {
        let now = send_due(floor, schedule, &mut free, began, seen)?;
        floor.poll(&mut events, Some(Duration::ZERO))?;
        for event in &events {
            let index = event.token().0;
            if floor.answered(index)? {
                free.push(index);
            }
            send_due(floor, schedule, &mut free, began, seen)?;
        }
        if !events.is_empty() || free.len() == plan.connections {
            heard = now;
        } else if now - heard > PATIENCE {
            return Err(format!("no answer for {PATIENCE:?}").into());
        }
    }
    Ok(())
}

/// Sends what is due while there are connections, and says what time it is.
fn send_due(
    floor: &mut Floor,
    schedule: &mut Schedule,
    free: &mut Vec<usize>,
    began: Instant,
    seen: &mut Seen,
) -> Result<Instant, Box<dyn Error>> {
    loop {
        let now = Instant::now();
        let at = Span::from_nanos((now - began).as_nanos() as u64);
        let Some(due) = schedule.due.filter(|due| *due <= at) else { return Ok(now) };
        let Some(index) = free.pop() else { return Ok(now) };
        floor.send(index)?;
        seen.sent(due, at);
        schedule.draw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_actors::Constant;

    #[test]
    fn each_second_has_its_own_percentile_and_an_empty_one_has_none() {
        let mut seen = Seen::with_room(8);
        let ms = |ms: u64| Span::from_nanos(ms * 1_000_000);
        for (due, at) in [(0, 1), (999, 1_000), (1_999, 1_999), (2_500, 4_100)] {
            seen.sent(ms(due), ms(at));
        }
        let line = seen.line();
        assert!(line.contains(r#""seconds_p99_us":[1000,1000,null,null,1600000]"#), "{line}");
        assert!(line.contains(r#""requests":4,"lateness_us":{"50":1000,"99":1600000}"#), "{line}");
    }

    #[test]
    fn a_percentile_is_a_value_that_was_seen() {
        let late: Vec<u64> = (1..=100).map(|us| us * 1_000).collect();
        assert_eq!(percentile(&late, 0.99), Some(99.0));
        assert_eq!(percentile(&late[..1], 0.5), Some(1.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn a_schedule_ends_in_front_of_its_end() {
        let mut schedule = Schedule::new(Box::new(Constant::new(10.0).unwrap()), 0.5);
        let mut moments = Vec::new();
        while let Some(due) = schedule.due {
            moments.push(due.as_nanos() / 1_000_000);
            schedule.draw();
        }
        assert_eq!(moments, [100, 200, 300, 400]);
    }
}
