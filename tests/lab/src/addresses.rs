//! Names and addresses inside the lab's network namespace.

/// The network namespace that holds every part.
pub const NETWORK_NAMESPACE: &str = "aicr-lab";
/// The namespace as a file, for `nsenter --net`.
pub const NETWORK_NAMESPACE_FILE: &str = "/run/netns/aicr-lab";
/// The bridge that carries the node's address.
pub const BRIDGE: &str = "lab0";
/// The node's address: API server, registry and Argo CD listen here, pods reach it too.
pub const NODE_ADDRESS: &str = "10.245.0.1";
/// Name of the one node.
pub const NODE_NAME: &str = "lab";
/// Addresses of pods.
pub const POD_CIDR: &str = "10.244.0.0/24";
/// Addresses of Services.
pub const SERVICE_CIDR: &str = "10.96.0.0/16";
/// Address of the Service `kubernetes`.
pub const KUBERNETES_SERVICE: &str = "10.96.0.1";
/// Port of the API server.
pub const API_PORT: u16 = 6443;
/// Host and port of the registry, the same from parts, pods and the node.
pub const REGISTRY: &str = "10.245.0.1:5000";
/// User of the registry, where it asks for one.
pub const REGISTRY_USER: &str = "aicr";
/// The registry's password: a fixed test word, the registry exists only inside the namespace.
pub const REGISTRY_PASSWORD: &str = "lab-registry";
/// Image with a static busybox and its applets; no entrypoint, command `sh`, user 65532.
pub const BUSYBOX_IMAGE: &str = "10.245.0.1:5000/test/busybox:1";
/// Image of the pod sandbox: busybox asleep.
pub const PAUSE_IMAGE: &str = "10.245.0.1:5000/test/pause:1";
/// Port of Argo CD's repo-server on the node's address.
pub const REPO_SERVER_PORT: u16 = 8481;
/// Port of the application controller's metrics and health.
pub const CONTROLLER_METRICS_PORT: u16 = 8482;
/// Port of the repo-server's metrics and health.
pub const REPO_SERVER_METRICS_PORT: u16 = 8484;
