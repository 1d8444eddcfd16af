//! Steps of a trace to step records.
//!
//! Both are in order, so a match is a common subsequence: marks and records in turn, each pair equal in
//! all four counts and, where the trace has wall time, the mark within the record's submit and complete.
//! Without wall time the counts alone must fit at one place only; at several, nothing is matched.

use crate::steps::StepFacts;
use crate::trace::Composition;

/// A mark as it is looked for: its wall time if there is one, and its counts.
pub(super) type Sought = (Option<u64>, Composition);

/// For each mark the place of its record. Records must be in order, and of one scheduler.
pub(super) fn align(
    marks: &[Sought],
    records: &[StepFacts],
    clock_error_ns: u64,
) -> Vec<Option<usize>> {
    if marks.iter().all(|(wall, _)| wall.is_some()) {
        by_time(marks, records, clock_error_ns)
    } else {
        by_order(marks, records)
    }
}

fn by_time(marks: &[Sought], records: &[StepFacts], clock_error_ns: u64) -> Vec<Option<usize>> {
    let mut from = 0;
    let matched = marks.iter().map(|&(wall, composition)| {
        let wall = wall.unwrap_or(0);
        let fits = |record: &StepFacts| {
            record.executed
                && record.composition == composition
                && record.submit_wall_ns <= wall.saturating_add(clock_error_ns)
                && wall <= record.complete_wall_ns().saturating_add(clock_error_ns)
        };
        // Spans of steps may overlap, yet no record that begins after the mark can be its own.
        let end =
            records.partition_point(|r| r.submit_wall_ns <= wall.saturating_add(clock_error_ns));
        let found = (from..end.max(from)).find(|&at| fits(&records[at]))?;
        from = found + 1;
        Some(found)
    });
    matched.collect()
}

fn by_order(marks: &[Sought], records: &[StepFacts]) -> Vec<Option<usize>> {
    let executed: Vec<usize> = (0..records.len()).filter(|&at| records[at].executed).collect();
    let fits = |from: usize| {
        let of = executed[from..].iter();
        marks.iter().zip(of).all(|(&(_, sought), &at)| records[at].composition == sought)
    };
    let places = (executed.len() + 1).saturating_sub(marks.len());
    let mut found = (0..places).filter(|&from| fits(from));
    match (found.next(), found.next()) {
        (Some(from), None) => (0..marks.len()).map(|at| Some(executed[from + at])).collect(),
        _ => vec![None; marks.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::facts;

    fn sought(at_ns: u64, prefill: u64, decode: u64) -> Sought {
        (Some(at_ns), facts(0, 0, 0, prefill, decode).composition)
    }

    #[test]
    fn equal_steps_are_told_apart_by_time_and_near_ones_by_counts() {
        // Three steps alike, and one in between that differs, spans that overlap as asynchronous ones do.
        let records = [
            facts(0, 1_000, 1_500, 0, 4),
            facts(1, 1_400, 2_000, 0, 4),
            facts(2, 1_900, 2_500, 64, 4),
            facts(3, 2_400, 3_000, 0, 4),
        ];
        let marks = [sought(1_450, 0, 4), sought(1_950, 64, 4), sought(2_450, 0, 4)];
        assert_eq!(align(&marks, &records, 0), [Some(0), Some(2), Some(3)]);
        let later = [sought(1_600, 0, 4), sought(1_950, 64, 4)];
        assert_eq!(align(&later, &records, 0), [Some(1), Some(2)]);
        let strange = [sought(1_600, 1, 4), sought(9_000, 0, 4), sought(2_450, 0, 4)];
        assert_eq!(align(&strange, &records, 0), [None, None, Some(3)]);
        let early = [sought(990, 0, 4)];
        assert_eq!(align(&early, &records, 0), [None]);
        assert_eq!(align(&early, &records, 10), [Some(0)]);
    }

    #[test]
    fn without_wall_time_the_one_place_that_fits_is_taken() {
        let counts = [(0, 4), (0, 4), (64, 4), (0, 4), (0, 5)];
        let records: Vec<StepFacts> =
            (0_u64..).zip(counts).map(|(at, (p, d))| facts(at, at, at + 1, p, d)).collect();
        let marks = |counts: &[(u64, u64)]| -> Vec<Sought> {
            counts.iter().map(|&(p, d)| (None, sought(0, p, d).1)).collect()
        };
        assert_eq!(align(&marks(&[(0, 4), (64, 4)]), &records, 0), [Some(1), Some(2)]);
        assert_eq!(align(&marks(&[(0, 4)]), &records, 0), [None], "three places fit");
        assert_eq!(align(&marks(&[(9, 9)]), &records, 0), [None]);
        assert_eq!(align(&marks(&[(0, 4); 9]), &records, 0), [None; 9]);
    }
}
