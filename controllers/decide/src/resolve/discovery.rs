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

/// What is looked at of a node.
#[derive(Clone, Copy, Debug)]
pub struct NodeSeen<'a> {
    /// Name.
    pub name: &'a str,
    /// Labels.
    pub labels: &'a BTreeMap<String, String>,
    /// `status.nodeInfo.osImage`.
    pub os_image: &'a str,
    /// `status.nodeInfo.architecture`.
    pub architecture: &'a str,
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
        groups
    }

    fn add_accelerated(&mut self, node: NodeSeen<'_>) {
        self.accelerated += 1;
        let product = node.labels.get(GPU_PRODUCT).map_or("not labelled", String::as_str);
        *self.accelerators.entry(product.to_owned()).or_default() += 1;
        *self.systems.entry(node.os_image.to_owned()).or_default() += 1;
        *self.architectures.entry(node.architecture.to_owned()).or_default() += 1;
        self.instance_types.extend(node.labels.get(INSTANCE_TYPE).cloned());
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

fn matches(selector: &BTreeMap<String, String>, labels: &BTreeMap<String, String>) -> bool {
    !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

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
        let seen = nodes.iter().zip(&labels).map(|(node, labels)| NodeSeen {
            name: node.0,
            labels,
            os_image: node.2,
            architecture: "amd64",
        });
        Groups::count(&placement, seen).check(&placement).err()
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
