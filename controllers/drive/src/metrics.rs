//! The metric table: every family with every label value, at zero from the start.

use std::sync::LazyLock;

use aicr_crds::reason::Outcome;
use aicr_decide::resolve::{Class, JobPhase, JobSeen, Stage};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use prometheus::{
    Encoder as _, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

/// Seconds that AICR Jobs take: from one to half an hour.
const JOB_SECONDS: [f64; 12] = [1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0];
/// Seconds that a reconcile takes.
const RECONCILE_SECONDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0];
const RESULTS: [&str; 2] = ["success", "failure"];
/// The controllers, as `controller` labels name them.
pub(crate) const CONTROLLERS: [&str; 3] = ["resolver", "runtime", "rollout"];
const CLASSES: [&str; 3] = ["authorization", "bounded", "transient"];

static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::new);

/// The metrics of this process.
pub(crate) fn metrics() -> &'static Metrics {
    &METRICS
}

/// Where the process adds families of its own.
pub fn registry() -> &'static Registry {
    &metrics().registry
}

/// The certificate that the door serves ends then.
pub fn certificate_ends(at: Timestamp) {
    metrics().certificate_expiry.set(at.as_second());
}

/// Every series in Prometheus' text format.
pub fn gather() -> String {
    let mut text = Vec::new();
    if let Err(error) = TextEncoder::new().encode(&metrics().registry.gather(), &mut text) {
        tracing::warn!(%error, "metrics could not be written");
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// How far the rollout in progress is.
pub(crate) struct Progress<'a> {
    /// Its name.
    pub(crate) rollout: &'a str,
    /// The step in flight or next, counted from 1.
    pub(crate) step: usize,
    /// Of so many.
    pub(crate) total: usize,
    /// When it expires.
    pub(crate) deadline: Timestamp,
}

/// All families.
pub(crate) struct Metrics {
    registry: Registry,
    outcomes: IntCounterVec,
    job_seconds: HistogramVec,
    job_runs: IntCounterVec,
    validations: IntCounterVec,
    conditions: IntGaugeVec,
    steps: IntGaugeVec,
    deadlines: IntGaugeVec,
    reconcile_seconds: HistogramVec,
    reconcile_errors: IntCounterVec,
    api_requests: IntCounterVec,
    certificate_expiry: IntGauge,
    token_expiry: IntGauge,
    token_refresh: IntGauge,
}

fn registered<C: prometheus::core::Collector + Clone + 'static>(registry: &Registry, made: prometheus::Result<C>) -> C {
    let registered = made.and_then(|family| registry.register(Box::new(family.clone())).map(|()| family));
    #[expect(clippy::expect_used, reason = "names and labels are literals, each given once")]
    registered.expect("a family has a valid name that no other has")
}

fn counters(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    registered(registry, IntCounterVec::new(Opts::new(name, help), labels))
}

fn gauges(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    registered(registry, IntGaugeVec::new(Opts::new(name, help), labels))
}

fn histograms(registry: &Registry, name: &str, help: &str, labels: &[&str], buckets: &[f64]) -> HistogramVec {
    registered(registry, HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), labels))
}

impl Metrics {
    fn new() -> Self {
        let registry = Registry::new();
        let r = &registry;
        let metrics = Self {
            outcomes: counters(r, "aicr_operator_rollout_outcomes_total", "Rollouts ended, by outcome.", &["outcome"]),
            job_seconds: histograms(
                r,
                "aicr_operator_job_duration_seconds",
                "AICR Job durations by stage and result.",
                &["stage", "result"],
                &JOB_SECONDS,
            ),
            job_runs: counters(
                r,
                "aicr_operator_job_runs_total",
                "AICR runs when first seen finished, by stage, result and, for failures, retry class.",
                &["stage", "result", "class"],
            ),
            validations: counters(
                r,
                "aicr_operator_validation_runs_total",
                "Deployment validation runs by result.",
                &["result"],
            ),
            conditions: gauges(
                r,
                "aicr_operator_condition",
                "Conditions of the ClusterRuntime: 1 for the present status and reason.",
                &["type", "status", "reason"],
            ),
            steps: gauges(
                r,
                "aicr_operator_rollout_step",
                "The rollout in progress: 1 for its step in flight or next, counted from 1, of all.",
                &["rollout", "index", "total"],
            ),
            deadlines: gauges(
                r,
                "aicr_operator_rollout_deadline_timestamp_seconds",
                "When the rollout in progress expires, as Unix time; no series while there is none.",
                &["rollout"],
            ),
            reconcile_seconds: histograms(
                r,
                "aicr_operator_reconcile_duration_seconds",
                "How long reconciles take.",
                &["controller"],
                &RECONCILE_SECONDS,
            ),
            reconcile_errors: counters(
                r,
                "aicr_operator_reconcile_errors_total",
                "Reconciles that ended in an error and are retried, by class.",
                &["controller", "class"],
            ),
            api_requests: counters(
                r,
                "aicr_operator_api_requests_total",
                "Requests to the API server, by verb, resource and HTTP code (0 where none came).",
                &["verb", "resource", "code"],
            ),
            certificate_expiry: registered(
                r,
                IntGauge::new(
                    "aicr_operator_webhook_certificate_expiry_timestamp_seconds",
                    "When the webhooks' serving certificate expires, as Unix time; 0 until there is one.",
                ),
            ),
            token_expiry: registered(
                r,
                IntGauge::new(
                    "aicr_operator_registry_token_expiry_timestamp_seconds",
                    "When the Argo CD registry token expires, as Unix time; 0 until known.",
                ),
            ),
            token_refresh: registered(
                r,
                IntGauge::new(
                    "aicr_operator_registry_token_refresh_timestamp_seconds",
                    "When the operator last refreshed the registry token, as Unix time; 0 until known.",
                ),
            ),
            registry: registry.clone(),
        };
        fixed(r);
        metrics.zero();
        metrics
    }

