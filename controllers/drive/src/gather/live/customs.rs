//! Custom resources: what their own status says of readiness (A53), since Argo CD counts them as healthy without looking.

use aicr_decide::facts::CustomSeen;
use serde_json::Value;

use super::managed::Managed;

/// What a live custom resource says; `None` where it has neither `status.state` nor a `Ready` condition.
///
/// One that is not there counts as missing, and a `Ready` of an older generation as unknown.
pub(super) fn custom(resource: &Managed, live: Option<(i64, &Value)>) -> Option<CustomSeen> {
    let name = resource.shown();
    let Some((generation, data)) = live else {
        return Some(CustomSeen { name, state: Some("missing".to_owned()), ..CustomSeen::default() });
    };
    let state = data.pointer("/status/state").and_then(Value::as_str).map(str::to_owned);
    let condition = condition(data, "Ready");
    if state.is_none() && condition.is_none() {
        return None;
    }
    let observed = |value: &Value| value.get("observedGeneration").and_then(Value::as_i64);
    let of_ready = condition.and_then(observed).or_else(|| data.get("status").and_then(observed));
    if let Some(observed) = of_ready.filter(|observed| *observed < generation) {
        let message = format!("its status is of generation {observed}, its spec of {generation}");
        return Some(CustomSeen { name, state, ready: Some("Unknown".to_owned()), message });
    }
    let ready = condition.and_then(|one| one.get("status")).and_then(Value::as_str).map(str::to_owned);
    Some(CustomSeen { name, state, ready, message: message(data, condition) })
}

fn condition<'a>(data: &'a Value, kind: &str) -> Option<&'a Value> {
    let all = data.pointer("/status/conditions")?.as_array()?;
    all.iter().find(|one| one.get("type").and_then(Value::as_str) == Some(kind))
}

/// The words of an error that stands, else those of `Ready`.
fn message(data: &Value, ready: Option<&Value>) -> String {
    let error = condition(data, "Error").filter(|one| one.get("status").and_then(Value::as_str) == Some("True"));
    let words = |one: &Value| one.get("message").and_then(Value::as_str).map(str::to_owned);
    error.and_then(words).or_else(|| ready.and_then(words)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy() -> Managed {
        let value =
            json!({ "group": "nvidia.com", "version": "v1", "kind": "ClusterPolicy", "name": "cluster-policy" });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_cluster_policy_says_its_state_and_its_error() {
        let data = json!({ "status": { "namespace": "gpu-operator", "state": "notReady", "conditions": [
            { "type": "Ready", "status": "False", "reason": "Error", "message": "" },
            { "type": "Error", "status": "True", "reason": "OperandNotReady", "message": "the driver is not ready" },
        ] } });
        let seen = custom(&policy(), Some((1, &data))).unwrap();
        assert_eq!((seen.name.as_str(), seen.state.as_deref()), ("ClusterPolicy cluster-policy", Some("notReady")));
        assert_eq!((seen.ready.as_deref(), seen.message.as_str()), (Some("False"), "the driver is not ready"));
    }

    /// A55: a word about the spec before is none about this one.
    #[test]
    fn a_ready_of_an_older_generation_is_not_ready() {
        let data =
            json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "observedGeneration": 1 }] } });
        let ready = |generation| custom(&policy(), Some((generation, &data))).unwrap().ready;
        assert_eq!(ready(1).as_deref(), Some("True"));
        assert_eq!(ready(2).as_deref(), Some("Unknown"));
    }

    #[test]
    fn what_says_nothing_is_not_judged_and_what_is_gone_is_missing() {
        assert_eq!(custom(&policy(), Some((1, &json!({ "status": { "conditions": [] } })))), None);
        assert_eq!(custom(&policy(), None).unwrap().state.as_deref(), Some("missing"));
    }
}
