//! What each identity may do, and what it must not.

use std::fs;

use serde_json::{Value, json};

use super::{folder, golden_objects, words};

/// A rule with the role that it stands in.
struct Rule {
    role: String,
    namespace: String,
    groups: Vec<String>,
    resources: Vec<String>,
    names: Vec<String>,
    verbs: Vec<String>,
}

fn rules(objects: &[Value]) -> Vec<Rule> {
    let is_role = |object: &&Value| ["Role", "ClusterRole"].contains(&object["kind"].as_str().unwrap());
    let all = objects.iter().filter(is_role).flat_map(|object| {
        let meta = &object["metadata"];
        object["rules"].as_array().unwrap().iter().map(|rule| Rule {
            role: meta["name"].as_str().unwrap().to_owned(),
            namespace: meta["namespace"].as_str().unwrap_or_default().to_owned(),
            groups: words(rule, "apiGroups"),
            resources: words(rule, "resources"),
            names: words(rule, "resourceNames"),
            verbs: words(rule, "verbs"),
        })
    });
    all.collect()
}

impl Rule {
    fn is_about(&self, resource: &str) -> bool {
        self.resources.iter().any(|one| one == resource)
    }

    fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|one| one == verb)
    }
}

#[test]
fn nobody_has_a_wildcard_a_shell_a_token_or_another_identity() {
    for (file, objects) in golden_objects() {
        let rules = rules(&objects);
        assert!(rules.len() > 20, "{file}");
        for rule in &rules {
            let all = [&rule.groups, &rule.resources, &rule.verbs].into_iter().flatten();
            for word in all {
                let never = ["*", "escalate", "bind", "impersonate", "deletecollection"];
                assert!(!never.contains(&word.as_str()), "{file}: {} {word}", rule.role);
            }
            for never in
                ["pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "serviceaccounts/token"]
            {
                assert!(!rule.is_about(never), "{file}: {}", rule.role);
            }
            assert!(!rule.groups.iter().any(|group| group == "rbac.authorization.k8s.io"), "{file}: {}", rule.role);
        }
    }
}

#[test]
fn secrets_are_read_by_name_in_the_operators_namespace_and_never_created() {
    for (file, objects) in golden_objects() {
        let kept = |rule: &&Rule| rule.is_about("secrets") && ![REGISTRY, VALIDATION].contains(&rule.role.as_str());
        for rule in rules(&objects).iter().filter(kept) {
            assert_eq!((rule.role.as_str(), rule.namespace.as_str()), ("aicr-operator", "aicr-system"), "{file}");
            assert_eq!(rule.names.len(), 1, "{file}");
            let wanted: &[&str] =
                if rule.names[0] == "aicr-operator-webhook-ca" { &["get", "list", "watch", "patch"] } else { &["get"] };
            assert_eq!(rule.verbs, wanted, "{file}: {}", rule.names[0]);
        }
    }
}

/// The role that registry.provider aws adds.
const REGISTRY: &str = "aicr-operator-registry";
/// The role that validation.enabled adds.
const VALIDATION: &str = "aicr-operator-validation";

#[test]
fn with_ecr_the_operator_keeps_argo_cds_secret_by_name_and_makes_one_for_each_run_and_nothing_else() {
    let (mut with, mut without) = (0, 0);
    for (file, objects) in golden_objects() {
        let more: Vec<Value> = rules(&objects)
            .iter()
            .filter(|rule| rule.role == REGISTRY)
            .map(|rule| json!([rule.namespace, rule.groups, rule.resources, rule.names, rule.verbs]))
            .collect();
        if !objects.iter().any(|object| object.to_string().contains("--registry-provider=aws")) {
            assert!(more.is_empty(), "{file}");
            without += 1;
            continue;
        }
        with += 1;
        let wanted = [
            json!(["argocd", [""], ["secrets"], ["ecr"], ["get", "list", "watch", "patch"]]),
            json!(["aicr-jobs", [""], ["secrets"], [], ["create"]]),
        ];
        assert_eq!(more.len(), wanted.len(), "{file}");
        assert!(wanted.iter().all(|rule| more.contains(rule)), "{file}: {more:?}");
        let subjects = objects.iter().filter(|object| object["roleRef"]["name"] == REGISTRY);
        let operator = json!([{"kind": "ServiceAccount", "name": "aicr-operator", "namespace": "aicr-system"}]);
        assert_eq!(subjects.filter(|binding| binding["subjects"] == operator).count(), 2, "{file}");
    }
    assert!(with > 0 && without > 0);
}

#[test]
fn argo_cds_secret_is_a_shell_that_outlives_the_release_and_holds_no_token() {
    let mut count = 0;
    for (file, objects) in golden_objects() {
        let is_it = |object: &&Value| object["kind"] == "Secret" && object["metadata"]["namespace"] == "argocd";
        for secret in objects.iter().filter(is_it) {
            let meta = &secret["metadata"];
            assert_eq!(meta["name"], "ecr", "{file}");
            assert_eq!(meta["labels"]["argocd.argoproj.io/secret-type"], "repo-creds", "{file}");
            assert_eq!(meta["annotations"], json!({"helm.sh/resource-policy": "keep"}), "{file}");
            let url = "oci://123456789012.dkr.ecr.us-east-1.amazonaws.com/aicr/cluster-c";
            assert_eq!((&secret["stringData"], &secret["data"]), (&json!({"type": "oci", "url": url}), &Value::Null));
            count += 1;
        }
    }
    assert_eq!(count, 1);
}

#[test]
fn the_operator_writes_no_spec_of_a_runtime_no_namespace_no_bare_pod_and_no_settings_of_argo_cd() {
    for (file, objects) in golden_objects() {
        for rule in rules(&objects).iter().filter(|rule| rule.role == "aicr-operator") {
            let in_engine = !rule.namespace.is_empty() && !rule.namespace.starts_with("aicr-");
            if rule.is_about("clusterruntimes") {
                assert_eq!(rule.verbs, ["get", "list", "watch", "patch"], "{file}");
            }
            for read_only in ["nodes", "pods", "customresourcedefinitions", "appprojects"] {
                let writes = ["create", "update", "patch", "delete"].iter().any(|verb| rule.allows(verb));
                assert!(!(rule.is_about(read_only) && writes), "{file}: {read_only}");
            }
            assert!(!rule.is_about("namespaces"), "{file}");
            assert!(!(in_engine && (rule.is_about("configmaps") || rule.is_about("secrets"))), "{file}");
            // These are held to one object each.
            for named in ["mutatingwebhookconfigurations", "customresourcedefinitions", "appprojects"] {
                assert!(!rule.is_about(named) || rule.names.len() == 1, "{file}: {named}");
            }
            if rule.is_about("validatingwebhookconfigurations") {
                assert_eq!(rule.verbs, ["get", "list", "watch", "patch"], "{file}");
            }
        }
    }
}

/// Whether the operator of these objects has this word in an argument.
fn is_told(objects: &[Value], word: &str) -> bool {
    objects.iter().any(|object| object.to_string().contains(word))
}

fn account(name: &str) -> Value {
    json!([{ "kind": "ServiceAccount", "name": name, "namespace": "aicr-validation" }])
}

#[test]
fn validation_makes_one_account_cluster_admin_and_lets_the_operator_look_for_its_launcher() {
    let mut with = 0;
    for (file, objects) in golden_objects() {
        let more: Vec<Value> = rules(&objects)
            .iter()
            .filter(|rule| rule.role == VALIDATION)
            .map(|rule| json!([rule.namespace, rule.resources, rule.names, rule.verbs]))
            .collect();
        if !is_told(&objects, "--validation-enabled") {
            assert!(admins(&objects).is_empty() && more.is_empty(), "{file}");
            continue;
        }
        with += 1;
        assert_eq!(admins(&objects).len(), 1, "{file}");
        let launcher = json!(["aicr-validation", ["serviceaccounts"], ["aicr-validation-launcher"], ["get"]]);
        let secrets = json!(["aicr-validation", ["secrets"], [], ["create"]]);
        let secrets = is_told(&objects, "--registry-provider=aws").then_some(secrets);
        assert_eq!(more, [launcher].into_iter().chain(secrets).collect::<Vec<_>>(), "{file}");
    }
    assert!(with > 1);
}

/// Who is cluster-admin.
fn admins(objects: &[Value]) -> Vec<Value> {
    let bindings = objects.iter().filter(|object| object["roleRef"]["name"] == "cluster-admin");
    bindings.map(|binding| binding["subjects"].clone()).collect()
}

#[test]
fn with_v1_1_the_checks_are_cluster_admin_and_not_their_launcher_and_the_snapshots_leave_their_namespace_alone() {
    let objects = golden_objects();
    let of = |name: &str| &objects.iter().find(|(file, _)| file.ends_with(name)).unwrap().1;
    let has_account = |objects: &[Value], name: &str| {
        objects.iter().any(|object| object["kind"] == "ServiceAccount" && object["metadata"]["name"] == name)
    };
    let grants = |objects: &[Value]| rules(objects).iter().filter(|rule| rule.is_about("namespaces")).count();
    let (earlier, now) = (of("/earlier.yaml"), of("/aws.yaml"));
    assert_eq!(admins(earlier), [account("aicr-validation-launcher")]);
    assert_eq!(admins(now), [account("aicr-validator")]);
    assert!(!has_account(earlier, "aicr-validator") && has_account(now, "aicr-validator"));
    assert_eq!((grants(earlier), grants(now)), (1, 0));
}

/// The role of what is looked at before a step is ready.
const GATES: &str = "aicr-operator-gates";

#[test]
fn live_objects_of_releases_are_read_and_nothing_that_may_hold_a_secret() {
    let mut customs = 0;
    for (file, objects) in golden_objects() {
        for rule in rules(&objects).iter().filter(|rule| rule.role == GATES) {
            assert!(rule.verbs == ["list"] || rule.verbs == ["get"], "{file}: {:?}", rule.resources);
            for never in ["secrets", "configmaps", "pods/log", "nodes"] {
                assert!(!rule.is_about(never), "{file}: {never}");
            }
            customs += usize::from(rule.is_about("clusterpolicies") && rule.groups == ["nvidia.com"]);
        }
    }
    assert!(customs > 0);
}

#[test]
fn people_have_what_their_role_says_and_nothing_else() {
    let both = ["clusterruntimes", "runtimerollouts"];
    let reads = json!(["get", "list", "watch"]);
    let group = json!(["operator.aicr.run"]);
    let rule =
        |resources: &[&str], verbs: &Value| json!({ "apiGroups": group, "resources": resources, "verbs": verbs });
    let wanted = [
        (
            "aicr-operator-approver",
            json!([
                rule(&["runtimerollouts"], &json!(["get", "list", "watch", "patch"])),
                rule(&["clusterruntimes"], &reads)
            ]),
        ),
        (
            "aicr-operator-editor",
            json!([
                rule(&["clusterruntimes"], &json!(["get", "list", "watch", "create", "update", "patch", "delete"])),
                rule(&["runtimerollouts"], &reads)
            ]),
        ),
        ("aicr-operator-viewer", json!([rule(&both, &reads)])),
    ];
    for (file, objects) in golden_objects() {
        for (name, rules) in &wanted {
            let is_it = |object: &&Value| object["kind"] == "ClusterRole" && object["metadata"]["name"] == *name;
            assert_eq!(&objects.iter().find(is_it).unwrap()["rules"], rules, "{file}: {name}");
        }
    }
}

#[test]
fn a_reason_stands_beside_each_rule() {
    let mut count = 0;
    for room in ["operator", "people", "aicr", "engine"] {
        for entry in fs::read_dir(folder().join("templates").join(room)).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.windows(2).filter(|pair| pair[1].starts_with("  - apiGroups:")) {
                assert!(pair[0].trim_start().starts_with('#'), "{}: {}", path.display(), pair[1]);
                count += 1;
            }
        }
    }
    assert!(count > 25, "{count}");
}
