//! The agent's Job as the launcher builds it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::args::Parsed;
use crate::failure::Failure;

/// What a launcher decided before it builds the Job.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: String,
    pub(super) run: &'a str,
    pub(super) image: String,
    pub(super) account: &'a str,
    /// `cm://` URI the agent writes to.
    pub(super) output: String,
}

/// The Job's manifest.
pub(super) fn manifest(parsed: &Parsed, plan: &Plan<'_>) -> Result<Value, Failure> {
    let labels = json!({
        "app.kubernetes.io/name": "aicr",
        "aicr.run/run-id": plan.run,
        "aicr.run/invocation-id": plan.run,
    });
    Ok(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": plan.name, "namespace": plan.namespace, "labels": labels},
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": 3600,
            "activeDeadlineSeconds": 18000,
            "template": {"metadata": {"labels": labels}, "spec": pod(parsed, plan)?},
        },
    }))
}

fn pod(parsed: &Parsed, plan: &Plan<'_>) -> Result<Value, Failure> {
    let privileged = parsed.on("privileged", true);
    let mut spec = json!({
        "restartPolicy": "Never",
        "serviceAccountName": plan.account,
        "nodeSelector": pairs(parsed.all("node-selector"), "node-selector")?,
        "tolerations": tolerations(parsed.all("toleration"))?,
        "imagePullSecrets": parsed.all("image-pull-secret").iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
        "containers": [container(parsed, plan, privileged)?],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    });
    if let Some(class) = parsed.get("runtime-class") {
        spec["runtimeClassName"] = json!(class);
    }
    if privileged {
        for namespace in ["hostPID", "hostNetwork", "hostIPC"] {
            spec[namespace] = json!(true);
        }
        spec["volumes"] = json!([
            {"name": "tmp", "emptyDir": {}},
            {"name": "run-systemd", "hostPath": {"path": "/run/systemd"}},
            {"name": "os-release", "hostPath": {"path": "/etc/os-release"}},
        ]);
    }
    Ok(spec)
}

fn container(parsed: &Parsed, plan: &Plan<'_>, privileged: bool) -> Result<Value, Failure> {
    let mut mounts = vec![json!({"name": "tmp", "mountPath": "/tmp"})];
    if privileged {
        mounts.push(json!({"name": "run-systemd", "mountPath": "/run/systemd", "readOnly": true}));
        mounts.push(json!({"name": "os-release", "mountPath": "/etc/os-release", "readOnly": true}));
    }
    Ok(json!({
        "name": "aicr",
        "image": plan.image,
        "command": ["aicr"],
        "args": ["snapshot", "-o", plan.output],
        "env": environment(parsed),
        "resources": resources(parsed, privileged)?,
        "securityContext": security(privileged),
        "volumeMounts": mounts,
    }))
}

