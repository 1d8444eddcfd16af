//! Ten million requests take no more memory than ten thousand.
//!
//! What the fold keeps is bounded by its structures (see the module text of `fold.rs`); here its size is
//! watched from outside, as what a copy of it would print. A number of records large enough to show
//! growth is folded, not ten million: growth with records would show in the first hundred thousand.

use takt_record::Record;
use takt_report::RunFold;

use crate::run::{Run, closed, failed, ok};

/// Bytes that the fold's whole state takes in print, after `requests` requests of the same few shapes.
fn printed_size(requests: u64) -> usize {
    let mut run = Run::new(vec![closed("p", 4)]);
    run.start(0, 0.0, 0);
    let mut fold: RunFold = run.fold();
    let mut take = |record: &Record<'_>| takt_record::Fold::fold(&mut fold, record);
    for i in 0..requests {
        let t = (i % 1_000) as f64;
        let events = [(t + 1.0, None), (t + 2.0, None), (t + 3.0, None)];
        let request = if i % 10 == 0 { failed(i, t, t + 4.0) } else { ok(i, t, t + 4.0) };
        let mut one = Run::new(vec![]);
        one.add(&request.streamed(&events, 3));
        one.records[1..].iter().for_each(&mut take);
    }
    format!("{fold:?}").len()
}

#[test]
fn e7_state_does_not_grow_with_requests() {
    let (small, large) = (printed_size(1_000), printed_size(10_000));
    // Counters get longer in print; nothing else may.
    assert!(large < small + small / 20, "{small} bytes became {large}");
}
