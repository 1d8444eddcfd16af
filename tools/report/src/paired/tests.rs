use super::*;

fn pairs(first: &[f64], second: &[f64]) -> Vec<Pair> {
    let pair = |&difference: &f64, base_first| Pair { difference, base_first };
    let first = first.iter().map(|d| pair(d, true));
    first.chain(second.iter().map(|d| pair(d, false))).collect()
}

#[track_caller]
fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn the_order_effect_does_not_enter_the_effect() {
    // Means 3 and 1: tau = 2, pi = 1. Squares 2 + 2 over 4 degrees: variance 1, error 0.5 * sqrt(2/3).
    let found = balanced(&pairs(&[2.0, 3.0, 4.0], &[0.0, 1.0, 2.0])).unwrap();
    close(found.effect.effect, 2.0);
    close(found.order.effect, 1.0);
    assert_eq!(found.effect.df, 4);
    close(found.effect.error, 0.5 * (2.0_f64 / 3.0).sqrt());
    // t(0.975, 4) = 2.776 of the printed table.
    assert!((found.effect.high - (2.0 + 2.776 * found.effect.error)).abs() < 1e-3);
    let shifted = balanced(&pairs(&[12.0, 13.0, 14.0], &[-10.0, -9.0, -8.0])).unwrap();
    assert_eq!(shifted.effect, found.effect, "the same but for an order effect of 11");
    assert!(shifted.order.is_clear() && !found.order.effect.is_nan());
}

#[test]
fn without_spread_or_without_both_orders_there_is_no_estimate() {
    assert_eq!(balanced(&pairs(&[1.0; 3], &[1.0; 3])), None);
    assert_eq!(balanced(&pairs(&[1.0, 2.0, 3.0], &[1.0])), None);
    assert_eq!(plain(&[2.0; 4]), None);
    assert_eq!(plain(&[2.0]), None);
    assert!(bootstrap(&[1.0; 6], 0).is_none() && bootstrap(&[1.0, 2.0], 0).is_none());
}

#[test]
fn the_plain_t_is_that_of_a_textbook() {
    // Student 1908, the ten differences in hours of sleep: mean 1.58, sd 1.23, t = 4.0621, df 9.
    let sleep = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
    let found = plain(&sleep).unwrap();
    close(found.effect, 1.58);
    assert!((found.effect / found.error - 4.0621).abs() < 1e-4);
    assert!((found.low - 0.700_114).abs() < 1e-5 && (found.high - 2.459_886).abs() < 1e-5);
}

#[test]
fn welch_needs_no_equal_spread() {
    // Variances 1 and 4 of four values each: error sqrt(5 / 4), df (5/4)^2 / ((1/16 + 16/16) / 3) = 4.41.
    let found = welch(
        &[-1.0, -1.0, 1.0, 1.0].map(|x| x * 0.75_f64.sqrt()),
        &[
            10.0 - 3.0_f64.sqrt(),
            10.0 - 3.0_f64.sqrt(),
            10.0 + 3.0_f64.sqrt(),
            10.0 + 3.0_f64.sqrt(),
        ],
    )
    .unwrap();
    close(found.effect, 10.0);
    close(found.error, 1.25_f64.sqrt());
    assert_eq!(found.df, 4);
    assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
    assert_eq!(welch(&[1.0, 1.0], &[2.0, 2.0]), None);
}

#[test]
fn a_slope_is_found_with_its_error() {
    let found = slope(&[1.0, 2.0, 3.0, 4.5]).unwrap();
    // Least squares over 0..3: slope = (-1.5*1 - 0.5*2 + 0.5*3 + 1.5*4.5) / 5 = 1.15.
    close(found.effect, 1.15);
    assert!(found.is_clear());
    assert_eq!(slope(&[1.0, 1.0, 1.0]), None);
    assert_eq!(slope(&[1.0, 2.0]), None);
}

#[test]
fn the_pairs_that_would_decide_grow_with_the_nearness_of_the_limit() {
    let found = balanced(&pairs(&[2.0, 3.0, 4.0], &[0.0, 1.0, 2.0])).unwrap().effect;
    let near = found.pairs_to_decide(6, 2.2).unwrap();
    let far = found.pairs_to_decide(6, 4.0).unwrap();
    assert!(near > far && near.is_multiple_of(2) && far == 6, "{near} {far}");
    // By hand at n = 200: (t975 + t80)(df 198) = 1.9720 + 0.8434; spread 1 / sqrt(200) = 0.0707.
    assert!((190..=204).contains(&near), "{near}");
    assert_eq!(found.pairs_to_decide(6, 2.000_001), None);
}

#[test]
fn all_resamples_of_six_and_drawn_ones_of_more_agree_with_student_on_even_data() {
    let even = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5];
    let six = bootstrap(&even, 1).unwrap();
    assert_eq!(six.resamples, Resamples::All(46_656));
    // Symmetric data: symmetric intervals around the mean, and no bias or acceleration.
    close(six.bca.0 + six.bca.1, 0.0);
    close(six.studentised.0 + six.studentised.1, 0.0);
    assert!(six.studentised.1 > six.bca.1, "the percentile kind is too narrow with few values");
    let many: Vec<f64> = (0..200).map(|at| f64::from(at) - 99.5).collect();
    let drawn = bootstrap(&many, 1).unwrap();
    let student = plain(&many).unwrap();
    assert!((drawn.studentised.1 / student.high - 1.0).abs() < 0.05);
    assert!((drawn.bca.1 / student.high - 1.0).abs() < 0.05);
    assert_eq!(bootstrap(&many, 1), Some(drawn), "a seed gives the same again");
}

#[test]
fn a_skewed_sample_is_seen_by_the_bootstrap() {
    let skewed = [0.0, 0.1, 0.2, 0.3, 0.4, 5.0];
    let found = bootstrap(&skewed, 0).unwrap();
    let (low, high) = found.studentised;
    assert!(high - 1.0 > 1.0 - low, "{low} {high}: the long tail is above");
}
