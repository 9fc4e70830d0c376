//! What each identity may do, as the API server's authorizer says, and what none may.

use aicr_lab::product::APPROVERS;
use aicr_tests::Stage;
use aicr_tests::caller::Caller;
use aicr_tests::stage::OPERATOR;
use serde_json::json;

use super::forged::EDITORS;

/// `verbs group/resource[/subresource] [namespace] [name]`, one a line.
struct List(&'static str);

const OPERATOR_MAY: List = List(
    "
get,list,watch operator.aicr.run/clusterruntimes
patch operator.aicr.run/clusterruntimes/status
get,list,watch,create,patch,delete operator.aicr.run/runtimerollouts
patch operator.aicr.run/runtimerollouts/status
get,list,watch /nodes
get,list,watch,create,patch,delete argoproj.io/applications argocd
get argoproj.io/appprojects argocd aicr
get,list,watch,create,delete /configmaps aicr-system
get,list,watch,create,patch,delete batch/jobs aicr-jobs
get,list,watch,create,patch,delete batch/jobs aicr-discovery
get,list,watch /pods aicr-jobs
get /pods/log aicr-jobs
get,list,watch,create,delete /configmaps aicr-jobs
create events.k8s.io/events default
create events.k8s.io/events argocd
create coordination.k8s.io/leases aicr-system
get,update,patch coordination.k8s.io/leases aicr-system aicr-operator
get,patch admissionregistration.k8s.io/validatingwebhookconfigurations - aicr-operator
get,patch admissionregistration.k8s.io/mutatingwebhookconfigurations - aicr-operator
get,patch /secrets aicr-system aicr-operator-webhook-ca
get /secrets aicr-system aicr-registry
list apps/daemonsets gpu-operator
list apps/controllerrevisions gpu-operator
list apps/deployments gpu-operator
list apps/statefulsets gpu-operator
list /pods gpu-operator
list admissionregistration.k8s.io/validatingwebhookconfigurations
list admissionregistration.k8s.io/mutatingwebhookconfigurations
get /services gpu-operator
get nvidia.com/clusterpolicies
",
);

const OPERATOR_MUST_NOT: List = List(
    "
create,delete operator.aicr.run/clusterruntimes
list,watch,create,delete /secrets aicr-system
get,list,watch /secrets kube-system
get,list /secrets argocd
get,list,watch /secrets
get,update,patch /configmaps argocd argocd-cm
patch,update,delete argoproj.io/appprojects argocd aicr
get argoproj.io/applications kube-system
create /pods aicr-jobs
create /pods/exec aicr-jobs
create /pods aicr-system
get,watch,delete /pods kube-system
get /pods/log gpu-operator
get,watch,patch,delete apps/daemonsets gpu-operator
list,watch /services gpu-operator
list /configmaps gpu-operator
create,update,patch,delete apps/deployments aicr-system
update,patch,delete /nodes
create,delete /namespaces
create /serviceaccounts/token aicr-system aicr-operator
impersonate /users
impersonate /serviceaccounts aicr-jobs
escalate,bind rbac.authorization.k8s.io/clusterroles
create,patch rbac.authorization.k8s.io/clusterrolebindings
create,delete admissionregistration.k8s.io/validatingwebhookconfigurations - aicr-operator
patch admissionregistration.k8s.io/validatingwebhookconfigurations - another
patch,update,delete apiextensions.k8s.io/customresourcedefinitions
get,patch coordination.k8s.io/leases kube-system
",
);

const APPROVER_MAY: List = List(
    "
get,list,watch,patch operator.aicr.run/runtimerollouts
get,list,watch operator.aicr.run/clusterruntimes
get,list /configmaps aicr-system
get,list,watch events.k8s.io/events default
",
);

const APPROVER_MUST_NOT: List = List(
    "
create,update,patch,delete operator.aicr.run/clusterruntimes
create,delete operator.aicr.run/runtimerollouts
update,patch operator.aicr.run/runtimerollouts/status
update,patch operator.aicr.run/clusterruntimes/status
get,list /secrets aicr-system
patch,delete /configmaps aicr-system
patch,delete argoproj.io/applications argocd
patch admissionregistration.k8s.io/validatingwebhookconfigurations - aicr-operator
",
);

const EDITOR_MAY: List = List(
    "
get,list,watch,create,update,patch,delete operator.aicr.run/clusterruntimes
get,list,watch operator.aicr.run/runtimerollouts
",
);

const EDITOR_MUST_NOT: List = List(
    "
create,update,patch,delete operator.aicr.run/runtimerollouts
update,patch operator.aicr.run/clusterruntimes/status
update,patch operator.aicr.run/runtimerollouts/status
get,list /secrets aicr-system
",
);

const VIEWER_MAY: List = List(
    "
get,list,watch operator.aicr.run/clusterruntimes
get,list,watch operator.aicr.run/runtimerollouts
",
);

const VIEWER_MUST_NOT: List = List(
    "
create,update,patch,delete operator.aicr.run/clusterruntimes
create,update,patch,delete operator.aicr.run/runtimerollouts
",
);

const JOBS_MAY: List = List(
    "
get,create,patch /configmaps aicr-jobs
",
);

const JOBS_MUST_NOT: List = List(
    "
list,delete /configmaps aicr-jobs
get,list /secrets aicr-jobs
get /configmaps aicr-system
create /pods aicr-jobs
get,list /nodes
get,patch operator.aicr.run/clusterruntimes
get,patch argoproj.io/applications argocd
",
);

const LAUNCHER_MAY: List = List(
    "
create,get,list,watch,delete batch/jobs aicr-discovery
get,list,watch /pods aicr-discovery
get /pods/log aicr-discovery
get,list /configmaps aicr-discovery
",
);

const AGENT_MAY: List = List(
    "
get,list /nodes
get,create,update,patch /configmaps aicr-discovery
",
);

const SNAPSHOT_MUST_NOT: List = List(
    "
get,list /secrets aicr-discovery
get,list /secrets aicr-system
create /pods aicr-discovery
create /pods/exec aicr-discovery
patch,update,delete /nodes
get /configmaps aicr-system
get,patch operator.aicr.run/clusterruntimes
get,patch argoproj.io/applications argocd
create rbac.authorization.k8s.io/clusterrolebindings
",
);

/// Leaves roles bound that later stories use.
pub(crate) fn each_identity_may_what_it_needs_and_no_more(stage: &Stage) {
    bind(stage, EDITORS, "aicr-operator-editor");
    bind(stage, "aicr-viewers", "aicr-operator-viewer");
    let caller = stage.caller(None);
    let mut asked = 0;
    for (user, groups, may, must_not) in [
        (OPERATOR, &[][..], &OPERATOR_MAY, &OPERATOR_MUST_NOT),
        ("alice", &[APPROVERS][..], &APPROVER_MAY, &APPROVER_MUST_NOT),
        ("bob", &[EDITORS][..], &EDITOR_MAY, &EDITOR_MUST_NOT),
        ("victor", &["aicr-viewers"][..], &VIEWER_MAY, &VIEWER_MUST_NOT),
        ("system:serviceaccount:aicr-jobs:aicr-jobs", &[][..], &JOBS_MAY, &JOBS_MUST_NOT),
        ("system:serviceaccount:aicr-discovery:aicr-snapshot-launcher", &[][..], &LAUNCHER_MAY, &SNAPSHOT_MUST_NOT),
        ("system:serviceaccount:aicr-discovery:aicr-snapshot-agent", &[][..], &AGENT_MAY, &SNAPSHOT_MUST_NOT),
    ] {
        asked += may.ask(&caller, user, groups, true) + must_not.ask(&caller, user, groups, false);
    }
    println!("figure: {asked} SubjectAccessReviews");
}

fn bind(stage: &Stage, group: &str, role: &str) {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": group.replace("aicr-", "test-")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
    });
    stage.lab.apply(&binding.to_string()).unwrap();
}

impl List {
    /// Asks each; all of them must come to the same.
    fn ask(&self, caller: &Caller, user: &str, groups: &[&str], allowed: bool) -> usize {
        let mut wrong = Vec::new();
        let mut asked = 0;
        for line in self.0.lines().filter(|line| !line.is_empty()) {
            let mut words = line.split(' ');
            let (verbs, what) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let (namespace, name) = (words.next().filter(|word| *word != "-"), words.next());
            let mut parts = what.split('/');
            let (group, resource, subresource) = (parts.next(), parts.next(), parts.next());
            for verb in verbs.split(',') {
                let attributes = json!({
                    "verb": verb, "group": group, "resource": resource, "subresource": subresource.unwrap_or_default(),
                    "namespace": namespace.unwrap_or_default(), "name": name.unwrap_or_default(),
                });
                asked += 1;
                if caller.may(user, groups, &attributes) != allowed {
                    wrong.push(format!("{verb} {what} {} {}", namespace.unwrap_or("-"), name.unwrap_or("-")));
                }
            }
        }
        let word = if allowed { "may not" } else { "may" };
        assert!(wrong.is_empty(), "{user} {word}:\n{}", wrong.join("\n"));
        asked
    }
}
