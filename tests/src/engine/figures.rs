//! Figures out of many readings: percentiles, and the slope of a line through them.

/// The reading below which this share of them lies; 0 where there is none.
pub fn percentile(readings: &[f64], share: f64) -> f64 {
    let mut sorted = readings.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some thousands"
    )]
    let place = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
    sorted.get(place).copied().unwrap_or_default()
}

/// Slope of the least-squares line through points; 0 where there are fewer than two.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (middle, height) = (mean(|point| point.0), mean(|point| point.1));
    let across: f64 = points.iter().map(|(x, _)| (x - middle).powi(2)).sum();
    let along: f64 = points.iter().map(|(x, y)| (x - middle) * (y - height)).sum();
    if across == 0.0 || !across.is_finite() { 0.0 } else { along / across }
}

/// How much of the time from `from` on these spans cover together, in the unit they are given in.
pub fn covered(spans: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let mut spans: Vec<(f64, f64)> = spans.iter().map(|(begin, end)| (begin.max(from), end.min(to))).collect();
    spans.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut reached = from;
    let mut sum = 0.0;
    for (begin, end) in spans {
        sum += (end - begin.max(reached)).max(0.0);
        reached = reached.max(end);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_readings_lie_below_the_median() {
        let readings = [5.0, 1.0, 3.0, 2.0, 4.0];
        assert!((percentile(&readings, 0.5) - 3.0).abs() < 1e-9);
        assert!((percentile(&readings, 1.0) - 5.0).abs() < 1e-9);
        assert!(percentile(&[], 0.5).abs() < 1e-9);
    }

    #[test]
    fn spans_that_overlap_count_once_and_what_lies_outside_not_at_all() {
        let spans = [(4.0, 6.0), (1.0, 3.0), (2.0, 3.5), (2.5, 2.7), (9.0, 12.0), (-5.0, 0.5), (20.0, 30.0)];
        assert!((covered(&spans, 0.0, 10.0) - 6.0).abs() < 1e-9);
        assert!(covered(&[], 0.0, 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_straight_line_has_its_own_slope() {
        assert!((slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) - 2.0).abs() < 1e-9);
        assert!(slope(&[(1.0, 7.0)]).abs() < 1e-9);
    }
}
