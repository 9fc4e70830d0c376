//! The node groups that the placement names: are they there, apart, and of one kind?

use std::collections::{BTreeMap, BTreeSet};

use aicr_crds::{reason::Reason, runtime::Placement};

use crate::message::listed;

/// Label of a node's instance type.
const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// Label of a node's accelerator, as GPU feature discovery writes it.
const GPU_PRODUCT: &str = "nvidia.com/gpu.product";
/// How many nodes a message names.
const NAMED: usize = 3;

/// Labels of a node, however they are kept.
pub trait NodeLabels {
    /// The value of a label.
    fn value(&self, key: &str) -> Option<&str>;
}

impl NodeLabels for BTreeMap<String, String> {
    fn value(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

/// What is looked at of a node.
#[derive(Clone, Copy)]
pub struct NodeSeen<'a> {
    /// Name.
    pub name: &'a str,
    /// Labels.
    pub labels: &'a dyn NodeLabels,
    /// `status.nodeInfo.osImage`.
    pub os_image: &'a str,
    /// `status.nodeInfo.architecture`.
    pub architecture: &'a str,
}

/// The labels that discovery looks at: those of the placement's selectors, the instance type and the accelerator. A
/// change of any other label concerns nothing.
pub fn labels_of_interest(placement: &Placement) -> BTreeSet<&str> {
    let system = placement.system.iter().flat_map(|group| group.node_selector.keys());
    let selectors = placement.accelerated.node_selector.keys().chain(system).map(String::as_str);
    selectors.chain([INSTANCE_TYPE, GPU_PRODUCT]).collect()
}

/// One value of a property, and how many nodes have it.
pub type Group = BTreeMap<String, usize>;

/// Both node groups, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// Nodes that the accelerated selector matches.
    pub accelerated: usize,
    /// Nodes that the system selector matches.
    pub system: usize,
    /// Nodes in both.
    pub both: Vec<String>,
    /// Accelerators of the accelerated group.
    pub accelerators: Group,
    /// Operating systems of the accelerated group.
    pub systems: Group,
    /// Architectures of the accelerated group.
    pub architectures: Group,
    /// Distinct instance types of the accelerated group.
    pub instance_types: BTreeSet<String>,
}

impl Groups {
    /// Counts the groups of a placement over all nodes; an absent or empty system selector is no group.
    pub fn count<'a>(placement: &Placement, nodes: impl IntoIterator<Item = NodeSeen<'a>>) -> Self {
        let mut groups = Self::default();
        for node in nodes {
            let accelerated = matches(&placement.accelerated.node_selector, node.labels);
            let system = placement.system.as_ref().is_some_and(|group| matches(&group.node_selector, node.labels));
            groups.system += usize::from(system);
            if system && accelerated {
                groups.both.push(node.name.to_owned());
            }
            if accelerated {
                groups.add_accelerated(node);
            }
        }
        // Nodes come in no order, and a message must not change with it.
        groups.both.sort_unstable();
        groups
    }

    fn add_accelerated(&mut self, node: NodeSeen<'_>) {
        self.accelerated += 1;
        let product = node.labels.value(GPU_PRODUCT).unwrap_or("not labelled");
        *self.accelerators.entry(product.to_owned()).or_default() += 1;
        *self.systems.entry(node.os_image.to_owned()).or_default() += 1;
        *self.architectures.entry(node.architecture.to_owned()).or_default() += 1;
        self.instance_types.extend(node.labels.value(INSTANCE_TYPE).map(str::to_owned));
    }

    /// The first thing that is wrong with the groups, before anything is rendered.
    pub(super) fn check(&self, placement: &Placement) -> Result<(), (Reason, String)> {
        self.empty(placement)?;
        if !self.both.is_empty() {
            let message = format!(
                "nodes match both the accelerated and the system selector: {}; change a label or a selector",
                listed(&self.both, NAMED)
            );
            return Err((Reason::PlacementOverlap, message));
        }
        for (what, values) in [
            ("accelerator", &self.accelerators),
            ("operating system", &self.systems),
            ("architecture", &self.architectures),
        ] {
            if values.len() > 1 {
                let shown: Vec<String> =
                    values.iter().map(|(value, count)| format!("{value} ({count} nodes)")).collect();
                let message =
                    format!("accelerated nodes differ in {what}: {}; select one kind of node", listed(&shown, 5));
                return Err((Reason::AcceleratedGroupHeterogeneous, message));
            }
        }
        Ok(())
    }

    fn empty(&self, placement: &Placement) -> Result<(), (Reason, String)> {
        let system =
            placement.system.as_ref().map(|group| &group.node_selector).filter(|selector| !selector.is_empty());
        let groups = [
            ("accelerated", Some(&placement.accelerated.node_selector), self.accelerated),
            ("system", system, self.system),
        ];
        for (group, selector, count) in groups {
            if let (Some(selector), 0) = (selector, count) {
                let shown: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let message = format!(
                    "no node matches placement.{group}.nodeSelector {}; label nodes or correct the selector",
                    shown.join(",")
                );
                return Err((Reason::NodeGroupEmpty, message));
            }
        }
        Ok(())
    }
}

