//! Reviews counted and timed, every series at zero from the start.

use std::time::Duration;

use aicr_webhooks::{Decision, Observe, Webhook};
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry, core::Collector};

/// Seconds that a review takes; the API server waits for five.
const SECONDS: [f64; 9] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0];

/// Counts for Prometheus.
pub(super) struct Counted {
    requests: IntCounterVec,
    seconds: HistogramVec,
}

impl Counted {
    /// Families of this registry.
    pub(super) fn new(registry: &Registry) -> Self {
        let requests = Opts::new(
            "aicr_operator_admission_requests_total",
            "Admission reviews by webhook and decision, without dry runs.",
        );
        let seconds = HistogramOpts::new(
            "aicr_operator_admission_duration_seconds",
            "How long a review takes from its head to the answer.",
        );
        let counted = Self {
            requests: registered(registry, IntCounterVec::new(requests, &["webhook", "decision"])),
            seconds: registered(registry, HistogramVec::new(seconds.buckets(SECONDS.to_vec()), &["webhook"])),
        };
        for webhook in Webhook::ALL {
            counted.seconds.with_label_values(&[webhook.name()]);
            for decision in Decision::ALL {
                counted.requests.with_label_values(&[webhook.name(), decision.label()]);
            }
        }
        counted
    }
}

impl Observe for Counted {
    fn decided(&self, webhook: Webhook, decision: Decision, took: Duration) {
        self.requests.with_label_values(&[webhook.name(), decision.label()]).inc();
        self.seconds.with_label_values(&[webhook.name()]).observe(took.as_secs_f64());
    }
}

/// The family in the registry.
fn registered<C: Collector + Clone + 'static>(registry: &Registry, made: prometheus::Result<C>) -> C {
    #[expect(clippy::expect_used, reason = "names and labels are literals")]
    let family = made.expect("a family has a valid name");
    if let Err(error) = registry.register(Box::new(family.clone())) {
        tracing::warn!(%error, "a metric is not exported");
    }
    family
}

#[cfg(test)]
mod tests {
    use prometheus::{Encoder as _, TextEncoder};

    use super::*;

    fn text(registry: &Registry) -> String {
        let mut text = Vec::new();
        TextEncoder::new().encode(&registry.gather(), &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn every_webhook_and_decision_is_there_at_zero_and_a_review_is_counted() {
        let registry = Registry::new();
        let counted = Counted::new(&registry);
        let before = text(&registry);
        for webhook in Webhook::ALL.map(Webhook::name) {
            for decision in Decision::ALL.map(Decision::label) {
                let series = format!(
                    "aicr_operator_admission_requests_total{{decision=\"{decision}\",webhook=\"{webhook}\"}} 0"
                );
                assert!(before.contains(&series), "{series}");
            }
        }
        counted.decided(Webhook::Plans, Decision::Denied, Duration::from_millis(2));
        let after = text(&registry);
        assert!(
            after.contains("aicr_operator_admission_requests_total{decision=\"denied\",webhook=\"plans\"} 1"),
            "{after}"
        );
        assert!(after.contains("aicr_operator_admission_duration_seconds_count{webhook=\"plans\"} 1"), "{after}");
    }
}
