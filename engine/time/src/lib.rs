//! Time as takt speaks of it: [`Nanos`] is an instant, [`Span`] a duration, [`Anchor`] ties the
//! monotonic clock of one process to the wall clock.
//!
//! All instants of a run come from one monotonic clock (`CLOCK_MONOTONIC` on a real host, the virtual
//! clock in the simulation), so any two may be subtracted. Nothing here reads a clock.
//!
//! ```
//! use takt_time::{Nanos, Span};
//! let start = Nanos::from_nanos(1_000);
//! let due = start + Span::from_micros(5);
//! assert_eq!(due - start, Span::from_nanos(5_000));
//! assert_eq!(start.saturating_since(due), Span::ZERO);
//! ```
#![forbid(unsafe_code)]

mod text;

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign, Sub};

pub use text::SpanError;

/// An instant of the run's monotonic clock, in nanoseconds since that clock's own origin.
///
/// Held as one more than its count, so that an `Option` of it is no larger: what is known of a request is mostly
/// such options, and it is moved several times.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(NonZeroU64);

/// A duration in nanoseconds; never negative. Held as [`Nanos`] is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(NonZeroU64);

/// One paired reading of the monotonic and of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Anchor {
    /// Monotonic reading.
    pub mono: Nanos,
    /// Wall clock at the same moment, nanoseconds since the Unix epoch.
    pub wall_ns: u64,
}

impl Nanos {
    /// The clock's origin.
    pub const ZERO: Self = Self(NonZeroU64::MIN);
    /// Later than any instant that occurs: "never". `2^64 - 2` nanoseconds.
    pub const MAX: Self = Self(NonZeroU64::MAX);

    /// An instant from a count of nanoseconds; one beyond [`Nanos::MAX`] is that.
    #[must_use]
    #[inline]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(ns))
    }

    /// Nanoseconds since the clock's origin.
    #[must_use]
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// `self - earlier`, or zero when `earlier` is the later one.
    #[must_use]
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> Span {
        Span::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }

    /// `self - earlier`, or `None` when `earlier` is the later one.
    #[must_use]
    #[inline]
    pub fn checked_since(self, earlier: Self) -> Option<Span> {
        self.0.get().checked_sub(earlier.0.get()).map(Span::from_nanos)
    }

    /// `self - span`, not below the clock's origin.
    #[must_use]
    #[inline]
    pub const fn saturating_sub(self, span: Span) -> Self {
        Self::from_nanos(self.as_nanos().saturating_sub(span.as_nanos()))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(NonZeroU64::MIN);
    /// The longest span: `2^64 - 2` nanoseconds.
    pub const MAX: Self = Self(NonZeroU64::MAX);

    /// A span of `ns` nanoseconds; one beyond [`Span::MAX`] is that.
    #[must_use]
    #[inline]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(ns))
    }

    /// A span of `us` microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self::from_nanos(us.saturating_mul(1_000))
    }

    /// A span of `ms` milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self::from_nanos(ms.saturating_mul(1_000_000))
    }

    /// A span of `s` seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self::from_nanos(s.saturating_mul(1_000_000_000))
    }

    /// The nearest span to `s` seconds; negative and NaN give zero, what is too long gives [`Span::MAX`].
    #[must_use]
    pub fn from_secs_f64(s: f64) -> Self {
        // A float-to-integer cast saturates and turns NaN into 0.
        Self::from_nanos((s * 1e9).round() as u64)
    }

    /// Nanoseconds.
    #[must_use]
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Seconds, rounded to what an `f64` holds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.as_nanos() as f64 / 1e9
    }

    /// Milliseconds, rounded to what an `f64` holds.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.as_nanos() as f64 / 1e6
    }

    /// Microseconds, rounded to what an `f64` holds.
    #[must_use]
    pub fn as_micros_f64(self) -> f64 {
        self.as_nanos() as f64 / 1e3
    }
}

