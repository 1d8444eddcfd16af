//! How often the gate's verdicts go wrong: a table over runs whose true cost is known.
//!
//! ```text
//! cargo run --release -p takt-opprof --example gate_error_rates
//! ```
//!
//! At the limit, 3 %, PASS and FAIL are both wrong and may each come in 2.5 % of trials.
#![forbid(unsafe_code)]

use takt_opprof::{Effect, TRIAL_SHAPES, error_rates};

fn main() {
    const TRIALS: u32 = 20_000;
    println!("one metric, limit 3 %, runs vary by 1 %; {TRIALS} trials a row");
    println!(
        "{:<12} {:>5} {:>6}   {:>7} {:>7} {:>13}",
        "shape", "pairs", "cost", "PASS", "FAIL", "INCONCLUSIVE"
    );
    for pairs in [6, 10, 20] {
        for shape in TRIAL_SHAPES {
            for cost in [0.0, 0.02, 0.03, 0.05] {
                let effect = Effect { cost, shape, spread: 0.01, pairs };
                let rates = error_rates(effect, TRIALS, 1);
                let percent = |share: f64| format!("{:.2} %", share * 100.0);
                println!(
                    "{:<12} {pairs:>5} {:>4.0} %   {:>7} {:>7} {:>13}",
                    format!("{shape:?}"),
                    cost * 100.0,
                    percent(rates.pass),
                    percent(rates.fail),
                    percent(rates.inconclusive),
                );
            }
        }
    }
}
