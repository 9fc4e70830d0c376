//! Bounds, each refused in words that say what to write instead.

use aicr_tests::{Kind, World, samples};
use serde_json::{Value, json};

/// The message of a field that is no duration in its range.
fn no_duration(name: &str, least: &str, most: &str) -> String {
    format!(
        "spec.rollout.{name}: Invalid value: \"string\": {name} must be a duration from {least} to {most} in h, m and s, \
         such as 10m or 1h30m"
    )
}

pub(crate) fn durations_are_checked_with_one_clear_line(world: &World) {
    for (name, least, most, good, bad) in [
        ("stabilizationWindow", "0s", "24h", ["0s", "24h", "1h39m60s"], ["10x", "1d", "0", "24h1s", "-5m", "1.5h"]),
        ("actionTimeout", "1m", "24h", ["1m", "6h", "60s"], ["59s", "25h", "", "10", "30 m", "99999h"]),
        ("deadline", "10m", "168h", ["30m", "168h", "7200m"], ["9m59s", "168h1s", "1w", "10M", "m", "123456s"]),
    ] {
        for text in good {
            world.create(&samples::runtime_with(json!({"rollout": {name: text}}))).accepted();
            world.delete(Kind::Runtime, "cluster");
        }
        for text in bad {
            let runtime = samples::runtime_with(json!({"rollout": {name: text}}));
            let message = world.create(&runtime).rejected(422, &no_duration(name, least, most));
            assert!(!message.contains("type conversion"), "{text}: {message}");
        }
    }
    let rollout = samples::rollout_with("no-duration", json!({"actionTimeout": "soon"}));
    let text = "spec.actionTimeout: Invalid value: \"string\": actionTimeout must be a duration from 1m to 24h";
    world.create(&rollout).rejected(422, text);
}

pub(crate) fn a_step_may_not_take_longer_than_its_rollout(world: &World) {
    let runtime = samples::runtime_with(json!({"rollout": {"actionTimeout": "2h", "deadline": "1h"}}));
    let text = "spec.rollout.actionTimeout: Invalid value: \"object\": actionTimeout 2h is longer than deadline 1h";
    world.create(&runtime).rejected_only_for(422, text);
    // The default counts as well.
    let runtime = samples::runtime_with(json!({"rollout": {"deadline": "20m"}}));
    world.create(&runtime).rejected(422, "actionTimeout 30m is longer than deadline 20m");
    world.create(&samples::runtime_with(json!({"rollout": {"actionTimeout": "60m", "deadline": "1h"}}))).accepted();
    world.delete(Kind::Runtime, "cluster");
}

pub(crate) fn a_pinned_selection_needs_a_digest(world: &World) {
    let text = "spec.selection.pinnedPlanDigest: Required value: \
                policy Pinned needs the digest of a plan: sha256: and 64 hex digits";
    for selection in [json!({"policy": "Pinned"}), json!({"policy": "Pinned", "pinnedPlanDigest": ""})] {
        world.create(&samples::runtime_with(json!({"selection": selection}))).rejected_only_for(422, text);
    }
    let pinned = json!({"policy": "Pinned", "pinnedPlanDigest": samples::digest('a')});
    world.create(&samples::runtime_with(json!({"selection": pinned}))).accepted();
    world.delete(Kind::Runtime, "cluster");
    for digest in ["sha256:abc", "latest", &samples::digest('G')] {
        let pinned = json!({"policy": "Pinned", "pinnedPlanDigest": digest});
        let runtime = samples::runtime_with(json!({"selection": pinned}));
        world.create(&runtime).rejected(422, "spec.selection.pinnedPlanDigest in body should match");
    }
}

