//! A rollout's spec is covered by rules field by field, and holds no default.

use aicr_crds::crd::{cluster_runtime, runtime_rollout};

use crate::schema::{self, at, fields, rules};

/// What people add, once each.
const ADDED_LATER: [&str; 3] = ["acknowledgements", "approval", "revocation"];

#[test]
fn every_field_of_a_rollout_is_immutable_but_for_the_three_of_people() {
    let crd = runtime_rollout();
    let spec = at(schema::of(&crd), "spec");
    let required = spec.required.clone().unwrap();
    let of_spec = rules(spec);
    for (name, field) in spec.properties.as_ref().unwrap() {
        if ADDED_LATER.contains(&name.as_str()) {
            assert!(!required.contains(name), "{name}");
            continue;
        }
        assert!(rules(field).contains(&"self == oldSelf"), "{name} can be changed");
        let stays = format!("has(self.{name}) == has(oldSelf.{name})");
        assert!(required.contains(name) || of_spec.contains(&stays.as_str()), "{name} can be added or removed");
    }
}

#[test]
fn what_people_add_can_be_neither_changed_nor_removed() {
    let crd = runtime_rollout();
    let spec = at(schema::of(&crd), "spec");
    for name in ["approval", "revocation"] {
        assert_eq!(rules(at(spec, name)), ["self == oldSelf"], "{name}");
        let stays = format!("!has(oldSelf.{name}) || has(self.{name})");
        assert!(rules(spec).contains(&stays.as_str()), "{name}");
    }
    let appended = "!has(oldSelf.acknowledgements) || (has(self.acknowledgements) && \
                    oldSelf.acknowledgements.all(o, self.acknowledgements.exists(n, n == o)))";
    assert!(rules(spec).contains(&appended));
}

#[test]
fn the_spec_cannot_be_left_out() {
    for crd in [cluster_runtime(), runtime_rollout()] {
        assert_eq!(schema::of(&crd).required.as_deref(), Some(["spec".to_owned()].as_slice()));
    }
}

#[test]
fn no_field_of_a_rollouts_spec_has_a_default() {
    let crd = runtime_rollout();
    for (path, field) in fields(at(schema::of(&crd), "spec"), "spec") {
        assert_eq!(field.default, None, "{path}");
    }
}

#[test]
fn every_rule_says_which_field_it_is_about() {
    let (runtime, rollout) = (cluster_runtime(), runtime_rollout());
    let mut checked = 0;
    for crd in [&runtime, &rollout] {
        for (path, field) in fields(schema::of(crd), "") {
            for rule in field.x_kubernetes_validations.iter().flatten() {
                assert!(rule.message.as_ref().is_some_and(|text| text.len() > 10), "{path}: {}", rule.rule);
                let names_fields = rule.rule.contains("self.")
                    && !rule.rule.contains("self.matches")
                    && !rule.rule.contains("self.all(key");
                assert_eq!(rule.field_path.is_some(), names_fields, "{path}: {}", rule.rule);
                checked += 1;
            }
        }
    }
    assert!(checked > 30, "{checked} rules only");
}
