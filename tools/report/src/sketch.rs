//! A small mergeable histogram for the bins of a time line: 32 steps to an octave, so a value comes
//! back within 1.6 %. It holds counts only between its least and greatest step; a second of ordinary
//! latencies takes some hundred bytes.

/// Counts of values by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sketch {
    first: u16,
    counts: Vec<u32>,
}

impl Sketch {
    /// Takes a value in.
    pub fn record(&mut self, value: u64) {
        self.add(step_of(value), 1);
    }

    /// Adds all values of another sketch.
    pub fn merge(&mut self, other: &Self) {
        for (step, &count) in (other.first..).zip(&other.counts) {
            if count > 0 {
                self.add(step, count);
            }
        }
    }

    /// The middle of the step at the nearest rank of `percent`; `None` of nothing.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let total: u64 = self.counts.iter().map(|&count| u64::from(count)).sum();
        let rank = (total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        (self.first..).zip(&self.counts).find_map(|(step, &count)| {
            seen += u64::from(count);
            (seen >= rank).then(|| middle_of(step))
        })
    }

    fn add(&mut self, step: u16, count: u32) {
        if self.counts.is_empty() {
            self.first = step;
        }
        if step < self.first {
            let missing = usize::from(self.first - step);
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = step;
        }
        let place = usize::from(step - self.first);
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] = self.counts[place].saturating_add(count);
    }
}

/// Values below 64 are steps of their own; above, the five bits after the leading one count.
fn step_of(value: u64) -> u16 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    (shift << BITS) as u16 + (value >> shift) as u16
}

fn middle_of(step: u16) -> u64 {
    let shift = u32::from(step >> BITS).saturating_sub(1);
    let head = u64::from(step) - (u64::from(shift) << BITS);
    (head << shift) + ((1 << shift) >> 1)
}

/// Bits of a value that are kept below its leading one.
const BITS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_within_a_sixty_fourth() {
        for value in (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) + (1 << bit) / 3]) {
            let back = middle_of(step_of(value));
            assert!(back.abs_diff(value) <= value / 64, "{value} came back as {back}");
        }
        for value in 0..64 {
            assert_eq!(middle_of(step_of(value)), value);
        }
    }

    #[test]
    fn merging_equals_recording_in_any_order() {
        let values = [9_000, 3, 700_000, 9_100, 40, 41, 8_000_000_000];
        let record = |values: &[u64]| {
            let mut sketch = Sketch::default();
            values.iter().for_each(|&value| sketch.record(value));
            sketch
        };
        let mut left = record(&values[..3]);
        left.merge(&record(&values[3..]));
        let mut backwards = values;
        backwards.reverse();
        assert_eq!(left, record(&values));
        assert_eq!(left, record(&backwards));
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut sketch = Sketch::default();
        assert_eq!(sketch.percentile(50), None);
        (1..=60).for_each(|value| sketch.record(value));
        // 60 * 0.5 = 30, 60 * 0.99 = 59.4 -> 60.
        assert_eq!((sketch.percentile(50), sketch.percentile(99)), (Some(30), Some(60)));
    }
}