    /// Every label value of the page, before its first event.
    fn zero(&self) {
        for outcome in Outcome::ALL {
            self.outcomes.with_label_values(&[outcome.as_str()]);
        }
        for stage in Stage::ALL {
            self.job_runs.with_label_values(&[stage.as_str(), RESULTS[0], ""]);
            for class in Class::ALL {
                self.job_runs.with_label_values(&[stage.as_str(), RESULTS[1], class.as_str()]);
            }
            for result in RESULTS {
                self.job_seconds.with_label_values(&[stage.as_str(), result]);
            }
        }
        for result in RESULTS {
            self.validations.with_label_values(&[result]);
        }
        for controller in CONTROLLERS {
            self.reconcile_seconds.with_label_values(&[controller]);
            for class in CLASSES {
                self.reconcile_errors.with_label_values(&[controller, class]);
            }
        }
    }

    /// A rollout ended.
    pub(crate) fn ended(&self, outcome: Outcome) {
        self.outcomes.with_label_values(&[outcome.as_str()]).inc();
    }

    /// An AICR run was first seen finished.
    pub(crate) fn ran(&self, job: &JobSeen, seconds: Option<f64>) {
        let stage = job.stage;
        let (result, class) = match (&job.phase, job.failure()) {
            (JobPhase::Suspended | JobPhase::Active(_), _) => return,
            (JobPhase::Succeeded { .. } | JobPhase::Failed { .. }, Some(failure)) => {
                (RESULTS[1], failure.class.as_str())
            }
            (JobPhase::Succeeded { .. } | JobPhase::Failed { .. }, None) => (RESULTS[0], ""),
        };
        self.job_runs.with_label_values(&[stage.as_str(), result, class]).inc();
        if stage == Stage::Validation {
            self.validations.with_label_values(&[result]).inc();
        }
        if let Some(seconds) = seconds {
            self.job_seconds.with_label_values(&[stage.as_str(), result]).observe(seconds);
        }
    }

    /// A token was fetched; a replica that does not lead never comes here.
    pub(crate) fn token(&self, expires_at: Timestamp, fetched_at: Timestamp) {
        self.token_expiry.set(expires_at.as_second());
        self.token_refresh.set(fetched_at.as_second());
    }

    /// Expiry and last refresh of the token.
    #[cfg(test)]
    pub(crate) fn token_times(&self) -> (i64, i64) {
        (self.token_expiry.get(), self.token_refresh.get())
    }

    /// The conditions as they stand now.
    pub(crate) fn conditions(&self, conditions: &[Condition]) {
        self.conditions.reset();
        for one in conditions {
            self.conditions.with_label_values(&[&one.type_, &one.status, &one.reason]).set(1);
        }
    }

    /// The rollout in progress; `None` where there is none.
    pub(crate) fn progress(&self, progress: Option<&Progress<'_>>) {
        self.steps.reset();
        self.deadlines.reset();
        if let Some(&Progress { rollout, step, total, deadline }) = progress {
            self.steps.with_label_values(&[rollout, &step.to_string(), &total.to_string()]).set(1);
            self.deadlines.with_label_values(&[rollout]).set(deadline.as_second());
        }
    }

    /// There is no runtime, so nothing of it is said.
    pub(crate) fn no_runtime(&self) {
        self.conditions(&[]);
        self.progress(None);
    }

    /// A reconcile took this long.
    pub(crate) fn reconciled(&self, controller: &str, seconds: f64) {
        self.reconcile_seconds.with_label_values(&[controller]).observe(seconds);
    }

