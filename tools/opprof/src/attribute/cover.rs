//! Time covered by intervals of several families.
//!
//! Kernels overlap, so their lengths must not be added to get time that passed. A sweep over their ends
//! gives how long each *set* of families was at work together; every other figure follows from that:
//! the union of a family is the sum over the sets that have it, and inclusion and exclusion over the
//! families must give the union of all, which is also found on another way.

use crate::families::FamilyId;

/// Time covered, as far as it can be split.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cover {
    /// Length of the union of all intervals.
    pub union_ns: u64,
    /// Sum of all lengths: work, not time.
    pub sum_ns: u64,
    /// From the first start to the last end.
    pub extent_ns: u64,
    /// Intervals.
    pub count: u64,
    /// Each family that has an interval, in order of ids.
    pub families: Vec<FamilyCover>,
    /// How long each set of families was at work, none other with it; bit `n` is family `n`.
    pub sets: Vec<(u64, u64)>,
}

/// One family's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyCover {
    /// Which.
    pub family: FamilyId,
    /// Length of the union of its intervals.
    pub union_ns: u64,
    /// Sum of their lengths.
    pub sum_ns: u64,
    /// How many.
    pub count: u64,
}

/// An interval of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) family: FamilyId,
}

impl Cover {
    /// Of these intervals, in any order.
    pub(super) fn of(intervals: &[Interval]) -> Self {
        let mut sorted = intervals.to_vec();
        sorted.sort_by_key(|i| (i.start_ns, i.end_ns));
        let first = sorted.first().map_or(0, |i| i.start_ns);
        let last = sorted.iter().map(|i| i.end_ns).max().unwrap_or(0);
        let sets = sets(&sorted);
        let ids = |id: u8| sorted.iter().filter(move |i| i.family == FamilyId(id));
        let families = (0..64).filter_map(|id| {
            let count = ids(id).count() as u64;
            (count > 0).then(|| FamilyCover {
                family: FamilyId(id),
                union_ns: sets.iter().filter(|(set, _)| set >> id & 1 == 1).map(|(_, ns)| ns).sum(),
                sum_ns: ids(id).map(|i| i.end_ns - i.start_ns).sum(),
                count,
            })
        });
        Self {
            union_ns: union(&sorted),
            sum_ns: sorted.iter().map(|i| i.end_ns - i.start_ns).sum(),
            extent_ns: last - first,
            count: sorted.len() as u64,
            families: families.collect(),
            sets,
        }
    }

    /// Nothing at work between the first start and the last end.
    #[must_use]
    pub fn idle_ns(&self) -> u64 {
        self.extent_ns - self.union_ns
    }

    /// What the families' unions have too much: time in which several were at work.
    #[must_use]
    pub fn overlap_ns(&self) -> u64 {
        self.families.iter().map(|f| f.union_ns).sum::<u64>().saturating_sub(self.union_ns)
    }

    /// How long two families were at work together.
    #[must_use]
    pub fn together_ns(&self, a: FamilyId, b: FamilyId) -> u64 {
        let both = 1_u64 << a.0 | 1 << b.0;
        self.sets.iter().filter(|(set, _)| set & both == both).map(|(_, ns)| ns).sum()
    }

    /// The union by inclusion and exclusion: single families, less pairs, plus triples, …
    #[must_use]
    pub fn inclusion_exclusion_ns(&self) -> i128 {
        let depth = self.sets.iter().map(|(set, _)| set.count_ones()).max().unwrap_or(0);
        (1..=depth).fold(0, |union, k| {
            let of_k: i128 = self
                .sets
                .iter()
                .map(|(set, ns)| binomial(set.count_ones(), k) * i128::from(*ns))
                .sum();
            if k % 2 == 1 { union + of_k } else { union - of_k }
        })
    }
}

/// Merges intervals sorted by their starts.
fn union(sorted: &[Interval]) -> u64 {
    let (mut total, mut end) = (0, 0);
    for interval in sorted {
        let from = interval.start_ns.max(end);
        total += interval.end_ns.saturating_sub(from);
        end = end.max(interval.end_ns);
    }
    total
}

