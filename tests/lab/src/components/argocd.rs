//! Argo CD: its kinds, settings and identity, the repo-server and the application controller.

use std::time::Duration;

use crate::addresses::{API_PORT, CONTROLLER_METRICS_PORT, NODE_ADDRESS, REPO_SERVER_METRICS_PORT, REPO_SERVER_PORT};
use crate::command;
use crate::error::LabError;
use crate::files;
use crate::lab::Lab;
use crate::process::{Place, Spec};

const BOUND: Duration = Duration::from_mins(2);
const REDIS: &str = "127.0.0.1:6379";
const CONTROLLER: &str = "argocd-application-controller";

/// Namespace, settings and the controller's rights, as Argo CD's own manifests have them.
const OBJECTS: &str = r#"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: argocd-application-controller, namespace: argocd}}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata: {name: argocd-application-controller}
  rules:
  - {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
  - {nonResourceURLs: ["*"], verbs: ["*"]}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: argocd-application-controller}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: argocd-application-controller}
  subjects: [{kind: ServiceAccount, name: argocd-application-controller, namespace: argocd}]
- {apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-rbac-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-cmd-params-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}}
- apiVersion: v1
  kind: Secret
  metadata: {name: argocd-secret, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
  stringData: {server.secretkey: lab-only-key-lab-only-key-lab-only-key}
"#;

/// Applies kinds and settings, writes the controller's identity, starts both servers and waits until both answer.
pub(crate) fn start(lab: &Lab) -> Result<(), LabError> {
    configure(lab)?;
    lab.runner.start(repo_server(lab))?;
    lab.runner.start(controller(lab))?;
    for (part, port) in [("argocd-repo-server", REPO_SERVER_METRICS_PORT), (CONTROLLER, CONTROLLER_METRICS_PORT)] {
        let url = format!("http://127.0.0.1:{port}/healthz");
        lab.runner.wait_for(part, &format!("a healthy {part}"), BOUND, || {
            let mut get = lab.command(Place::Network, "busybox");
            let healthy = command::output(get.args(["wget", "-q", "-O", "-", &url]));
            healthy.map(drop).map_err(|error| error.to_string())
        })?;
    }
    Ok(())
}

/// Argo CD's kinds, once the API server serves them, and its namespace.
pub(crate) fn kinds(lab: &Lab) -> Result<(), LabError> {
    let crds = lab.parts.built("argocd")?.files();
    for kind in ["application", "applicationset", "appproject"] {
        let file = crds.join(format!("{kind}-crd.yaml")).to_string_lossy().into_owned();
        // Server side: a client-side apply would not fit into its annotation.
        lab.kubectl_inside(&["apply", "--server-side", "--filename", &file])?;
    }
    // `kubectl wait` fails on a kind that is too young to have conditions.
    lab.runner.wait_for("kube-apiserver", "Argo CD's kinds", BOUND, || {
        let args = ["get", "applications.argoproj.io,appprojects.argoproj.io", "--all-namespaces"];
        lab.kubectl_inside(&args).map(drop).map_err(|error| error.to_string())
    })?;
    lab.kubectl_inside(&["create", "namespace", "argocd"])?;
    Ok(())
}

fn configure(lab: &Lab) -> Result<(), LabError> {
    for folder in ["argocd/tls", "argocd/ssh", "argocd/gnupg", "argocd/plugins", "argocd/tmp"] {
        files::make_dir(&lab.layout.path(folder))?;
    }
    files::write(&lab.layout.path("argocd/ssh/ssh_known_hosts"), "")?;
    kinds(lab)?;
    lab.apply(OBJECTS)?;
    let token = ["create", "token", CONTROLLER, "--namespace", "argocd", "--duration", "168h"];
    let token = lab.kubectl_inside(&token)?;
    let identity = lab.layout.path("argocd/serviceaccount");
    files::make_dir(&identity)?;
    files::write(&identity.join("token"), token.trim())?;
    files::write(&identity.join("namespace"), "argocd")?;
    Ok(files::write(&identity.join("ca.crt"), files::read_bytes(&lab.layout.path("pki/ca.crt"))?)?)
}

fn repo_server(lab: &Lab) -> Spec {
    let args = [
        format!("--redis={REDIS}"),
        format!("--port={REPO_SERVER_PORT}"),
        format!("--metrics-port={REPO_SERVER_METRICS_PORT}"),
        "--disable-tls".to_owned(),
    ];
    let program = lab.layout.bin().join("argocd-repo-server");
    let spec = Spec::new("argocd-repo-server", Place::Network, program).args(args);
    environment(lab, spec).env("TMPDIR", lab.layout.text("argocd/tmp"))
}

/// It takes its identity from the fixed place of a pod's service account, so it gets a mount namespace where that
/// place is ours.
fn controller(lab: &Lab) -> Spec {
    let script = "set -e
        mount -t tmpfs -o mode=0755 lab-run /run
        mkdir -p /run/secrets/kubernetes.io/serviceaccount
        mount --bind \"$0\" /run/secrets/kubernetes.io/serviceaccount
        exec \"$@\"";
    let program = lab.layout.text("bin/argocd-application-controller");
    let args = [
        "--mount".to_owned(),
        "--propagation".to_owned(),
        "private".to_owned(),
        "--".to_owned(),
        "sh".to_owned(),
        "-c".to_owned(),
        script.to_owned(),
        lab.layout.text("argocd/serviceaccount"),
        program,
        "--namespace=argocd".to_owned(),
        format!("--redis={REDIS}"),
        format!("--repo-server={NODE_ADDRESS}:{REPO_SERVER_PORT}"),
        "--repo-server-plaintext".to_owned(),
        format!("--metrics-port={CONTROLLER_METRICS_PORT}"),
    ];
    let spec = environment(lab, Spec::new(CONTROLLER, Place::Network, "unshare").args(args));
    spec.env("KUBERNETES_SERVICE_HOST", NODE_ADDRESS).env("KUBERNETES_SERVICE_PORT", API_PORT.to_string())
}

fn environment(lab: &Lab, spec: Spec) -> Spec {
    spec.env("ARGOCD_TLS_DATA_PATH", lab.layout.text("argocd/tls"))
        .env("ARGOCD_SSH_DATA_PATH", lab.layout.text("argocd/ssh"))
        .env("ARGOCD_GNUPGHOME", lab.layout.text("argocd/gnupg"))
        .env("ARGOCD_PLUGINSOCKFILEPATH", lab.layout.text("argocd/plugins"))
        .env("ARGOCD_GPG_ENABLED", "false")
        .env("ARGOCD_ASK_PASS_SOCK", lab.layout.text("argocd/ask-pass.sock"))
}