fn matches(selector: &BTreeMap<String, String>, labels: &dyn NodeLabels) -> bool {
    !selector.is_empty() && selector.iter().all(|(key, value)| labels.value(key) == Some(value.as_str()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Name, labels, and operating system, with its architecture behind a slash where it is not amd64.
    type Node = (&'static str, &'static [(&'static str, &'static str)], &'static str);

    fn check(nodes: &[Node]) -> Option<(Reason, String)> {
        let placement: Placement = serde_json::from_str(
            r#"{"accelerated":{"nodeSelector":{"pool":"gpu"}},"system":{"nodeSelector":{"role":"system"}}}"#,
        )
        .unwrap();
        let labels: Vec<BTreeMap<String, String>> = nodes
            .iter()
            .map(|node| node.1.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
            .collect();
        let seen = nodes.iter().zip(&labels).map(|(node, labels)| {
            let (os_image, architecture) = node.2.split_once('/').unwrap_or((node.2, "amd64"));
            NodeSeen { name: node.0, labels, os_image, architecture }
        });
        Groups::count(&placement, seen).check(&placement).err()
    }

    #[test]
    fn nodes_in_both_groups_are_named_in_one_order_whatever_order_they_come_in() {
        let nodes =
            [SYSTEM, ("b", BOTH, "Ubuntu"), ("d", BOTH, "Ubuntu"), ("a", BOTH, "Ubuntu"), ("c", BOTH, "Ubuntu")];
        let mut turned = nodes;
        turned.reverse();
        let (_, message) = check(&nodes).unwrap();
        assert!(message.contains(": a, b, c and 1 more;"), "{message}");
        assert_eq!(check(&turned).unwrap().1, message);
    }

    #[test]
    fn only_labels_of_selectors_type_and_accelerator_concern_discovery() {
        let placement =
            r#"{"accelerated":{"nodeSelector":{"pool":"gpu"}},"system":{"nodeSelector":{"role":"system"}}}"#;
        let placement: Placement = serde_json::from_str(placement).unwrap();
        let expected = ["node.kubernetes.io/instance-type", "nvidia.com/gpu.product", "pool", "role"];
        assert_eq!(labels_of_interest(&placement), expected.into());
    }

    const SYSTEM: Node = ("s1", &[("role", "system")], "Ubuntu");

    const GPU: &[(&str, &str)] = &[("pool", "gpu")];
    const H100: &[(&str, &str)] = &[("pool", "gpu"), ("nvidia.com/gpu.product", "H100")];
    const BOTH: &[(&str, &str)] = &[("pool", "gpu"), ("role", "system")];

    #[rstest]
    #[case::no_accelerated_node(vec![SYSTEM], Reason::NodeGroupEmpty, "placement.accelerated.nodeSelector pool=gpu")]
    #[case::no_system_node(vec![("a", GPU, "Ubuntu")], Reason::NodeGroupEmpty, "placement.system.nodeSelector role=system")]
    #[case::in_both(vec![SYSTEM, ("a", BOTH, "Ubuntu")], Reason::PlacementOverlap, "selector: a;")]
    #[case::two_products(
        vec![SYSTEM, ("a", H100, "Ubuntu"), ("b", GPU, "Ubuntu")],
        Reason::AcceleratedGroupHeterogeneous,
        "H100 (1 nodes), not labelled (1 nodes)"
    )]
    #[case::two_systems(
        vec![SYSTEM, ("a", GPU, "Ubuntu"), ("b", GPU, "Talos")],
        Reason::AcceleratedGroupHeterogeneous,
        "operating system: Talos (1 nodes), Ubuntu (1 nodes)"
    )]
    #[case::two_architectures(
        vec![SYSTEM, ("a", GPU, "Ubuntu"), ("b", GPU, "Ubuntu/arm64"), ("c", GPU, "Ubuntu")],
        Reason::AcceleratedGroupHeterogeneous,
        "accelerated nodes differ in architecture: amd64 (2 nodes), arm64 (1 nodes); select one kind of node"
    )]
    fn a_placement_that_cannot_be_resolved_is_named(
        #[case] nodes: Vec<Node>,
        #[case] reason: Reason,
        #[case] text: &str,
    ) {
        let (found, message) = check(&nodes).unwrap();
        assert_eq!(found, reason);
        assert!(message.contains(text), "{message}");
    }

    #[test]
    fn a_good_placement_passes() {
        assert_eq!(check(&[SYSTEM, ("a", &[("pool", "gpu")], "Ubuntu"), ("b", &[("pool", "gpu")], "Ubuntu")]), None);
    }
}