fn environment(parsed: &Parsed) -> Value {
    let mut env = vec![
        json!({"name": "AICR_AGENT_MODE", "value": "true"}),
        json!({"name": "AICR_LOG_PREFIX", "value": "agent"}),
        json!({"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}),
    ];
    for (flag, name) in [("max-nodes-per-entry", "AICR_MAX_NODES_PER_ENTRY"), ("os", "AICR_OS")] {
        if let Some(value) = parsed.get(flag) {
            env.push(json!({"name": name, "value": value}));
        }
    }
    // A launcher started by hand hands its own knobs on; in a cluster they come with the image.
    let knobs = std::env::vars().filter(|(name, _)| name.starts_with("AICR_STANDIN_"));
    env.extend(knobs.map(|(name, value)| json!({"name": name, "value": value})));
    Value::Array(env)
}

fn resources(parsed: &Parsed, privileged: bool) -> Result<Value, Failure> {
    let (requests, limits) = if privileged {
        (["1", "4Gi", "2Gi"], ["2", "8Gi", "4Gi"])
    } else {
        (["100m", "256Mi", "256Mi"], ["500m", "512Mi", "512Mi"])
    };
    Ok(json!({
        "requests": amounts(requests, parsed.get("requests"), "requests")?,
        "limits": amounts(limits, parsed.get("limits"), "limits")?,
    }))
}

/// The defaults, replaced key by key.
fn amounts(defaults: [&str; 3], given: Option<&str>, flag: &str) -> Result<Value, Failure> {
    let keys = ["cpu", "memory", "ephemeral-storage"];
    let mut all: BTreeMap<String, String> =
        keys.iter().zip(defaults).map(|(key, value)| ((*key).to_owned(), value.to_owned())).collect();
    let words: Vec<String> = given.into_iter().flat_map(|text| text.split(',')).map(ToOwned::to_owned).collect();
    all.extend(pairs(&words, flag)?);
    Ok(json!(all))
}

fn security(privileged: bool) -> Value {
    if privileged {
        return json!({
            "privileged": true,
            "runAsUser": 0,
            "capabilities": {"add": ["SYS_ADMIN", "SYS_CHROOT"]},
        });
    }
    json!({
        "runAsNonRoot": true,
        "runAsUser": 65534,
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

/// `key=value` words as a map.
pub(crate) fn pairs(words: &[String], flag: &str) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |word: &String| {
        let (key, value) = word.split_once('=').ok_or_else(|| {
            Failure::invalid(format!("invalid --{flag}: invalid format \"{word}\": expected key=value"))
        })?;
        Ok((key.trim().to_owned(), value.trim().to_owned()))
    };
    words.iter().map(pair).collect()
}

fn tolerations(words: &[String]) -> Result<Value, Failure> {
    if words.is_empty() {
        return Ok(json!([{"operator": "Exists"}]));
    }
    words.iter().map(|word| toleration(word, "toleration")).collect::<Result<Vec<_>, _>>().map(Value::Array)
}

/// `key=value:Effect` or `key:Effect` as a toleration.
pub(crate) fn toleration(word: &str, flag: &str) -> Result<Value, Failure> {
    let bad = || {
        Failure::invalid(format!(
            "invalid --{flag}: invalid format \"{word}\": expected key=value:effect or key:effect"
        ))
    };
    let (left, effect) = word.rsplit_once(':').ok_or_else(bad)?;
    if left.is_empty() || !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
        return Err(bad());
    }
    let mut entry = Map::new();
    entry.insert("effect".into(), json!(effect));
    let (key, value) = left.split_once('=').map_or((left, None), |(key, value)| (key, Some(value)));
    entry.insert("key".into(), json!(key));
    entry.insert("operator".into(), json!(if value.is_some() { "Equal" } else { "Exists" }));
    entry.extend(value.map(|value| ("value".to_owned(), json!(value))));
    Ok(Value::Object(entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;

    fn built(words: &[&str]) -> Value {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let parsed = args::parse(super::super::FLAGS, &words).unwrap();
        let plan = Plan {
            namespace: "ns",
            name: "aicr-1".into(),
            run: "1",
            image: "image".into(),
            account: "agent",
            output: "cm://ns/out".into(),
        };
        manifest(&parsed, &plan).unwrap()
    }

    #[test]
    fn requests_are_replaced_key_by_key() {
        let job = built(&["--privileged=false", "--requests", "cpu=5m"]);
        let requests = &job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"];
        assert_eq!(*requests, json!({"cpu": "5m", "memory": "256Mi", "ephemeral-storage": "256Mi"}));
    }

    #[test]
    fn an_unprivileged_agent_has_nothing_of_the_host() {
        let spec = built(&["--privileged=false"])["spec"]["template"]["spec"].clone();
        assert_eq!(spec["hostPID"], Value::Null);
        assert_eq!(spec["volumes"].as_array().unwrap().len(), 1);
        assert_eq!(spec["containers"][0]["securityContext"]["runAsUser"], 65534);
        let privileged = built(&[])["spec"]["template"]["spec"].clone();
        assert_eq!((&privileged["hostPID"], &privileged["hostNetwork"]), (&json!(true), &json!(true)));
        assert_eq!(privileged["tolerations"], json!([{"operator": "Exists"}]));
    }

    #[test]
    fn tolerations_are_read_in_both_forms() {
        let equal = json!({"effect": "NoSchedule", "key": "a", "operator": "Equal", "value": "b"});
        assert_eq!(toleration("a=b:NoSchedule", "toleration").unwrap(), equal);
        let exists = json!({"effect": "NoExecute", "key": "a", "operator": "Exists"});
        assert_eq!(toleration("a:NoExecute", "toleration").unwrap(), exists);
        assert_eq!(toleration("a=b", "toleration").unwrap_err().exit(), 2);
    }
}