pub(crate) fn a_target_agrees_with_its_digest(world: &World) {
    let text = "spec.target: Invalid value: \"object\": target must be the first 16 hex digits of targetPlanDigest";
    let rollout = samples::rollout_with("other-target", json!({"target": "c".repeat(16)}));
    world.create(&rollout).rejected_only_for(422, text);
    let mut without = samples::rollout("no-target");
    without["spec"].as_object_mut().unwrap().remove("target");
    world.create(&without).rejected_only_for(422, text);
    // A digest that is none has its own refusal and no conversion error beside it.
    let rollout = samples::rollout_with("no-digest", json!({"targetPlanDigest": "sha256:b"}));
    let message = world.create(&rollout).rejected(422, "spec.targetPlanDigest in body should match");
    assert!(!message.contains("substring"), "{message}");
    let removal = samples::rollout_with("remove-with-target", json!({"kind": "Remove"}));
    world.create(&removal).rejected(422, "a rollout of kind Remove has no targetPlanDigest, every other has one");
    let mut removal = samples::rollout_with("remove-1", json!({"kind": "Remove"}));
    removal["spec"].as_object_mut().unwrap().retain(|name, _| !name.starts_with("target"));
    world.create(&removal).accepted();
}

/// So many labels.
fn labels(count: usize) -> Value {
    Value::Object((0..count).map(|number| (format!("key-{number}"), json!("x"))).collect())
}

fn accelerated(selector: &Value) -> Value {
    json!({"placement": {"accelerated": {"nodeSelector": selector}}})
}

pub(crate) fn lists_maps_and_texts_are_bounded_in_a_runtime(world: &World) {
    let over =
        |component: &str, number: usize| json!({"component": component, "path": format!("p{number}"), "value": ""});
    let toleration = json!({"key": "gpu", "operator": "Exists"});
    let system = |fields: Value| json!({"placement": {"accelerated": {"nodeSelector": {"a": "b"}}, "system": fields}});
    let key = "every key must be a label key";
    for (fields, text) in [
        (accelerated(&json!({})), "spec.placement.accelerated.nodeSelector in body should have at least 1 properties"),
        (accelerated(&labels(17)), "spec.placement.accelerated.nodeSelector: Too many: 17: must have at most 16 items"),
        (accelerated(&json!({"a b": "x"})), key),
        (accelerated(&json!({"k".repeat(64): "x"})), key),
        (accelerated(&json!({format!("{}/x", "p".repeat(316)): "x"})), key),
        (accelerated(&json!({"a": "v".repeat(64)})), "Too long: may not be more than 63 bytes"),
        (accelerated(&json!({"a": "no value"})), "should match"),
        (system(json!({"nodeSelector": labels(17)})), "must have at most 16 items"),
        (
            system(json!({"tolerations": vec![toleration; 17]})),
            "spec.placement.system.tolerations: Too many: 17: must have at most 16 items",
        ),
        (json!({"configuration": {"workloadSelector": labels(17)}}), "must have at most 16 items"),
        (
            json!({"configuration": {"nodes": 0}}),
            "spec.configuration.nodes in body should be greater than or equal to 1",
        ),
        (json!({"configuration": {"nodes": 100_001}}), "should be less than or equal to 100000"),
        (
            json!({"configuration": {"storageClass": "s".repeat(254)}}),
            "spec.configuration.storageClass: Too long: may not be more than 253 bytes",
        ),
        (json!({"profile": "p".repeat(129)}), "spec.profile: Too long: may not be more than 128 bytes"),
        (json!({"profile": "no-value"}), "spec.profile in body should match"),
        (
            json!({"overrides": (0..257).map(|number| over("c", number)).collect::<Vec<_>>()}),
            "spec.overrides: Too many: 257: must have at most 256 items",
        ),
        (
            json!({"overrides": [over(&"c".repeat(64), 0)]}),
            "spec.overrides[0].component: Too long: may not be more than 63 bytes",
        ),
        (
            json!({"overrides": [{"component": "c", "path": "p", "value": "v".repeat(4097)}]}),
            "spec.overrides[0].value: Too long: may not be more than 4096 bytes",
        ),
        (json!({"adoption": {"runtimeUID": "cluster"}}), "spec.adoption.runtimeUID in body should match"),
    ] {
        world.create(&samples::runtime_with(fields)).rejected(422, text);
    }
    let full = json!({
        "placement": {"accelerated": {"nodeSelector": labels(16)}},
        "overrides": (0..256).map(|number| over("c", number)).collect::<Vec<_>>(),
    });
    world.create(&samples::runtime_with(full)).accepted();
    world.delete(Kind::Runtime, "cluster");
}

