//! The matchConditions of the webhook configurations, so that nobody else's traffic waits for the door.
//!
//! The chart carries them; a test compares. Their traps are in `facts/kubernetes.md` K18 to K21: a key that may be absent
//! is always asked for with `?`, and `object` is null on DELETE.

/// One entry of `matchConditions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchCondition {
    /// Its name.
    pub name: &'static str,
    /// Its CEL expression.
    pub expression: String,
}

const IS_STATUS: &str = "request.?subResource.orValue('') == 'status'";

/// `approvals`: rollouts that gain consent, runtimes whose spec or list of authors differs.
pub fn approvals() -> Vec<MatchCondition> {
    let gains = |field: &str| format!("(object.?spec.?{field}.hasValue() && !oldObject.?spec.?{field}.hasValue())");
    let acknowledged =
        "object.?spec.?acknowledgements.orValue([]).size() > oldObject.?spec.?acknowledgements.orValue([]).size()";
    vec![
        MatchCondition {
            name: "rollout-gains-consent",
            expression: format!(
                "request.resource.resource != 'runtimerollouts' || {} || {} || {acknowledged}",
                gains("approval"),
                gains("revocation")
            ),
        },
        MatchCondition {
            name: "runtime-spec-differs",
            expression: format!("request.resource.resource != 'clusterruntimes' || {}", runtime_differs()),
        },
    ]
}

/// `rollouts`: all but the deletion of ended ones and updates that no rule concerns.
pub fn rollouts(operator: &str) -> Vec<MatchCondition> {
    let label = "operator.aicr.run/outcome";
    let differs =
        |map: &str, key: &str| format!("object.metadata.?{map}[?'{key}'] != oldObject.metadata.?{map}[?'{key}']");
    let mut concerns = vec![
        "oldObject == null".to_owned(),
        "request.operation == 'DELETE'".to_owned(),
        "object.?spec != oldObject.?spec".to_owned(),
        IS_STATUS.to_owned(),
        differs("labels", label),
        "object.metadata.?ownerReferences != oldObject.metadata.?ownerReferences".to_owned(),
    ];
    concerns.extend(PROTECTED.map(|key| differs("annotations", key)));
    concerns.push(is_operator(operator));
    vec![
        MatchCondition { name: "concerns-a-rule", expression: concerns.join(" || ") },
        MatchCondition {
            name: "not-the-deletion-of-an-ended-one",
            expression: format!(
                "request.operation != 'DELETE' || oldObject.metadata.?labels[?'{label}'].orValue('') == ''"
            ),
        },
    ]
}

/// The annotations of a rollout that rule 9 protects.
const PROTECTED: [&str; 4] = [
    aicr_crds::keys::annotation::EVIDENCE,
    aicr_crds::keys::annotation::FINISHED_AT,
    aicr_crds::keys::annotation::RETRY_SPENT,
    aicr_crds::keys::annotation::WRITTEN,
];

/// `runtimes`: the two brakes and plain metadata pass with the door down.
pub fn runtimes(operator: &str) -> Vec<MatchCondition> {
    vec![MatchCondition {
        name: "concerns-a-rule",
        expression: format!("{} || {IS_STATUS} || {}", runtime_differs(), is_operator(operator)),
    }]
}

/// `applications`: the operator's own writes and nobody else's.
pub fn applications(operator: &str) -> Vec<MatchCondition> {
    vec![MatchCondition { name: "by-the-operator", expression: is_operator(operator) }]
}

fn is_operator(operator: &str) -> String {
    format!("request.userInfo.username == '{operator}'")
}

