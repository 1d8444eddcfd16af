//! What should make the reader careful: an effect of the order, a drift, a pair that stands out, a busy
//! host. None of them changes the verdict.

use takt_report::paired::{Estimate, PAIRS_MIN, percent, slope};

use super::{Matched, MetricGate};

/// Every warning, in order of importance.
pub(super) fn all(pairs: &[Matched<'_>], metrics: &[MetricGate]) -> Vec<String> {
    let mut says = Vec::new();
    if pairs.len() < PAIRS_MIN {
        let n = pairs.len();
        says.push(format!(
            "{n} pairs: orders are not balanced and the plain paired t decides; run {PAIRS_MIN}"
        ));
    }
    says.extend(suspect_runs(pairs));
    says.extend(metrics.iter().filter_map(order_effect));
    says.extend(metrics.iter().filter_map(drift));
    says.extend(standing_out(pairs, metrics));
    says
}

fn suspect_runs(pairs: &[Matched<'_>]) -> Vec<String> {
    let runs = pairs.iter().flat_map(|pair| [pair.off, pair.on]);
    let suspect = runs.filter_map(|run| {
        let reasons = run.beside.suspect.as_ref().filter(|reasons| !reasons.is_empty())?;
        Some(format!("pair {} {}: {}", run.pair, run.arm.name(), reasons.join("; ")))
    });
    suspect.collect()
}

fn order_effect(metric: &MetricGate) -> Option<String> {
    let order = metric.compared.balanced.as_ref()?.order;
    order.is_clear().then(|| {
        let name = metric.compared.metric.name();
        let size = percent(order.effect);
        format!("order effect in {name}: {size:+.1} % for the arm that runs second (kept out)")
    })
}

fn drift(metric: &MetricGate) -> Option<String> {
    let order = metric.compared.balanced.as_ref().map_or(0.0, |found| found.order.effect);
    let freed: Vec<f64> = metric
        .compared
        .pairs
        .iter()
        .map(|pair| if pair.base_first { pair.difference - order } else { pair.difference + order })
        .collect();
    let drift = slope(&freed).filter(Estimate::is_clear)?;
    let name = metric.compared.metric.name();
    Some(format!("drift in {name}: the cost moves by {:+.1} % a pair", percent(drift.effect)))
}

/// Pairs far from the others, by the median of distances to the median.
fn standing_out(pairs: &[Matched<'_>], metrics: &[MetricGate]) -> Vec<String> {
    let mut says = Vec::new();
    for (at, pair) in pairs.iter().enumerate() {
        let far: Vec<String> = metrics
            .iter()
            .filter(|metric| {
                let all: Vec<f64> = metric.compared.pairs.iter().map(|p| p.difference).collect();
                let middle = median(all.clone());
                let usual = median(all.iter().map(|d| (d - middle).abs()).collect());
                usual > 0.0 && (all[at] - middle).abs() > FAR * usual
            })
            .map(|metric| {
                let cost = percent(metric.compared.pairs[at].difference);
                format!("{} {cost:+.1} %", metric.compared.metric.name())
            })
            .collect();
        if !far.is_empty() {
            let pair = &pair.off.pair;
            says.push(format!("pair {pair} stands out: {}; was it disturbed?", far.join(", ")));
        }
    }
    says
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    match n % 2 {
        _ if n == 0 => f64::NAN,
        1 => values[n / 2],
        _ => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// 3.5 standard deviations of a normal distribution, in medians of distances (Iglewicz and Hoaglin).
const FAR: f64 = 3.5 / 0.6745;