pub(crate) fn lists_and_texts_are_bounded_in_a_rollout(world: &World) {
    let mut wordy = samples::approval();
    wordy["reason"] = json!("r".repeat(1025));
    let mut silent = samples::acknowledgement(0);
    silent["reason"] = json!("");
    for (number, (fields, text)) in [
        (
            json!({"steps": (0..257).map(samples::step).collect::<Vec<_>>()}),
            "spec.steps: Too many: 257: must have at most 256 items",
        ),
        (
            json!({"inventory": (0..257).map(samples::inventory_row).collect::<Vec<_>>()}),
            "spec.inventory: Too many: 257: must have at most 256 items",
        ),
        (
            json!({"acknowledgements": (0..65).map(samples::acknowledgement).collect::<Vec<_>>()}),
            "spec.acknowledgements: Too many: 65: must have at most 64 items",
        ),
        (json!({"approval": wordy}), "spec.approval.reason: Too long: may not be more than 1024 bytes"),
        (
            json!({"acknowledgements": [silent]}),
            "spec.acknowledgements[0].reason in body should be at least 1 chars long",
        ),
        (json!({"retryToken": "t".repeat(257)}), "spec.retryToken: Too long: may not be more than 256 bytes"),
        (json!({"attempt": 0}), "spec.attempt in body should be greater than or equal to 1"),
        (json!({"deadline": "tomorrow"}), "spec.deadline in body must be of type date-time"),
    ]
    .into_iter()
    .enumerate()
    {
        world.create(&samples::rollout_with(&format!("too-much-{number}"), fields)).rejected(422, text);
    }
}

pub(crate) fn an_override_is_given_once(world: &World) {
    let value = |path: &str, value: &str| json!({"component": "gpu-operator", "path": path, "value": value});
    let runtime =
        samples::runtime_with(json!({"overrides": [value("driver.version", "1"), value("driver.version", "2")]}));
    // As the API server is told by replacement; an apply cannot even say it.
    world.create(&samples::runtime()).accepted();
    let twice = runtime["spec"]["overrides"].clone();
    for way in [aicr_tests::Way::Merge, aicr_tests::Way::JsonPatch, aicr_tests::Way::Replace] {
        let answer = world.change(Kind::Runtime, "cluster", way, |spec| spec["overrides"] = twice.clone());
        answer.rejected(
            422,
            "spec.overrides[1]: Duplicate value: {\"component\":\"gpu-operator\",\"path\":\"driver.version\"}",
        );
    }
    world.delete(Kind::Runtime, "cluster");
}

pub(crate) fn unknown_words_are_refused_with_the_known_ones(world: &World) {
    for (fields, text) in [
        (
            json!({"intent": "gaming"}),
            "spec.intent: Unsupported value: \"gaming\": supported values: \"training\", \"inference\"",
        ),
        (json!({"platform": "Kubeflow"}), "supported values: \"dynamo\", \"kubeflow\", \"nim\", \"runai\", \"slurm\""),
        (json!({"criteria": {"accelerator": "h900"}}), "spec.criteria.accelerator: Unsupported value: \"h900\""),
        (json!({"deletionPolicy": "Retain"}), "supported values: \"Orphan\", \"Delete\""),
        (json!({"validation": {"deployment": "Maybe"}}), "supported values: \"Required\", \"Disabled\""),
    ] {
        world.create(&samples::runtime_with(fields)).rejected(422, text);
    }
    let rollout = samples::rollout_with("other-kind", json!({"kind": "Rollback"}));
    world.create(&rollout).rejected(
        422,
        "spec.kind: Unsupported value: \"Rollback\": supported values: \"Change\", \"Adopt\", \"Remove\"",
    );
}
