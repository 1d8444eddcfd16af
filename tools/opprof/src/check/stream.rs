//! What must hold from one record to the next, and at the end of all.

use takt_record::{STEP_SCHEMA, StepFooter, StepRecord};

use super::Report;
use super::rules::equal;

/// How far a stream of records has come: enough to go on in its next file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamEnd {
    /// The scheduler; empty before the first record.
    pub engine_id: String,
    /// Records of the stream.
    pub records: u64,
    /// Records lost by its own account.
    pub dropped: u64,
    /// The footer of the latest file was there.
    pub ended: bool,
    /// The index that the next step has, when nothing is lost.
    next_index: u64,
    submit_mono_ns: u64,
}

impl StreamEnd {
    /// Whether a file that begins with this step goes on with this stream; a step 0 begins another one.
    #[must_use]
    pub(super) fn goes_on_with(&self, record: &StepRecord<'_>) -> bool {
        record.engine_id == self.engine_id && record.step_index != record.dropped_records_before
    }

    /// The same at the beginning of another file.
    pub(super) fn in_the_next_file(self) -> Self {
        Self { ended: false, ..self }
    }

    /// What was before the first record is not asked for.
    pub(super) fn may_begin_at(&mut self, record: &StepRecord<'_>) {
        if self.records == 0 {
            self.next_index = record.step_index.saturating_sub(record.dropped_records_before);
        }
    }

    /// Takes the next record in.
    pub(super) fn record(&mut self, r: &StepRecord<'_>, report: &mut Report<'_>) {
        if self.records == 0 {
            self.engine_id = r.engine_id.clone().into_owned();
        } else if r.engine_id != self.engine_id {
            report("engine_id", r.engine_id.clone().into_owned(), one_engine(&self.engine_id));
        }
        if self.ended {
            report("line", "a record after the footer".into(), "the end of the file".into());
        }
        let dropped = r.dropped_records_before;
        let index = self.next_index.saturating_add(dropped);
        if r.step_index != index {
            let after = match self.next_index.checked_sub(1) {
                Some(last) => format!("step {last}"),
                None => "the start, where the files before are missing".to_owned(),
            };
            let why = format!("{index} (after {after}, {dropped} dropped)");
            report("step_index", r.step_index.to_string(), why);
        }
        if r.submit_mono_ns < self.submit_mono_ns {
            let least = format!("at least {}, that of the step before", self.submit_mono_ns);
            report("submit_mono_ns", r.submit_mono_ns.to_string(), least);
        }
        self.records += 1;
        self.dropped = self.dropped.saturating_add(dropped);
        self.next_index = r.step_index.saturating_add(1);
        self.submit_mono_ns = r.submit_mono_ns;
    }

    /// Takes the end of a file in, which has so many records that tell of so many dropped ones. A footer
    /// speaks of its own file alone: a stream may have several.
    pub(super) fn footer(
        &mut self,
        footer: &StepFooter<'_>,
        records: u64,
        dropped: u64,
        report: &mut Report<'_>,
    ) {
        if self.ended {
            report("line", "a second footer".into(), "the end of the file".into());
        }
        self.ended = true;
        equal("schema", footer.schema, STEP_SCHEMA, "the version this program reads", report);
        if !footer.footer {
            report("footer", "false".into(), "true".into());
        }
        if self.records > 0 && footer.engine_id != self.engine_id {
            let found = footer.engine_id.clone().into_owned();
            report("engine_id", found, one_engine(&self.engine_id));
        }
        equal("written", footer.written, records, "records in the file", report);
        let both = footer.written.saturating_add(footer.dropped);
        equal("encoded", footer.encoded, both, "written + dropped", report);
        if footer.dropped < dropped {
            let least = format!("at least {dropped}, what the records report");
            report("dropped", footer.dropped.to_string(), least);
        }
    }
}

fn one_engine(id: &str) -> String {
    format!("{id}, as before: one stream, one scheduler")
}