    /// A reconcile failed.
    pub(crate) fn failed(&self, controller: &str, class: &str) {
        self.reconcile_errors.with_label_values(&[controller, class]).inc();
    }

    /// The API server answered; `code` 0 where it did not.
    pub(crate) fn requested(&self, verb: &str, resource: &str, code: u16) {
        self.api_requests.with_label_values(&[verb, resource, &code.to_string()]).inc();
    }
}

/// Families that stay as they are.
fn fixed(registry: &Registry) {
    let build = GaugeVec::new(Opts::new("aicr_operator_build_info", "1, with the operator's version."), &["version"]);
    registered(registry, build).with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1.0);
    let process = prometheus::process_collector::ProcessCollector::for_self();
    if let Err(error) = registry.register(Box::new(process)) {
        tracing::warn!(%error, "the process's own metrics are not there");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_of_the_page_is_zero_before_its_first_event() {
        let fresh = Metrics::new();
        let mut text = Vec::new();
        TextEncoder::new().encode(&fresh.registry.gather(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let has = |series: &str| text.lines().any(|line| line == format!("{series} 0"));
        for outcome in Outcome::ALL {
            assert!(has(&format!("aicr_operator_rollout_outcomes_total{{outcome=\"{outcome}\"}}")), "{text}");
        }
        for stage in Stage::ALL {
            assert!(has(&format!("aicr_operator_job_runs_total{{class=\"\",result=\"success\",stage=\"{stage}\"}}")));
            for class in Class::ALL {
                let class = class.as_str();
                assert!(has(&format!(
                    "aicr_operator_job_runs_total{{class=\"{class}\",result=\"failure\",stage=\"{stage}\"}}"
                )));
            }
            for result in RESULTS {
                assert!(has(&format!(
                    "aicr_operator_job_duration_seconds_count{{result=\"{result}\",stage=\"{stage}\"}}"
                )));
            }
        }
        assert!(has("aicr_operator_validation_runs_total{result=\"failure\"}"));
        assert!(has("aicr_operator_registry_token_expiry_timestamp_seconds"));
        assert!(has("aicr_operator_registry_token_refresh_timestamp_seconds"));
    }

    fn job(phase: JobPhase) -> JobSeen {
        let (name, input, run) = ("aicr-recipe-0-1".to_owned(), "0".to_owned(), "r".to_owned());
        JobSeen { name, stage: Stage::Recipe, input, attempt: 1, run, phase }
    }

    #[test]
    fn a_finished_run_is_counted_once_under_its_result_and_a_failure_under_its_class() {
        use aicr_crds::reason::Reason;
        use aicr_decide::resolve::Failure;
        let fresh = Metrics::new();
        let at = Timestamp::UNIX_EPOCH;
        let failed = |class| {
            let failure = Failure { exit: Some(8), text: String::new(), class, reason: Reason::AICRInternal };
            job(JobPhase::Failed { failure, at })
        };
        let succeeded = |refused| job(JobPhase::Succeeded { message: String::new(), output: None, refused, at });
        for class in Class::ALL {
            fresh.ran(&failed(class), Some(3.0));
        }
        // An output that cannot be used is a failure, whatever the exit said.
        fresh.ran(&succeeded(Some((Reason::AICRInternal, "damaged".to_owned()))), None);
        fresh.ran(&succeeded(None), Some(40.0));
        fresh.ran(&job(JobPhase::Active(None)), Some(1.0));
        fresh.ran(&job(JobPhase::Suspended), Some(1.0));
        let runs = |result, class| fresh.job_runs.with_label_values(&["recipe", result, class]).get();
        let failures = Class::ALL.map(|class| runs(RESULTS[1], class.as_str()));
        let expected = Class::ALL.map(|class| if class == Class::Bounded { 2 } else { 1 });
        assert_eq!((runs(RESULTS[0], ""), failures), (1, expected));
        let took = |result| fresh.job_seconds.with_label_values(&["recipe", result]);
        let seen = RESULTS.map(|result| (took(result).get_sample_count(), took(result).get_sample_sum()));
        assert_eq!(seen, [(1, 40.0), (4, 12.0)]);
    }

    #[test]
    fn a_condition_has_one_series_at_a_time() {
        let fresh = Metrics::new();
        let condition = |reason: &str| Condition {
            type_: "Ready".to_owned(),
            status: "False".to_owned(),
            reason: reason.to_owned(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH),
        };
        fresh.conditions(&[condition("RollingOut")]);
        fresh.conditions(&[condition("NotReady")]);
        let family = fresh.registry.gather().into_iter().find(|family| family.name() == "aicr_operator_condition");
        assert_eq!(family.unwrap().get_metric().len(), 1);
    }
}