/// K20: creation, or spec beyond the brakes, or the list of authors.
fn runtime_differs() -> String {
    const SPEC: &str = "object.?spec.orValue({})";
    const OLD: &str = "oldObject.?spec.orValue({})";
    let brakes = "['paused', 'suspendEngine']";
    let author = |object: &str| {
        format!("{object}.metadata.?annotations[?'{}'].orValue('')", aicr_crds::keys::annotation::SPEC_CHANGED_BY)
    };
    format!(
        "oldObject == null || !({SPEC}.all(k, k in {brakes} || (k in {OLD} && {SPEC}[k] == {OLD}[k])) && {OLD}.all(k, k in {brakes} || k in {SPEC})) || {} != {}",
        author("object"),
        author("oldObject")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Webhook;

    fn all() -> Vec<MatchCondition> {
        [approvals(), rollouts("system:serviceaccount:ns:op"), runtimes("op"), applications("op")].concat()
    }

    /// K18: `request.subResource` errors on every ordinary write, and so does any absent map.
    #[test]
    fn what_may_be_absent_is_asked_for_so() {
        for MatchCondition { name, expression } in all() {
            for bare in
                ["request.subResource", "object.spec", "oldObject.spec", "metadata.labels", "metadata.annotations"]
            {
                assert!(!expression.to_lowercase().contains(&bare.to_lowercase()), "{name}: {bare}");
            }
            assert_eq!(expression.matches('(').count(), expression.matches(')').count(), "{name}");
        }
    }

    #[test]
    fn every_annotation_that_a_rule_protects_brings_a_rollout_to_the_door() {
        let expression = &rollouts("op")[0].expression;
        for key in ["evidence", "finished-at", "retry-spent", "written", "outcome"] {
            let asked = format!("[?'operator.aicr.run/{key}'] != oldObject.");
            assert!(expression.contains(&asked), "{key}");
        }
    }

    #[test]
    fn the_applications_of_others_never_come_to_the_door() {
        let only = &applications(&crate::service_account("aicr-system", "aicr-operator"))[0];
        assert_eq!(only.expression, "request.userInfo.username == 'system:serviceaccount:aicr-system:aicr-operator'");
    }

    /// The operator's user name, as the chart's templates write it.
    const OPERATOR: &str = "system:serviceaccount:{{ .Release.Namespace }}:{{ include \"aicr-operator.name\" . }}";

    /// B43, B46: five resources and no other, whatever heals the cluster is never kept waiting; and where DELETE is
    /// asked for, no condition reads the object before it has excluded that.
    #[test]
    fn nothing_is_matched_but_our_kinds_applications_and_plans() {
        let mutating = include_str!("../../charts/aicr-operator/templates/operator/webhooks-mutating.yaml");
        let validating = include_str!("../../charts/aicr-operator/templates/operator/webhooks-validating.yaml");
        let matched = |key: &str| -> Vec<&str> {
            let lines = mutating.lines().chain(validating.lines());
            lines.filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix(key)).collect()
        };
        assert_eq!(
            matched("resources: "),
            [
                "[runtimerollouts]",
                "[clusterruntimes]",
                "[runtimerollouts, runtimerollouts/status]",
                "[clusterruntimes, clusterruntimes/status]",
                "[applications]",
                "[configmaps]"
            ]
        );
        let [ours, argo, core] = [r#"["operator.aicr.run"]"#, r#"["argoproj.io"]"#, r#"[""]"#];
        assert_eq!(matched("apiGroups: "), [ours, ours, ours, ours, argo, core]);
        assert_eq!(
            matched("operations: "),
            [
                "[UPDATE]",
                "[CREATE, UPDATE]",
                "[CREATE, UPDATE, DELETE]",
                "[CREATE, UPDATE]",
                "[CREATE, UPDATE, DELETE]",
                "[CREATE, UPDATE]"
            ]
        );
        for MatchCondition { name, expression } in [rollouts("op"), applications("op")].concat() {
            let guard = expression.find("request.operation == 'DELETE' || ").unwrap_or(usize::MAX);
            let reads = expression
                .match_indices("object.")
                .filter(|(at, _)| !expression[..*at].ends_with("old"))
                .map(|(at, _)| at);
            assert!(reads.min().is_none_or(|first| guard < first), "{name}");
        }
    }

    /// The conditions of one entry of a template.
    fn in_chart(template: &str, webhook: &str) -> Vec<(String, String)> {
        let start = format!("  - name: {webhook}.operator.aicr.run");
        let mut lines = template.lines().skip_while(|line| *line != start);
        assert!(lines.next().is_some(), "{webhook} is not in the chart");
        let mut found = Vec::new();
        while let Some(line) = lines.next().filter(|line| !line.starts_with("  - name: ")) {
            if let Some(name) = line.strip_prefix("      - name: ") {
                assert_eq!(lines.next().map(str::trim), Some("expression: >-"), "{name}");
                found.push((name.to_owned(), lines.next().unwrap_or_default().trim().to_owned()));
            }
        }
        found
    }

    #[test]
    fn the_chart_carries_exactly_these_conditions() {
        let mutating = include_str!("../../charts/aicr-operator/templates/operator/webhooks-mutating.yaml");
        let validating = include_str!("../../charts/aicr-operator/templates/operator/webhooks-validating.yaml");
        for (template, webhook, conditions) in [
            (mutating, Webhook::Approvals, approvals()),
            (validating, Webhook::Rollouts, rollouts(OPERATOR)),
            (validating, Webhook::Runtimes, runtimes(OPERATOR)),
            (validating, Webhook::Applications, applications(OPERATOR)),
            (validating, Webhook::Plans, Vec::new()),
        ] {
            let expected: Vec<_> =
                conditions.into_iter().map(|condition| (condition.name.to_owned(), condition.expression)).collect();
            assert_eq!(in_chart(template, webhook.name()), expected, "{webhook:?}");
            let path = format!("\"path\" \"{}\"", webhook.path());
            assert!(template.contains(&path), "{path}");
        }
        let entries = |template: &str| template.lines().filter(|line| line.starts_with("  - name: ")).count();
        assert_eq!(entries(mutating) + entries(validating), Webhook::ALL.len());
    }
}
