//! A few failures in the server's own words.

use takt_record::{ErrorKind, ErrorSample, Failure};

/// The first distinct (kind, status, message), with counts.
///
/// At most [`MAX_SAMPLES`], and beyond them one more for each kind that has none yet: a flood of one
/// kind hides no other. Failures past that are in the counts by kind alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorSamples {
    samples: Vec<ErrorSample>,
}

impl ErrorSamples {
    /// Takes a failure in.
    pub(crate) fn record(&mut self, failure: &Failure, message: &str) {
        self.add(failure.kind, failure.status, cut(message), 1);
    }

    /// Adds the samples of another fold of the same phase.
    pub(crate) fn merge(&mut self, other: &Self) {
        for sample in &other.samples {
            self.add(sample.kind, sample.status, &sample.message, sample.count);
        }
    }

    /// The samples, most frequent first.
    pub(crate) fn sorted(&self) -> Vec<ErrorSample> {
        let mut samples = self.samples.clone();
        samples.sort_by(|a, b| {
            let key = |s: &ErrorSample| (std::cmp::Reverse(s.count), s.kind, s.status);
            key(a).cmp(&key(b)).then_with(|| a.message.cmp(&b.message))
        });
        samples
    }

    fn add(&mut self, kind: ErrorKind, status: Option<u16>, message: &str, count: u64) {
        let same =
            |s: &&mut ErrorSample| s.kind == kind && s.status == status && s.message == message;
        if let Some(sample) = self.samples.iter_mut().find(same) {
            sample.count += count;
        } else if self.samples.len() < MAX_SAMPLES || self.samples.iter().all(|s| s.kind != kind) {
            self.samples.push(ErrorSample { kind, status, message: message.to_owned(), count });
        }
    }
}

/// The first [`MAX_MESSAGE`] bytes, whole characters only.
fn cut(message: &str) -> &str {
    &message[..message.floor_char_boundary(MAX_MESSAGE)]
}

const MAX_SAMPLES: usize = 10;
const MAX_MESSAGE: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;
    use takt_record::{Blame, Stage};

    fn failure(kind: ErrorKind) -> Failure {
        Failure { kind, blame: Blame::Server, stage: Stage::Head, status: Some(503) }
    }

    #[test]
    fn equal_failures_are_counted_and_a_flood_hides_no_other_kind() {
        let mut samples = ErrorSamples::default();
        for i in 0..1_000 {
            samples.record(&failure(ErrorKind::HttpStatus), &format!("busy {}", i % 100));
        }
        samples.record(&failure(ErrorKind::Reset), "gone");
        samples.record(&failure(ErrorKind::Reset), "gone again");
        let sorted = samples.sorted();
        assert_eq!(sorted.len(), MAX_SAMPLES + 1);
        assert!(sorted[..MAX_SAMPLES].iter().all(|s| s.count == 10));
        assert_eq!((sorted[MAX_SAMPLES].kind, sorted[MAX_SAMPLES].count), (ErrorKind::Reset, 1));
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let mut samples = ErrorSamples::default();
        samples.record(&failure(ErrorKind::ApiError), &format!("x{}", "\u{e9}".repeat(400)));
        // 1 + 2 n bytes: 399 is the greatest odd number up to 400.
        assert_eq!(samples.sorted()[0].message.len(), 399);
    }
}
