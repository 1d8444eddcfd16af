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
//! Prints one line of JSON: how many were sent, lateness by percentile, and the 99th percentile of each second, in us.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a yardstick reads the clock itself")]

use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::Events;
use takt_actors::{Arrivals, Poisson, Purpose, stream};
use takt_bench::{Args, BadArg, Floor, PATIENCE, Spent};
use takt_time::Span;

fn main() -> Result<(), Box<dyn Error>> {
    let plan = Plan::read(std::env::args().skip(1))?;
    let mut floor = Floor::open(plan.connect, plan.connections)?;
    let mut schedule = Schedule::new(&plan)?;
    let spent = Spent::start()?;
    run(&mut floor, &plan, &mut schedule)?;
    let line = spent.line("floor_open", plan.connections, schedule.late_ns.len() as u64)?;
    println!("{},{}}}", line.trim_end_matches('}'), schedule.says());
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
        Ok(plan)
    }
}

/// When to send, and how late it was.
struct Schedule {
    arrivals: Poisson,
    /// The next moment, from the start.
    due: Option<Span>,
    end: Span,
    /// Of each send, in the order of the schedule.
    late_ns: Vec<u32>,
    /// Of each whole second of the schedule, how many sends there were before its end.
    seconds: Vec<usize>,
}

impl Schedule {
    fn new(plan: &Plan) -> Result<Self, Box<dyn Error>> {
        let arrivals = Poisson::new(plan.rate, stream(1, Purpose::Arrivals))?;
        let end = Span::from_nanos((plan.seconds * 1e9) as u64);
        let most = (plan.rate * plan.seconds * 1.1) as usize;
        let late_ns = Vec::with_capacity(most + 1024);
        let mut schedule = Self { arrivals, due: None, end, late_ns, seconds: Vec::new() };
        schedule.draw();
        Ok(schedule)
    }

    fn draw(&mut self) {
        self.due = self.arrivals.next().filter(|due| *due < self.end);
    }

    /// A send of what was due leaves `at`.
    fn sent(&mut self, at: Span) {
        let Some(due) = self.due else { return };
        while due.as_nanos() >= (self.seconds.len() as u64 + 1) * 1_000_000_000 {
            self.seconds.push(self.late_ns.len());
        }
        self.late_ns.push(u32::try_from(at.as_nanos() - due.as_nanos()).unwrap_or(u32::MAX));
        self.draw();
    }

    /// Percentiles of all, and the 99th of each second but an unfinished one.
    fn says(&self) -> String {
        let percentile = |late: &[u32], p: f64| {
            let mut late = late.to_vec();
            late.sort_unstable();
            late.get((late.len() as f64 * p) as usize).map_or(0.0, |ns| f64::from(*ns) / 1e3)
        };
        let ends = self.seconds.iter().copied().chain([self.late_ns.len()]);
        let starts = [0].into_iter().chain(self.seconds.iter().copied());
        let each: Vec<String> = starts
            .zip(ends)
            .map(|(start, end)| percentile(&self.late_ns[start..end], 0.99).to_string())
            .collect();
        format!(
            "\"lateness_us\":{{\"50\":{},\"99\":{}}},\"seconds_p99_us\":[{}]",
            percentile(&self.late_ns, 0.5),
            percentile(&self.late_ns, 0.99),
            each.join(",")
        )
    }
}

/// The loop itself.
fn run(floor: &mut Floor, plan: &Plan, schedule: &mut Schedule) -> Result<(), Box<dyn Error>> {
    let mut events = Events::with_capacity(1024);
    let mut free: Vec<usize> = (0..plan.connections).collect();
    let began = Instant::now();
    let mut heard = began;
    while schedule.due.is_some() || free.len() < plan.connections {
        send_due(floor, schedule, &mut free, began)?;
        floor.poll(&mut events, Some(Duration::ZERO))?;
        for event in &events {
            let index = event.token().0;
            if floor.answered(index)? {
                free.push(index);
            }
            heard = send_due(floor, schedule, &mut free, began)?;
        }
        if schedule.due.is_none() && heard.elapsed() > PATIENCE {
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
) -> Result<Instant, Box<dyn Error>> {
    loop {
        let now = Instant::now();
        let at = Span::from_nanos((now - began).as_nanos() as u64);
        if schedule.due.is_none_or(|due| due > at) {
            return Ok(now);
        }
        let Some(index) = free.pop() else { return Ok(now) };
        schedule.sent(at);
        floor.send(index)?;
    }
}
