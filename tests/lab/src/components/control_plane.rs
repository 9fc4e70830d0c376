//! The control plane: etcd, API server, controller manager, scheduler.

use std::time::Duration;

use crate::addresses::{API_PORT, NODE_ADDRESS, SERVICE_CIDR};
use crate::error::LabError;
use crate::files;
use crate::kubeconfig;
use crate::lab::Lab;
use crate::layout::Layout;
use crate::parts::Parts;
use crate::pki::Pki;
use crate::process::{Place, Spec};

/// Writes of the objects that tests count carry their body; all else is metadata.
const AUDIT_POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ["/healthz*", "/readyz*", "/livez*"]
- level: Request
  verbs: [create, update, patch, delete]
  resources:
  - {group: argoproj.io, resources: [applications]}
  - {group: operator.aicr.run}
- level: Metadata
"#;

/// How long each part may take to answer.
const BOUND: Duration = Duration::from_secs(90);

/// Kubeconfigs of the parts: file, user, groups.
const CLIENTS: [(&str, &str, &[&str]); 5] = [
    ("admin", "admin", &["system:masters"]),
    ("controller-manager", "system:kube-controller-manager", &[]),
    ("scheduler", "system:kube-scheduler", &[]),
    ("kubelet", "system:node:lab", &["system:nodes"]),
    ("proxy", "system:kube-proxy", &[]),
];

/// Writes keys, kubeconfigs and the audit policy.
pub(crate) fn configure(layout: &Layout, api_port: u16) -> Result<(), LabError> {
    let pki = Pki::of(layout);
    pki.make()?;
    let inside = format!("https://{NODE_ADDRESS}:{API_PORT}");
    for (file, user, groups) in CLIENTS {
        let identity = pki.client(file, user, groups)?;
        kubeconfig::write(&layout.path(&format!("kubeconfig/{file}.kubeconfig")), &inside, &pki, &identity)?;
        if file == "admin" {
            let outside = format!("https://127.0.0.1:{api_port}");
            kubeconfig::write(&layout.admin_kubeconfig(), &outside, &pki, &identity)?;
        }
    }
    Ok(files::write(&layout.path("audit-policy.yaml"), AUDIT_POLICY)?)
}

/// Starts etcd and the API server and waits until it is ready.
pub(crate) fn start_api(lab: &Lab) -> Result<(), LabError> {
    lab.runner.start(etcd(&lab.layout, &lab.parts)?)?;
    lab.runner.start(api_server(&lab.layout, &lab.parts)?)?;
    wait_for_api(lab)
}

/// Waits until the API server answers on its port inside the namespace.
pub(crate) fn wait_for_api(lab: &Lab) -> Result<(), LabError> {
    lab.runner.wait_for("kube-apiserver", "a ready API server", BOUND, || {
        lab.kubectl_inside(&["get", "--raw", "/readyz"]).map(drop).map_err(|error| error.to_string())
    })
}

/// Starts what needs the API server.
pub(crate) fn start_controllers(lab: &Lab) -> Result<(), LabError> {
    lab.runner.start(controller_manager(&lab.layout, &lab.parts)?)?;
    // The first sign that its controllers run: every namespace gets its ServiceAccount.
    lab.runner.wait_for("kube-controller-manager", "the default ServiceAccount", BOUND, || {
        let args = ["get", "serviceaccount", "default", "--namespace", "default"];
        lab.kubectl_inside(&args).map(drop).map_err(|error| error.to_string())
    })
}

/// Starts the scheduler.
pub(crate) fn start_scheduler(lab: &Lab) -> Result<(), LabError> {
    let program = lab.parts.built("kube-scheduler")?.binary();
    let kubeconfig = lab.layout.text("kubeconfig/scheduler.kubeconfig");
    let args = [format!("--kubeconfig={kubeconfig}"), "--leader-elect=false".to_owned()];
    lab.runner.start(Spec::new("kube-scheduler", Place::Network, program).args(args))
}

fn etcd(layout: &Layout, parts: &Parts) -> Result<Spec, LabError> {
    let client = "http://127.0.0.1:2379";
    let args = [
        format!("--data-dir={}", layout.text("etcd")),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        "--listen-peer-urls=http://127.0.0.1:2380".to_owned(),
        "--log-level=warn".to_owned(),
        // A lab's data need not survive the machine.
        "--unsafe-no-fsync".to_owned(),
    ];
    Ok(Spec::new("etcd", Place::Network, parts.built("etcd")?.binary()).args(args))
}

fn api_server(layout: &Layout, parts: &Parts) -> Result<Spec, LabError> {
    let pki = Pki::of(layout);
    let args = [
        "--etcd-servers=http://127.0.0.1:2379".to_owned(),
        "--bind-address=0.0.0.0".to_owned(),
        format!("--advertise-address={NODE_ADDRESS}"),
        format!("--secure-port={API_PORT}"),
        format!("--tls-cert-file={}", pki.text("apiserver.crt")),
        format!("--tls-private-key-file={}", pki.text("apiserver.key")),
        format!("--client-ca-file={}", pki.text("ca.crt")),
        format!("--service-account-key-file={}", pki.text("service-accounts.pub")),
        format!("--service-account-signing-key-file={}", pki.text("service-accounts.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        format!("--service-cluster-ip-range={SERVICE_CIDR}"),
        format!("--kubelet-client-certificate={}", pki.text("admin.crt")),
        format!("--kubelet-client-key={}", pki.text("admin.key")),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--allow-privileged".to_owned(),
        format!("--audit-policy-file={}", layout.text("audit-policy.yaml")),
        format!("--audit-log-path={}", layout.audit_log().display()),
        // One file for the whole run: tests count in it.
        "--audit-log-maxsize=4096".to_owned(),
    ];
    Ok(Spec::new("kube-apiserver", Place::Network, parts.built("kube-apiserver")?.binary()).args(args))
}

fn controller_manager(layout: &Layout, parts: &Parts) -> Result<Spec, LabError> {
    let pki = Pki::of(layout);
    let args = [
        format!("--kubeconfig={}", layout.text("kubeconfig/controller-manager.kubeconfig")),
        format!("--service-account-private-key-file={}", pki.text("service-accounts.key")),
        format!("--root-ca-file={}", pki.text("ca.crt")),
        "--use-service-account-credentials".to_owned(),
        "--leader-elect=false".to_owned(),
    ];
    let program = parts.built("kube-controller-manager")?.binary();
    Ok(Spec::new("kube-controller-manager", Place::Network, program).args(args))
}
