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
    fn a_straight_line_has_its_own_slope() {
        assert!((slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) - 2.0).abs() < 1e-9);
        assert!(slope(&[(1.0, 7.0)]).abs() < 1e-9);
    }
}
