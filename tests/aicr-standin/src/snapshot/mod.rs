//! `aicr snapshot`: the agent that collects, and the launcher that runs it as a Job.

mod agent;
pub(crate) mod job;
mod launcher;
mod topology;

use crate::args::Flag;

pub(crate) use agent::collect;
pub(crate) use launcher::{launch, run_id};

pub(crate) const FLAGS: &[Flag] = &[
    Flag::one("output").or("o"),
    Flag::one("format").or("t"),
    Flag::one("config"),
    Flag::one("kubeconfig").or("k"),
    Flag::one("namespace").or("n").env("AICR_NAMESPACE"),
    Flag::one("image").env("AICR_IMAGE"),
    Flag::many("image-pull-secret"),
    Flag::one("job-name"),
    Flag::one("service-account-name"),
    Flag::switch("add-roles-to-service-account"),
    Flag::many("node-selector"),
    Flag::many("toleration"),
    Flag::one("timeout"),
    Flag::switch("no-cleanup"),
    Flag::switch("privileged"),
    Flag::switch("require-gpu").env("AICR_REQUIRE_GPU"),
    Flag::one("runtime-class").env("AICR_RUNTIME_CLASS"),
    Flag::one("template"),
    Flag::one("max-nodes-per-entry").env("AICR_MAX_NODES_PER_ENTRY"),
    Flag::one("os").env("AICR_OS"),
    Flag::one("requests").env("AICR_REQUESTS"),
    Flag::one("limits").env("AICR_LIMITS"),
    Flag::one("cluster-config").env("AICR_CLUSTER_CONFIG_PATH"),
    Flag::switch("discover-network").env("AICR_DISCOVER_NETWORK"),
    Flag::one("aks-gpu-pools").env("AICR_AKS_GPU_POOLS_PATH"),
    Flag::one("gke-gpu-pools").env("AICR_GKE_GPU_POOLS_PATH"),
    Flag::one("oke-addons").env("AICR_OKE_ADDONS_PATH"),
];
