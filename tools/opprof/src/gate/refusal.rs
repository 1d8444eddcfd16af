//! Why no judgement may be had: a comparison of the wrong things has no verdict, not a bad one.

use serde_json::Value;
use takt_report::paired::PAIRS_MIN;

use super::{Arm, GateRun, Matched};

/// Runs to pairs.
///
/// # Errors
/// Pairs that are not one of each arm, too few, or orders that are not balanced.
pub(super) fn pairs(runs: &[GateRun]) -> Result<Vec<Matched<'_>>, Vec<String>> {
    let mut names: Vec<&str> = Vec::new();
    for run in runs {
        if !names.contains(&run.pair.as_str()) {
            names.push(&run.pair);
        }
    }
    let mut pairs = Vec::new();
    let mut reasons = Vec::new();
    for name in names {
        let of: Vec<&GateRun> = runs.iter().filter(|run| run.pair == name).collect();
        match of[..] {
            [a, b] if a.arm != b.arm => {
                let off_first = a.arm == Arm::Off;
                let (off, on) = if off_first { (a, b) } else { (b, a) };
                pairs.push(Matched { off, on, off_first });
            }
            _ => {
                let arms: Vec<&str> = of.iter().map(|run| run.arm.name()).collect();
                let arms = arms.join(", ");
                reasons.push(format!("pair {name}: has runs {arms}, expected one off and one on"));
            }
        }
    }
    let n = pairs.len();
    let off_first = pairs.iter().filter(|pair| pair.off_first).count();
    if n < PAIRS_WITHOUT_ORDERS {
        reasons.push(format!("{n} pairs: too few to judge by; run {PAIRS_MIN}"));
    } else if n > PAIRS_WITHOUT_ORDERS && n % 2 == 1 {
        reasons.push(format!("{n} pairs: orders cannot be balanced; run one more"));
    } else if n > PAIRS_WITHOUT_ORDERS && 2 * off_first != n {
        let on_first = n - off_first;
        reasons
            .push(format!("off ran first in {off_first} pairs and on in {on_first}: balance them"));
    }
    if reasons.is_empty() { Ok(pairs) } else { Err(reasons) }
}

/// What the runs themselves forbid.
pub(super) fn of_runs(pairs: &[Matched<'_>]) -> Vec<String> {
    let mut reasons = Vec::new();
    for pair in pairs {
        if let Some(dropped) = pair.on.beside.dropped.filter(|&dropped| dropped > 0) {
            let name = &pair.on.pair;
            reasons.push(format!(
                "pair {name}: {dropped} step records were dropped: on did not do its work"
            ));
        }
    }
    let failed =
        |of: fn(&Matched<'_>) -> Option<u64>| -> Option<u64> { pairs.iter().map(of).sum() };
    let errors = (failed(|p| p.off.beside.errors), failed(|p| p.on.beside.errors));
    if let (Some(off), Some(on)) = errors
        && (off == 0) != (on == 0)
    {
        reasons.push(format!("errors in one arm only: {off} off, {on} on"));
    }
    let runs = || pairs.iter().flat_map(|pair| [pair.off, pair.on]);
    let mut outputs = runs().filter_map(|run| Some((run, run.beside.outputs.as_ref()?)));
    if let Some((first, expected)) = outputs.next()
        && let Some((other, found)) = outputs.find(|(_, found)| *found != expected)
    {
        let (a, b) = (named(first), named(other));
        reasons.push(format!("outputs differ: {expected} in {a}, {found} in {b}"));
    }
    let mut configs = runs().filter_map(|run| Some((run, run.beside.config.as_ref()?)));
    if let Some((first, expected)) = configs.next() {
        let other = configs.find_map(|(run, found)| Some((run, difference("", expected, found)?)));
        if let Some((other, path)) = other {
            let (a, b) = (named(first), named(other));
            reasons.push(format!("configurations differ between {a} and {b}: {path}"));
        }
    }
    reasons
}

/// What cannot be checked because not every run tells.
pub(super) fn not_checked(pairs: &[Matched<'_>]) -> Vec<&'static str> {
    let all = |has: fn(&GateRun) -> bool| pairs.iter().all(|pair| has(pair.off) && has(pair.on));
    let mut missing = Vec::new();
    let dropped = pairs.iter().all(|pair| pair.on.beside.dropped.is_some());
    missing.extend((!dropped).then_some("dropped records"));
    missing.extend((!all(|run| run.beside.outputs.is_some())).then_some("same outputs"));
    missing.extend((!all(|run| run.beside.config.is_some())).then_some("same configuration"));
    missing.extend((!all(|run| run.beside.errors.is_some())).then_some("errors"));
    missing.extend((!all(|run| run.beside.suspect.is_some())).then_some("busy host"));
    missing
}

fn named(run: &GateRun) -> String {
    format!("pair {} {}", run.pair, run.arm.name())
}

/// The first place where two documents differ, and how.
fn difference(path: &str, a: &Value, b: &Value) -> Option<String> {
    if let (Value::Object(left), Value::Object(right)) = (a, b) {
        let keys = left.keys().chain(right.keys().filter(|key| !left.contains_key(*key)));
        return keys.into_iter().find_map(|key| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned();
            difference(&path, &of(left).unwrap_or_default(), &of(right).unwrap_or_default())
        });
    }
    (a != b).then(|| format!("{path} is {a} and {b}"))
}

/// With so many pairs the plain paired t is taken, with a warning, since orders cannot be balanced.
const PAIRS_WITHOUT_ORDERS: usize = 5;
