//! The node: a mount namespace of its own, containerd, kubelet, kube-proxy.

use std::time::Duration;

use serde_json::json;

use crate::addresses::{
    BUSYBOX_IMAGE, NODE_ADDRESS, NODE_NAME, PAUSE_IMAGE, POD_CIDR, REGISTRY, REGISTRY_PASSWORD, REGISTRY_USER,
};
use crate::command;
use crate::error::LabError;
use crate::files;
use crate::image::Image;
use crate::lab::Lab;
use crate::layout::Layout;
use crate::pki::Pki;
use crate::process::{Place, Spec};
use crate::run::NODE_ANCHOR;

const BOUND: Duration = Duration::from_secs(90);
/// containerd's socket, as seen in the node's mount namespace.
const CONTAINERD: &str = "/run/containerd/containerd.sock";
/// Cgroup of all pods: containerd's own name for it, since without cgroups of its own the kubelet names none.
pub(crate) const CGROUP: &str = "k8s.io";

/// What the node says of itself: an EKS machine with eight H100.
const LABELS: &str = "aicr.test/pool=accelerated,node.kubernetes.io/instance-type=p5.48xlarge,\
    nvidia.com/gpu.present=true,nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3,\
    topology.kubernetes.io/region=us-east-1,topology.kubernetes.io/zone=us-east-1a";

/// Writes the configuration of containerd, its network, and the kubelet.
pub(crate) fn configure(layout: &Layout) -> Result<(), LabError> {
    for folder in ["node/var-log", "node/var-lib", "node/opt", "node/containerd", "node/kubelet", "cni", "home"] {
        files::make_dir(&layout.path(folder))?;
    }
    files::write(&layout.path("cni/10-lab.conflist"), network().to_string())?;
    files::write(&layout.path("containerd.toml"), containerd(layout))?;
    files::write(&layout.path("resolv.conf"), "")?;
    Ok(files::write(&layout.path("kubelet.json"), kubelet(layout).to_string())?)
}

/// Makes the mount namespace: what containerd and the kubelet mount, or write outside their folders, stays in it and
/// ends with it.
pub(crate) fn start_anchor(lab: &Lab) -> Result<(), LabError> {
    let node = lab.layout.text("node");
    let script = "set -e
        mount --make-rshared /
        for pair in var-log:/var/log var-lib:/var/lib opt:/opt; do mount --bind \"$0/${pair%%:*}\" \"${pair#*:}\"; done
        mount -t tmpfs -o mode=0755 node-run /run
        touch \"$0/ready\"
        exec sleep infinity";
    let unshare = ["--mount", "--propagation", "private", "--", "sh", "-c", script, &node];
    lab.runner.start(Spec::new(NODE_ANCHOR, Place::Network, "unshare").args(unshare))?;
    let ready = lab.layout.path("node/ready");
    lab.runner.wait_for(NODE_ANCHOR, "the node's mount namespace", BOUND, || {
        if ready.exists() { Ok(()) } else { Err("not mounted yet".to_owned()) }
    })
}

/// Starts containerd, kubelet and kube-proxy and waits until the node is ready.
pub(crate) fn start(lab: &Lab) -> Result<(), LabError> {
    let config = lab.layout.text("containerd.toml");
    lab.runner.start(Spec::new("containerd", Place::Node, "containerd").args(["--config", config.as_str()]))?;
    lab.runner.wait_for("containerd", "an answer of containerd", BOUND, || {
        let mut ctr = lab.command(Place::Node, "ctr");
        command::output(ctr.args(["--address", CONTAINERD, "version"])).map(drop).map_err(|error| error.to_string())
    })?;
    lab.runner.start(kube_proxy(lab)?)?;
    lab.runner.start(kubelet_spec(lab)?)?;
    lab.runner.wait_for("kubelet", "a ready node", BOUND, || {
        let path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";
        match lab.kubectl_inside(&["get", "node", NODE_NAME, "-o", path]) {
            Ok(status) if status == "True" => Ok(()),
            Ok(status) => Err(format!("Ready is {status:?}")),
            Err(error) => Err(error.to_string()),
        }
    })
}

/// Pushes the images that every pod needs.
pub(crate) fn push_images(lab: &Lab) -> Result<(), LabError> {
    let name = |image: &str| image.trim_start_matches(REGISTRY).trim_start_matches('/').to_owned();
    lab.push_image(&Image::new(&name(BUSYBOX_IMAGE)).with_busybox().command(&["sh"]))?;
    let asleep = ["/bin/busybox", "sleep", "2147483647"];
    lab.push_image(&Image::new(&name(PAUSE_IMAGE)).with_busybox().entrypoint(&asleep))?;
    Ok(())
}

fn kubelet_spec(lab: &Lab) -> Result<Spec, LabError> {
    let args = [
        format!("--config={}", lab.layout.text("kubelet.json")),
        format!("--kubeconfig={}", lab.layout.text("kubeconfig/kubelet.kubeconfig")),
        format!("--hostname-override={NODE_NAME}"),
        format!("--node-ip={NODE_ADDRESS}"),
        format!("--node-labels={LABELS}"),
        format!("--root-dir={}", lab.layout.text("node/kubelet")),
    ];
    Ok(Spec::new("kubelet", Place::Node, lab.parts.built("kubelet")?.binary()).args(args))
}

fn kube_proxy(lab: &Lab) -> Result<Spec, LabError> {
    let args = [
        format!("--kubeconfig={}", lab.layout.text("kubeconfig/proxy.kubeconfig")),
        format!("--hostname-override={NODE_NAME}"),
        format!("--cluster-cidr={POD_CIDR}"),
        "--proxy-mode=nftables".to_owned(),
        // The machine's own table size is not ours to change.
        "--conntrack-max-per-core=0".to_owned(),
    ];
    Ok(Spec::new("kube-proxy", Place::Network, lab.parts.built("kube-proxy")?.binary()).args(args))
}

fn network() -> serde_json::Value {
    json!({
        "cniVersion": "0.4.0",
        "name": "lab",
        "plugins": [
            {
                "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": POD_CIDR}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

fn containerd(layout: &Layout) -> String {
    let root = layout.text("node/containerd");
    let cni = layout.text("cni");
    format!(
        r#"version = 2
root = "{root}"
state = "/run/containerd"
[grpc]
  address = "{CONTAINERD}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{cni}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".registry.mirrors."{REGISTRY}"]
    endpoint = ["http://{REGISTRY}"]
  [plugins."io.containerd.grpc.v1.cri".registry.configs."{REGISTRY}".auth]
    username = "{REGISTRY_USER}"
    password = "{REGISTRY_PASSWORD}"
"#
    )
}

fn kubelet(layout: &Layout) -> serde_json::Value {
    let pki = Pki::of(layout);
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "providerID": "aws:///us-east-1a/i-0lab",
        "address": NODE_ADDRESS,
        "podCIDR": POD_CIDR,
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD}"),
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": false},
            "x509": {"clientCAFile": pki.text("ca.crt")},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "tlsCertFile": pki.text("kubelet-serving.crt"),
        "tlsPrivateKeyFile": pki.text("kubelet-serving.key"),
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": false,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        "localStorageCapacityIsolation": true,
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "serializeImagePulls": false,
        "registryPullQPS": 0,
        "resolvConf": layout.text("resolv.conf"),
        "clusterDomain": "cluster.local",
    })
}