impl Anchor {
    /// Wall-clock nanoseconds since the Unix epoch of the instant `at`, going by this reading.
    #[must_use]
    pub fn wall_ns(&self, at: Nanos) -> u64 {
        if at >= self.mono {
            self.wall_ns.saturating_add((at - self.mono).as_nanos())
        } else {
            self.wall_ns.saturating_sub((self.mono - at).as_nanos())
        }
    }
}

impl Default for Nanos {
    /// The clock's origin.
    fn default() -> Self {
        Self::ZERO
    }
}

impl Default for Span {
    /// No time at all.
    fn default() -> Self {
        Self::ZERO
    }
}

impl Add<Span> for Nanos {
    type Output = Self;
    /// Saturates: an instant past the end of the clock is [`Nanos::MAX`], never a small one.
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.as_nanos()))
    }
}

impl AddAssign<Span> for Nanos {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub for Nanos {
    type Output = Span;
    /// A debug build asserts that `earlier` is not later; a release build gives zero.
    fn sub(self, earlier: Self) -> Span {
        debug_assert!(self >= earlier, "{self:?} - {earlier:?}: the second instant is later");
        self.saturating_since(earlier)
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.as_nanos()))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Debug for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::MAX { f.write_str("never") } else { write!(f, "@{}ns", self.as_nanos()) }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Span {
    /// In the largest unit that keeps the number at one or more: `1.5ms`, `12us`, `3s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.as_nanos();
        let (unit, size) = match ns {
            0..1_000 => return write!(f, "{ns}ns"),
            1_000..1_000_000 => ("us", 1e3),
            1_000_000..1_000_000_000 => ("ms", 1e6),
            _ => ("s", 1e9),
        };
        let value = format!("{:.3}", ns as f64 / size);
        write!(f, "{}{unit}", value.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate_and_never_wrap() {
        assert_eq!(Nanos::MAX + Span::from_secs(1), Nanos::MAX);
        assert_eq!(Span::from_secs(u64::MAX), Span::MAX);
        assert_eq!(Nanos::from_nanos(5).saturating_since(Nanos::from_nanos(9)), Span::ZERO);
        assert_eq!(Nanos::from_nanos(5).checked_since(Nanos::from_nanos(9)), None);
    }

    #[test]
    fn instants_and_spans_take_no_more_room_when_they_may_be_absent() {
        assert_eq!(size_of::<Option<Nanos>>(), size_of::<u64>());
        assert_eq!(size_of::<Option<Span>>(), size_of::<u64>());
        for ns in [0, 1, 1 << 63, u64::MAX - 1] {
            assert_eq!(Nanos::from_nanos(ns).as_nanos(), ns);
            assert_eq!(Span::from_nanos(ns).as_nanos(), ns);
        }
        assert_eq!(Nanos::from_nanos(u64::MAX), Nanos::MAX);
        assert_eq!(Span::from_nanos(u64::MAX), Span::MAX);
        assert!(Nanos::default() == Nanos::ZERO && Nanos::ZERO < Nanos::from_nanos(1));
        assert!(Span::default() == Span::ZERO && Span::ZERO < Span::from_nanos(1));
    }

    #[test]
    fn seconds_as_floats_round_to_the_nearest_nanosecond() {
        for (seconds, ns) in [(0.0, 0), (1e-9, 1), (0.1, 100_000_000), (-3.0, 0), (f64::NAN, 0)] {
            assert_eq!(Span::from_secs_f64(seconds).as_nanos(), ns, "{seconds}");
        }
        assert_eq!(Span::from_secs_f64(f64::INFINITY), Span::MAX);
    }

    #[test]
    fn spans_print_in_the_largest_fitting_unit() {
        for (ns, text) in
            [(7, "7ns"), (1_500, "1.5us"), (2_000_000, "2ms"), (90_000_000_000, "90s")]
        {
            assert_eq!(Span::from_nanos(ns).to_string(), text);
        }
    }

    #[test]
    fn an_anchor_reaches_both_ways() {
        let a = Anchor { mono: Nanos::from_nanos(1_000), wall_ns: 5_000 };
        assert_eq!(a.wall_ns(Nanos::from_nanos(1_250)), 5_250);
        assert_eq!(a.wall_ns(Nanos::from_nanos(400)), 4_400);
    }
}
