//! The floor of a closed loop: what the kernel costs when the client does nothing.
//!
//! One thread, one mio poll, N keep-alive connections. Each connection has one request in flight; the
//! next goes out when as many bytes have come back as the first answer had. Nothing is parsed after
//! that first answer, nothing is stamped, nothing is recorded.
//!
//! ```text
//! floor_client --connect 127.0.0.1:8000 --connections 64 (--seconds 5 | --requests 1000000)
//! ```
//!
//! Prints one line of JSON: requests per second, and user and system time per request. Give both
//! bounds and the first one reached ends the run.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a yardstick reads the clock itself")]

use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::Events;
use takt_bench::{Args, BadArg, Floor, PATIENCE, Spent};

fn main() -> Result<(), Box<dyn Error>> {
    let plan = Plan::read(std::env::args().skip(1))?;
    let mut floor = Floor::open(plan.connect, plan.connections)?;
    let spent = Spent::start()?;
    let requests = run(&mut floor, &plan, spent.began())?;
    println!("{}", spent.line("floor_client", plan.connections, requests)?);
    Ok(())
}

/// What the command line asks for.
struct Plan {
    connect: SocketAddr,
    connections: usize,
    seconds: Option<f64>,
    requests: Option<u64>,
}

impl Plan {
    fn read(words: impl Iterator<Item = String>) -> Result<Self, BadArg> {
        let mut args = Args::read(words)?;
        let plan = Self {
            connect: args
                .take("connect")?
                .ok_or_else(|| BadArg("--connect ADDR:PORT is missing".into()))?,
            connections: args.take("connections")?.unwrap_or(64),
            seconds: args.take("seconds")?,
            requests: args.take("requests")?,
        };
        args.done()?;
        if plan.seconds.is_none() && plan.requests.is_none() {
            return Err(BadArg("a bound is missing: --seconds S or --requests N".into()));
        }
        Ok(plan)
    }
}

/// The loop itself. Returns how many answers were counted.
fn run(floor: &mut Floor, plan: &Plan, began: Instant) -> Result<u64, Box<dyn Error>> {
    let until = plan.seconds.map(|s| began + Duration::from_secs_f64(s));
    let most = plan.requests.unwrap_or(u64::MAX);
    let mut events = Events::with_capacity(1024);
    let mut done = 0;
    for index in 0..plan.connections {
        floor.send(index)?;
    }
    while done < most && until.is_none_or(|at| Instant::now() < at) {
        floor.poll(&mut events, Some(PATIENCE))?;
        if events.is_empty() {
            return Err(format!("no answer for {PATIENCE:?}").into());
        }
        for event in &events {
            let index = event.token().0;
            if floor.answered(index)? {
                done += 1;
                floor.send(index)?;
            }
        }
    }
    Ok(done)
}
