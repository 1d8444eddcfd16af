//! Least squares with coefficients that are not negative (Lawson and Hanson's active set).
//!
//! A kernel cannot take less time because there is more to do, so no cost is negative. Columns are few,
//! rows may be many: the work is done on the normal equations, with columns scaled to length 1.

/// The coefficients `x >= 0` that bring `a x` nearest to `b`. `rows` are those of `a`; all have the
/// same length.
pub(super) fn nnls(rows: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let n = rows.first().map_or(0, Vec::len);
    let scale: Vec<f64> = (0..n)
        .map(|j| rows.iter().map(|row| row[j] * row[j]).sum::<f64>().sqrt())
        .map(|length| if length > 0.0 { length } else { 1.0 })
        .collect();
    let gram = |i: usize, j: usize| {
        rows.iter().map(|row| row[i] * row[j]).sum::<f64>() / (scale[i] * scale[j])
    };
    let gram: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| gram(i, j)).collect()).collect();
    let moment: Vec<f64> = (0..n)
        .map(|j| rows.iter().zip(b).map(|(row, b)| row[j] * b).sum::<f64>() / scale[j])
        .collect();
    let x = active_set(&gram, &moment);
    x.iter().zip(&scale).map(|(x, scale)| x / scale).collect()
}

fn active_set(gram: &[Vec<f64>], moment: &[f64]) -> Vec<f64> {
    let n = moment.len();
    let mut x = vec![0.0; n];
    let mut free = vec![false; n];
    let tolerance = 1e-10 * moment.iter().fold(0.0_f64, |most, m| most.max(m.abs()));
    // Each round frees a column for good or ends; the bound is for rounding's sake.
    for _ in 0..3 * n {
        let slope = |j: usize, x: &[f64]| {
            moment[j] - gram[j].iter().zip(x).map(|(g, x)| g * x).sum::<f64>()
        };
        let best = (0..n)
            .filter(|&j| !free[j])
            .map(|j| (j, slope(j, &x)))
            .filter(|(_, slope)| *slope > tolerance)
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((enters, _)) = best else { break };
        free[enters] = true;
        loop {
            let candidate = solve(gram, moment, &free);
            let step = (0..n)
                .filter(|&j| free[j] && candidate[j] <= 0.0)
                .map(|j| x[j] / (x[j] - candidate[j]))
                .fold(1.0_f64, f64::min);
            if step >= 1.0 && (0..n).all(|j| !free[j] || candidate[j] > 0.0) {
                x = candidate;
                break;
            }
            for j in 0..n {
                x[j] += step * (candidate[j] - x[j]);
                if free[j] && x[j] <= 1e-14 {
                    x[j] = 0.0;
                    free[j] = false;
                }
            }
            if free.iter().all(|free| !free) {
                break;
            }
        }
    }
    x
}

/// Solves for the free columns by Cholesky; the others stay 0. A ridge too small to see keeps columns
/// apart that are the same.
fn solve(gram: &[Vec<f64>], moment: &[f64], free: &[bool]) -> Vec<f64> {
    let columns: Vec<usize> = (0..free.len()).filter(|&j| free[j]).collect();
    let m = columns.len();
    let mut lower = vec![vec![0.0; m]; m];
    for i in 0..m {
        for j in 0..=i {
            let below: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            let value = gram[columns[i]][columns[j]] - below;
            lower[i][j] =
                if i == j { (value + 1e-12).max(1e-12).sqrt() } else { value / lower[j][j] };
        }
    }
    let mut y = vec![0.0; m];
    for i in 0..m {
        let before: f64 = (0..i).map(|k| lower[i][k] * y[k]).sum();
        y[i] = (moment[columns[i]] - before) / lower[i][i];
    }
    for i in (0..m).rev() {
        let after: f64 = (i + 1..m).map(|k| lower[k][i] * y[k]).sum();
        y[i] = (y[i] - after) / lower[i][i];
    }
    let mut x = vec![0.0; free.len()];
    for (&column, value) in columns.iter().zip(y) {
        x[column] = value;
    }
    x
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn exact_costs_are_found_and_a_useless_column_costs_nothing() {
        let rows: Vec<Vec<f64>> =
            (0..20).map(|i| vec![1.0, f64::from(i), f64::from(i * i % 7)]).collect();
        let b: Vec<f64> = rows.iter().map(|row| 50.0 + 3.0 * row[1]).collect();
        let x = nnls(&rows, &b);
        assert!(
            (x[0] - 50.0).abs() < 1e-6 && (x[1] - 3.0).abs() < 1e-7 && x[2].abs() < 1e-6,
            "{x:?}"
        );
    }

    #[test]
    fn a_cost_that_would_be_negative_is_none() {
        let rows: Vec<Vec<f64>> = (0..10).map(|i| vec![1.0, f64::from(i)]).collect();
        let b: Vec<f64> = rows.iter().map(|row| 100.0 - 2.0 * row[1]).collect();
        let x = nnls(&rows, &b);
        // Without the slope the best constant is the mean, 91.
        assert!((x[0] - 91.0).abs() < 1e-9 && x[1] == 0.0, "{x:?}");
    }

    #[test]
    fn columns_that_are_alike_do_no_harm() {
        let rows: Vec<Vec<f64>> = (1..10).map(|i| vec![f64::from(i), f64::from(i), 0.0]).collect();
        let b: Vec<f64> = (1..10).map(|i| 4.0 * f64::from(i)).collect();
        let x = nnls(&rows, &b);
        assert!((x[0] + x[1] - 4.0).abs() < 1e-6 && x[2] == 0.0, "{x:?}");
    }

    proptest! {
        /// At the solution no free direction goes down: the conditions of Karush, Kuhn and Tucker.
        #[test]
        fn no_other_choice_is_nearer(
            rows in prop::collection::vec(prop::collection::vec(0.0_f64..10.0, 4), 6..30),
            b in prop::collection::vec(-5.0_f64..50.0, 30),
        ) {
            let x = nnls(&rows, &b);
            let miss: Vec<f64> = rows
                .iter()
                .zip(&b)
                .map(|(row, b)| b - row.iter().zip(&x).map(|(a, x)| a * x).sum::<f64>())
                .collect();
            for j in 0..4 {
                let length: f64 = rows.iter().map(|row| row[j] * row[j]).sum::<f64>().sqrt().max(1e-9);
                let slope = rows.iter().zip(&miss).map(|(row, r)| row[j] * r).sum::<f64>() / length;
                prop_assert!(x[j] >= 0.0);
                prop_assert!(slope < 1e-3, "column {} of {:?} would go on by {}", j, x, slope);
                prop_assert!(x[j] == 0.0 || slope.abs() < 1e-3);
            }
        }
    }
}
