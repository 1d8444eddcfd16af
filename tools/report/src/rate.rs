//! Rates that mean something, or none.

use takt_time::Span;

/// `amount` a second, where `events` events within `window` stand behind it.
///
/// `None` when nothing happened, when the window is under [`MIN_WINDOW`], or when it is under a second
/// with fewer than [`MIN_EVENTS`] events: two sends 15 ms apart are not 133 a second.
pub(crate) fn per_second(amount: u64, events: u64, window: Span) -> Option<f64> {
    let enough = events >= MIN_EVENTS || (events > 0 && window >= Span::from_secs(1));
    (enough && window >= MIN_WINDOW).then(|| amount as f64 / window.as_secs_f64())
}

const MIN_WINDOW: Span = Span::from_millis(10);
const MIN_EVENTS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_absent_rather_than_absurd() {
        let ms = Span::from_millis;
        assert_eq!(per_second(2, 2, ms(15)), None);
        assert_eq!(per_second(1_000, 1_000, ms(9)), None);
        assert_eq!(per_second(0, 0, ms(60_000)), None);
        assert_eq!(per_second(3, 3, ms(10_000)), Some(0.3));
        assert_eq!(per_second(10, 10, ms(100)), Some(100.0));
    }
}
