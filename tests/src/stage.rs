//! A whole cluster with the operator on it, and the words in which stories are told.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use aicr_lab::product::{APPROVER, APPROVERS, NAMESPACE, Product, Pushed, Release};
use aicr_lab::wait::{self, Seen};
use aicr_lab::{Lab, Options, command};
use serde_json::{Value, json};

use crate::people::Said;

/// The operator's account, as the API server names it.
pub const OPERATOR: &str = "system:serviceaccount:aicr-system:aicr-operator";

/// The operator's lease, in its namespace.
const LEASE: &str = "aicr-operator";

/// A whole cluster. It ends with its value, also when a test panics.
pub struct Stage {
    /// The real parts.
    pub lab: Lab,
    /// The product's binaries.
    pub product: Product,
    /// The images that were pushed.
    pub pushed: Pushed,
}

impl Stage {
    /// Brings up all parts, pushes the images and installs the chart with AICR v1.0.0.
    pub fn with_the_operator() -> Self {
        let up = || -> Result<Self, aicr_lab::LabError> {
            let product = Product::from_env()?;
            let lab = Lab::up(&Options::whole())?;
            let pushed = product.push_all(&lab)?;
            product.install(&lab, &Release { pushed: &pushed, aicr: "v1.0.0", sets: &[] })?;
            Ok(Self { lab, product, pushed })
        };
        up().unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// kubectl as administrator; panics with its words where it fails.
    pub fn kubectl(&self, args: &[&str]) -> String {
        self.lab.kubectl(args).unwrap_or_else(|error| panic!("kubectl {}: {error:?}", args.join(" ")))
    }

    /// kubectl's answer as JSON.
    pub fn json(&self, args: &[&str]) -> Value {
        let args: Vec<&str> = args.iter().copied().chain(["-o", "json"]).collect();
        let text = self.kubectl(&args);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The items of a list.
    pub fn list(&self, args: &[&str]) -> Vec<Value> {
        self.json(args)["items"].as_array().cloned().unwrap_or_default()
    }

    /// Merge-patches the runtime.
    pub fn patch_runtime(&self, patch: &Value) {
        self.kubectl(&["patch", "clusterruntime", "cluster", "--type", "merge", "--patch", &patch.to_string()]);
    }

    /// The plugin, run by an approver.
    pub fn approver(&self, args: &[&str]) -> Said {
        self.person(APPROVER, &[APPROVERS]).aicr(args)
    }

    /// Waits until `seen` returns something; the bound's message says what was seen last.
    pub fn until<T>(&self, what: &str, minutes: u64, mut seen: impl FnMut() -> Result<T, String>) -> T {
        let found = wait::until(what, Duration::from_mins(minutes), || match seen() {
            Ok(value) => Seen::Ready(value),
            Err(state) => Seen::NotYet(state),
        });
        found.unwrap_or_else(|error| panic!("{error}\n{}", self.overview()))
    }

    /// What a person would look at first.
    pub fn overview(&self) -> String {
        let look = |args: &[&str]| self.lab.kubectl(args).unwrap_or_else(|error| error.to_string());
        let conditions = "jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{\"\\n\"}{end}";
        [
            look(&["get", "clusterruntime", "cluster", "-o", conditions]),
            look(&["get", "runtimerollouts"]),
            look(&[
                "get",
                "runtimerollouts",
                "-o",
                "jsonpath={range .items[*]}{.metadata.name}: {.status.message}{\"\\n\"}{end}",
            ]),
            look(&["get", "applications", "-A"]),
            look(&["get", "jobs,pods", "-A"]),
            look(&["logs", "-n", NAMESPACE, "deployment/aicr-operator", "--tail", "40"]),
        ]
        .join("\n")
    }

    /// Status, reason and message of one condition of the runtime; empty where it has none.
    pub fn condition(&self, kind: &str) -> (String, String, String) {
        let runtime = self.json(&["get", "clusterruntime", "cluster"]);
        let conditions = runtime["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default();
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    /// Waits until a condition of the runtime has this reason, and returns its message.
    pub fn until_reason(&self, kind: &str, reason: &str, minutes: u64) -> String {
        self.until(&format!("{kind} with {reason}"), minutes, || {
            let (status, found, message) = self.condition(kind);
            if found == reason { Ok(message) } else { Err(format!("{kind}={status} {found}: {message}")) }
        })
    }

    /// Waits for the one unfinished rollout and returns its name.
    pub fn until_a_rollout(&self, minutes: u64) -> String {
        self.until("an unfinished rollout", minutes, || {
            let rollouts = self.list(&["get", "runtimerollouts"]);
            let unfinished =
                rollouts.iter().find(|rollout| rollout["metadata"]["labels"]["operator.aicr.run/outcome"].is_null());
            unfinished.and_then(|rollout| rollout["metadata"]["name"].as_str().map(str::to_owned)).ok_or_else(|| {
                let (_, reason, message) = self.condition("Reconciling");
                format!("{reason}: {message}")
            })
        })
    }

    /// A rollout by name.
    pub fn rollout(&self, name: &str) -> Value {
        self.json(&["get", "runtimerollout", name])
    }

    /// Waits until a rollout's phase is this one; another end is a failure at once.
    pub fn until_phase(&self, name: &str, phase: &str, minutes: u64) {
        self.until(&format!("{name} in {phase}"), minutes, || {
            let rollout = self.rollout(name);
            let outcome =
                rollout["metadata"]["labels"]["operator.aicr.run/outcome"].as_str().unwrap_or_default().to_owned();
            let found = rollout["status"]["phase"].as_str().unwrap_or_default().to_owned();
            assert!(
                outcome.is_empty() || outcome == phase,
                "{name} ended {outcome}: {}\n{}",
                rollout["status"]["message"],
                self.overview()
            );
            if found == phase { Ok(()) } else { Err(format!("{found}: {}", rollout["status"]["message"])) }
        });
    }

    /// Approves a rollout as the sample approver.
    pub fn approve(&self, name: &str) {
        let said = self.approver(&["approve", name, "--yes", "--reason", "a maintenance window"]);
        assert_eq!(said.code, 0, "{said:?}");
    }

    /// The operator's metrics, by way of the API server: those of the replica that leads.
    pub fn metrics(&self) -> String {
        self.leader().1
    }

    /// The pod that leads, and its metrics; waits for one where the lease is between two.
    pub fn leader(&self) -> (String, String) {
        self.until("a replica that leads", 2, || {
            let pods = self.pods();
            let scraped = pods.iter().filter_map(|name| Some((name.clone(), self.scrape(name)?)));
            let found = scraped.into_iter().find(|(_, text)| leads(text));
            found.ok_or_else(|| format!("{} pods", pods.len()))
        })
    }

    /// The metrics of one pod, by way of the API server.
    pub fn scrape(&self, pod: &str) -> Option<String> {
        self.lab
            .kubectl(&["get", "--raw", &format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8080/proxy/metrics")])
            .ok()
    }

    /// One sample of the metrics.
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.metrics();
        let line = text.lines().find(|line| line.split_once(' ').is_some_and(|(name, _)| name == series));
        let value = line.and_then(|line| line.rsplit_once(' ')).map(|(_, value)| value.parse());
        value.unwrap_or_else(|| panic!("no series {series}")).unwrap_or_else(|error| panic!("{series}: {error}"))
    }

    /// Requests of one account that the API server has finished, from its audit log.
    pub fn audit(&self, user: &str) -> Vec<Value> {
        let path = self.lab.layout().audit_log();
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        entries.filter(|entry| entry["user"]["username"] == user && entry["stage"] == "ResponseComplete").collect()
    }

    /// How often the operator wrote each Application's desired state: creates and server-side applies that succeeded.
    pub fn desired_writes(&self) -> BTreeMap<String, usize> {
        let mut writes = BTreeMap::new();
        for entry in self.audit(OPERATOR) {
            let (verb, object) = (entry["verb"].as_str().unwrap_or_default(), &entry["objectRef"]);
            let uri = entry["requestURI"].as_str().unwrap_or_default();
            let whole = verb == "create"
                || (verb == "patch" && uri.contains("fieldManager=aicr-operator&")
                    || uri.ends_with("fieldManager=aicr-operator"));
            let fine = entry["responseStatus"]["code"].as_i64().is_some_and(|code| code < 300);
            if object["resource"] == "applications" && whole && fine {
                let name = object["name"]
                    .as_str()
                    .filter(|name| !name.is_empty())
                    .map_or_else(|| created(&entry), str::to_owned);
                *writes.entry(name).or_default() += 1;
            }
        }
        writes
    }

    /// For each release but the last: from Argo CD's last write on it before the next release was created, to that create,
    /// in milliseconds, by the API server's clock.
    pub fn reaction_milliseconds(&self) -> Vec<i64> {
        let at = |entry: &Value, key: &str| entry[key].as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
        let created: Vec<jiff::Timestamp> = self
            .audit(OPERATOR)
            .iter()
            .filter(|entry| entry["objectRef"]["resource"] == "applications" && entry["responseStatus"]["code"] == 201)
            .filter_map(|entry| at(entry, "requestReceivedTimestamp"))
            .collect();
        let engine: Vec<jiff::Timestamp> = self
            .audit("system:serviceaccount:argocd:argocd-application-controller")
            .iter()
            .filter(|entry| entry["objectRef"]["resource"] == "applications")
            .filter_map(|entry| at(entry, "stageTimestamp"))
            .collect();
        let wait = |create: &jiff::Timestamp| {
            let last = engine.iter().filter(|write| *write < create).max()?;
            i64::try_from(create.duration_since(*last).as_millis()).ok()
        };
        created.iter().skip(1).filter_map(wait).collect()
    }

    /// Ends the process of the replica that leads with SIGKILL, by its id, and waits for the next that leads.
    pub fn kill_the_operator(&self) {
        let pid = self.leader_pid();
        command::output(Command::new("kill").args(["-KILL", &pid.to_string()]))
            .unwrap_or_else(|error| panic!("{error}"));
        self.until("another process that leads", 3, || {
            let now = self.leader_pid();
            if now == pid { Err(format!("{now} leads still")) } else { Ok(()) }
        });
    }

    /// The process of the replica that leads; a pod's name is its host name.
    pub fn leader_pid(&self) -> u32 {
        self.until("the process that leads", 3, || {
            let (pod, _) = self.leader();
            let variable = format!("HOSTNAME={pod}");
            let is_its = |pid: &u32| {
                let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
            };
            operator_pids().into_iter().find(is_its).ok_or_else(|| format!("no process of {pod}"))
        })
    }

    /// Takes the lease away, until it is given back: every replica answers, none writes.
    pub fn take_the_lease(&self) {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
        let held = json!({"spec": {
            "holderIdentity": "the-tests", "leaseDurationSeconds": 3600, "acquireTime": now, "renewTime": now,
        }});
        self.kubectl(&["patch", "lease", LEASE, "-n", NAMESPACE, "--type", "merge", "--patch", &held.to_string()]);
        self.until("no replica to lead", 3, || {
            let leads = self.pods().iter().any(|pod| self.scrape(pod).is_some_and(|text| leads(&text)));
            if leads { Err("one leads still".to_owned()) } else { Ok(()) }
        });
        self.until_both_are_ready();
    }

    /// Lets a replica lead again.
    pub fn give_the_lease_back(&self) {
        self.kubectl(&["delete", "lease", LEASE, "-n", NAMESPACE]);
        self.leader();
    }

    /// Waits until every replica is ready, and the door is answered.
    pub fn until_both_are_ready(&self) {
        self.product.wait(&self.lab).unwrap_or_else(|error| panic!("{error:?}\n{}", self.overview()));
    }

    /// Names of the operator's pods that run.
    pub fn pods(&self) -> Vec<String> {
        let pods = self.list(&["get", "pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=aicr-operator"]);
        let running = pods.iter().filter(|pod| pod["status"]["phase"] == "Running");
        running.filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned)).collect()
    }

    /// The processes of the operator on this machine, once one leads.
    pub fn until_leader_and_pids(&self) -> Vec<String> {
        self.leader();
        operator_pids().iter().map(u32::to_string).collect()
    }

    /// Resident memory of the process that leads, in KiB.
    pub fn resident_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.leader_pid());
        let status = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{line}"))
    }

    /// Events of one object without a namespace: reason and note of each.
    pub fn events(&self, name: &str) -> Vec<(String, String)> {
        self.events_in("default", name)
    }

    /// Events of one object, by their namespace.
    pub fn events_in(&self, namespace: &str, name: &str) -> Vec<(String, String)> {
        let events = self.list(&["get", "events.events.k8s.io", "-n", namespace]);
        let about = events.into_iter().filter(|event| event["regarding"]["name"] == name);
        let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
        about.map(|event| (text(&event, "reason"), text(&event, "note"))).collect()
    }
}

/// Whether these metrics are of the replica that leads.
fn leads(metrics: &str) -> bool {
    metrics.lines().any(|line| line == "aicr_operator_leader 1")
}

/// A create has no name in its reference; the body has.
fn created(entry: &Value) -> String {
    entry["requestObject"]["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// Processes of the operator on this machine.
fn operator_pids() -> Vec<u32> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let named = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "aicr-operator")
    };
    ids.filter(named).collect()
}
