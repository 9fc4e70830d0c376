//! Which releases of a bundle come before which, from the recipe's dependencies between components.

use std::collections::{BTreeMap, BTreeSet};

use super::{WHAT, info::Row};
use crate::{
    error::{ReadError, quoted},
    recipe::Recipe,
};

/// What the order says about one release.
pub(super) struct Placed {
    pub(super) depends_on: Vec<String>,
    pub(super) readiness_gate: bool,
}

/// One entry per row, in the rows' order.
///
/// The releases of one component (`-pre`, itself, `-post`, `-readiness`) are a chain in the bundle's order. Its first
/// one depends on the last release of every component that it needs; needed components that the bundle lacks are
/// left out, as AICR's own bundlers do.
pub(super) fn sort(rows: &[Row], recipe: &Recipe) -> Result<Vec<Placed>, ReadError> {
    let mut chains: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        chains.entry(&row.component).or_default().push(index);
    }
    let mut placed = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        let before: BTreeSet<usize> = match chains[row.component.as_str()].iter().rfind(|other| **other < index) {
            Some(previous) => BTreeSet::from([*previous]),
            None => needed(row, recipe, &chains)?,
        };
        if let Some(late) = before.iter().find(|other| **other >= index) {
            let problem = format!("the release {} depends on {}, which comes later", row.name, rows[*late].name);
            return Err(ReadError::damaged(WHAT, problem));
        }
        placed.push(Placed {
            depends_on: before.into_iter().map(|other| rows[other].name.clone()).collect(),
            readiness_gate: row.name.strip_suffix("-readiness") == Some(row.component.as_str()),
        });
    }
    Ok(placed)
}

fn needed(row: &Row, recipe: &Recipe, chains: &BTreeMap<&str, Vec<usize>>) -> Result<BTreeSet<usize>, ReadError> {
    let Some(component) = recipe.component(&row.component) else {
        let problem = format!("its recipe has no component {}", quoted(&row.component));
        return Err(ReadError::damaged(WHAT, problem));
    };
    let last = |name: &String| chains.get(name.as_str()).and_then(|chain| chain.last()).copied();
    Ok(component.dependencies.iter().filter_map(last).collect())
}
