//! AICR's own vocabularies (v1.x CLI reference): intent, platform, service, accelerator, operating system.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reason::words;

words! {
    /// What the cluster is for.
    Intent {
        /// Training.
        Training = "training",
        /// Inference.
        Inference = "inference",
    }
}

words! {
    /// Platform on top of the stack.
    Platform {
        /// NVIDIA Dynamo.
        Dynamo = "dynamo",
        /// Kubeflow.
        Kubeflow = "kubeflow",
        /// NVIDIA NIM.
        Nim = "nim",
        /// Run:ai.
        RunAi = "runai",
        /// Slurm.
        Slurm = "slurm",
    }
}

words! {
    /// Kubernetes service.
    Service {
        /// Amazon EKS.
        Eks = "eks",
        /// Google GKE.
        Gke = "gke",
        /// Azure AKS.
        Aks = "aks",
        /// Oracle OKE.
        Oke = "oke",
        /// Red Hat `OpenShift`.
        Ocp = "ocp",
        /// kind.
        Kind = "kind",
        /// Linode LKE.
        Lke = "lke",
        /// Base Command Manager.
        Bcm = "bcm",
        /// Metal3.
        Metal3 = "metal3",
        /// RKE2.
        Rke2 = "rke2",
        /// Any other.
        Generic = "generic",
        /// k0s.
        K0s = "k0s",
    }
}

words! {
    /// Accelerator.
    Accelerator {
        /// H100.
        H100 = "h100",
        /// H200.
        H200 = "h200",
        /// GB200.
        Gb200 = "gb200",
        /// GB300.
        Gb300 = "gb300",
        /// B200.
        B200 = "b200",
        /// A100.
        A100 = "a100",
        /// L40.
        L40 = "l40",
        /// L40S.
        L40s = "l40s",
        /// RTX PRO 6000.
        RtxPro6000 = "rtx-pro-6000",
        /// VR200.
        Vr200 = "vr200",
    }
}

words! {
    /// Operating system of the accelerated nodes.
    Os {
        /// Ubuntu.
        Ubuntu = "ubuntu",
        /// Red Hat Enterprise Linux.
        Rhel = "rhel",
        /// Container-Optimized OS.
        Cos = "cos",
        /// Amazon Linux.
        AmazonLinux = "amazonlinux",
        /// Oracle Linux.
        Ol = "ol",
        /// Talos.
        Talos = "talos",
    }
}
