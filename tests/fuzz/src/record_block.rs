//! Packed records: any bytes are records or one error at the end, and what was read can be written again.
//!
//! Input: the number of records (one byte), the time that they count from (eight bytes), then the block's bytes.
//! What was read is also folded into a result, as `takt report` does with a journal: no order of records and
//! no value in them may stop it.

use takt_record::{Block, BlockReader, BlockWriter, Fold, Record, SessionPlan};
use takt_report::{Limits, RunFold, render};
use takt_time::Nanos;

use super::pieces::options;

/// The target.
pub fn record_block(data: &[u8]) {
    let Some(([count, base @ ..], bytes)) = options::<9>(data) else { return };
    let base = Nanos::from_nanos(u64::from_le_bytes(base));
    let mut reader = BlockReader::new(base, count.into(), bytes);
    let mut records = Vec::new();
    let mut error = None;
    for read in reader.by_ref() {
        assert!(error.is_none(), "nothing follows an error");
        match read {
            Ok(record) => records.push(record),
            Err(told) => error = Some(told),
        }
    }
    assert!(reader.next().is_none());
    match error {
        Some(error) => assert_eq!(error.record as usize, records.len()),
        None => assert_eq!(records.len(), usize::from(count)),
    }
    written_again(&records);
    folded(plan(), &records);
}

/// A record that was read can be written, and reads as itself.
fn written_again(records: &[Record<'_>]) {
    let mut writer = BlockWriter::new(Block::with_capacity(1 << 20));
    for record in records {
        writer.push(record).expect("there is room");
    }
    let again: Result<Vec<_>, _> = writer.block().iter().collect();
    assert_eq!(again.as_deref(), Ok(records));
}

/// A result of these records can be made and shown.
pub(crate) fn folded(plan: SessionPlan, records: &[Record<'_>]) {
    let mut fold = RunFold::new(plan);
    for record in records {
        fold.fold(record);
    }
    let result = fold.result(&Limits::default());
    assert!(!render(&result).is_empty());
    serde_json::to_string(&result).expect("a result is JSON");
}

/// A session of three phases.
fn plan() -> SessionPlan {
    let phase = |name: &str, kind: &str, pattern: &str| {
        serde_json::json!({"name": name, "type": kind, "pattern": pattern, "rate": null,
            "target_concurrency": null, "requests": 4, "stream": true})
    };
    let plan = serde_json::json!({
        "session_id": "0123456789abcdef0123456789abcdef", "takt": "0.1.0",
        "started_at": "2026-01-01T00:00:00Z", "config": {"seed": 42}, "host": null,
        "phases": [phase("warmup", "warmup", "concurrency"),
            phase("performance", "performance", "poisson"), phase("burst", "performance", "max_throughput")],
    });
    serde_json::from_value(plan).expect("a plan")
}
