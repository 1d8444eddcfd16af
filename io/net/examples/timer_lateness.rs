//! How late timers are, by wait mode: `cargo run --release -p takt-net --example timer_lateness -- spin 1000`
use takt_engine::Host;
use takt_net::{MioHost, WaitMode};
use takt_time::{Nanos, Span};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mode: WaitMode = args.next().as_deref().unwrap_or("guard").parse()?;
    let rate: u64 = args.next().as_deref().unwrap_or("1000").parse()?;
    let timers: u64 = args.next().map_or(Ok(rate.saturating_mul(3)), |n| n.parse())?.max(1);
    let (mut host, mut ready) = (MioHost::new(mode)?, Vec::new());
    let start = host.now() + Span::from_millis(10);
    let mut late: Vec<Span> = Vec::new();
    for n in 0..timers {
        let due = start + Span::from_nanos(n * 1_000_000_000 / rate.max(1));
        while host.now() < due {
            host.park(Some(due), &mut ready)?;
        }
        late.push(host.now() - Nanos::min(due, host.now()));
    }
    late.sort_unstable();
    let at = |q: f64| late[((late.len() - 1) as f64 * q) as usize];
    println!(
        "{mode} {rate}/s: p50 {} p99 {} p99.9 {} max {}",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    println!("{:?}", host.stats());
    Ok(())
}