fn sets(intervals: &[Interval]) -> Vec<(u64, u64)> {
    let mut ends: Vec<(u64, bool, u8)> = intervals
        .iter()
        .flat_map(|i| [(i.start_ns, true, i.family.0), (i.end_ns, false, i.family.0)])
        .collect();
    ends.sort_unstable();
    let mut open = [0_u32; 64];
    let mut set = 0_u64;
    let mut since = 0;
    let mut found: Vec<(u64, u64)> = Vec::new();
    for (at, starts, family) in ends {
        if set != 0 && at > since {
            match found.iter_mut().find(|(other, _)| *other == set) {
                Some((_, ns)) => *ns += at - since,
                None => found.push((set, at - since)),
            }
        }
        since = at;
        let open = &mut open[usize::from(family)];
        // An interval without length ends before it starts in the order of a sweep.
        *open = if starts { open.wrapping_add(1) } else { open.wrapping_sub(1) };
        let bit = 1 << family;
        set = if *open > 0 && *open < u32::MAX / 2 { set | bit } else { set & !bit };
    }
    found.sort_unstable();
    found
}

fn binomial(n: u32, k: u32) -> i128 {
    (0..k).fold(1, |product, at| product * i128::from(n - at.min(n)) / i128::from(at + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn interval(start_ns: u64, end_ns: u64, family: u8) -> Interval {
        Interval { start_ns, end_ns, family: FamilyId(family) }
    }

    #[test]
    fn overlaps_are_counted_once() {
        // a: 0-10, b: 5-15, c: 8-9, a again: 20-30.
        let cover = Cover::of(&[
            interval(20, 30, 0),
            interval(0, 10, 0),
            interval(5, 15, 1),
            interval(8, 9, 2),
        ]);
        assert_eq!(
            (cover.union_ns, cover.sum_ns, cover.extent_ns, cover.idle_ns()),
            (25, 31, 30, 5)
        );
        let unions: Vec<u64> = cover.families.iter().map(|f| f.union_ns).collect();
        assert_eq!(unions, [20, 10, 1]);
        assert_eq!(cover.overlap_ns(), 6);
        assert_eq!(cover.together_ns(FamilyId(0), FamilyId(1)), 5);
        assert_eq!(cover.sets, [(0b001, 15), (0b010, 5), (0b011, 4), (0b111, 1)]);
        // 31 of single families, less 5 + 1 + 1 of pairs, plus 1 of all three.
        assert_eq!(cover.inclusion_exclusion_ns(), 25);
    }

    #[test]
    fn nothing_covers_nothing() {
        let cover = Cover::of(&[]);
        assert_eq!(cover, Cover::default());
        let point = Cover::of(&[interval(5, 5, 3)]);
        assert_eq!((point.union_ns, point.count, point.families.len()), (0, 1, 1));
    }

    proptest! {
        /// Against a table with a cell for each nanosecond.
        #[test]
        fn every_figure_is_that_of_a_count_by_hand(
            parts in prop::collection::vec((0_u64..60, 0_u64..20, 0_u8..5), 0..20)
        ) {
            let intervals: Vec<Interval> =
                parts.iter().map(|&(start, len, family)| interval(start, start + len, family)).collect();
            let cover = Cover::of(&intervals);
            let sets: Vec<u64> = (0..80)
                .map(|at| {
                    let on = intervals.iter().filter(|i| i.start_ns <= at && at < i.end_ns);
                    on.fold(0, |set, i| set | 1 << i.family.0)
                })
                .collect();
            let count = |keep: &dyn Fn(u64) -> bool| sets.iter().filter(|&&set| keep(set)).count() as u64;
            prop_assert_eq!(cover.union_ns, count(&|set| set != 0));
            prop_assert_eq!(cover.inclusion_exclusion_ns(), i128::from(cover.union_ns));
            for family in &cover.families {
                prop_assert_eq!(family.union_ns, count(&|set| set >> family.family.0 & 1 == 1));
            }
            for &(set, ns) in &cover.sets {
                prop_assert_eq!(ns, count(&|other| other == set));
            }
        }
    }
}
