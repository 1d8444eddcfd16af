//! What a tokenizer of ours counted, beside what servers state.
//!
//! The token that ends an answer has no text, and some servers count it: a difference of one is none.

use takt_record::TokensCounted;

/// Sums over the successes of a phase.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    sums: TokensCounted,
    /// Tokens of ours of the requests that were compared.
    compared_total: u64,
}

impl Counted {
    /// One success: the server's count, and ours.
    pub(crate) fn add(&mut self, stated: Option<u32>, counted: Option<u32>) {
        let Some(counted) = counted.map(u64::from) else {
            self.sums.uncounted += 1;
            return;
        };
        self.sums.requests += 1;
        self.sums.output_total += counted;
        if let Some(stated) = stated.map(u64::from) {
            self.sums.compared += 1;
            self.sums.stated_total += stated;
            self.compared_total += counted;
            let off = counted.abs_diff(stated);
            self.sums.disagreeing += u64::from(off > 1 && off * 50 > stated);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        let (mine, theirs) = (&mut self.sums, &other.sums);
        mine.requests += theirs.requests;
        mine.uncounted += theirs.uncounted;
        mine.output_total += theirs.output_total;
        mine.compared += theirs.compared;
        mine.stated_total += theirs.stated_total;
        mine.disagreeing += theirs.disagreeing;
        self.compared_total += other.compared_total;
    }

    /// Absent when there was no tokenizer.
    pub(crate) fn result(&self) -> Option<TokensCounted> {
        (self.sums.requests + self.sums.uncounted > 0).then_some(self.sums)
    }

    /// By how many percent our counts are above the server's, of the requests that have both.
    pub(crate) fn percent_above(&self) -> f64 {
        let stated = self.sums.stated_total.max(1) as f64;
        (self.compared_total as f64 - self.sums.stated_total as f64) / stated * 100.0
    }
}
