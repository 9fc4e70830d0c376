//! `aicr recipe`: criteria and a snapshot in, a resolved recipe out.

mod criteria;
mod document;
mod resolve;

use serde_json::{Value, json};

use crate::args::{Flag, Parsed};
use crate::catalog::Catalog;
use crate::failure::Failure;
use crate::place::{self, Format, Output};
use crate::{log, release};

use criteria::Criteria;
pub(crate) use criteria::accelerator_of;

pub(crate) const FLAGS: &[Flag] = &[
    Flag::one("service"),
    Flag::one("accelerator").or("gpu"),
    Flag::one("intent"),
    Flag::one("os"),
    Flag::one("platform"),
    Flag::one("nodes"),
    Flag::one("profile"),
    Flag::one("slurm-accounting-mode"),
    Flag::one("runtime-inventory"),
    Flag::one("gke-tcpxo-interfaces"),
    Flag::one("inherit-from"),
    Flag::one("snapshot").or("s"),
    Flag::one("config"),
    Flag::switch("criteria-strict").env("AICR_CRITERIA_STRICT"),
    Flag::one("data"),
    Flag::one("kubeconfig").or("k"),
    Flag::one("output").or("o"),
    Flag::one("format").or("t"),
];

/// Runs the command.
pub(crate) async fn run(parsed: &Parsed) -> Result<(), Failure> {
    let format = Format::parse(parsed.get("format"), Format::Yaml)?;
    for absent in ["config", "data", "runtime-inventory"] {
        if parsed.get(absent).is_some() {
            return Err(Failure::invalid(format!("--{absent} is not supported by the stand-in")));
        }
    }
    log::info("generating recipe offline — reads inputs only; does not deploy to or modify any cluster", &[]);
    let kubeconfig = parsed.get("kubeconfig");
    let snapshot = match parsed.get("snapshot") {
        Some(uri) => {
            log::info("loading snapshot from", &[("uri", json!(uri))]);
            Some(place::document::<Value>(uri, kubeconfig).await?)
        }
        None => None,
    };
    let mut stated = Criteria::stated(parsed)?;
    if let Some(from) = parsed.get("inherit-from") {
        stated.inherit(&inherited(from).await?);
    }
    let recipe = resolved(&stated, snapshot.as_ref(), parsed.get("profile"))?;
    report(parsed, &recipe);
    let output = Output { to: parsed.get("output"), kind: "RecipeResult", format, kubeconfig };
    output.value(&recipe).await
}

/// The recipe of a file or of a bundle directory.
async fn inherited(from: &str) -> Result<Value, Failure> {
    let directory = std::path::Path::new(from).is_dir();
    let path = if directory { format!("{from}/recipe.yaml") } else { from.to_owned() };
    place::document(&path, None).await
}

/// The document for stated criteria and a snapshot.
pub(crate) fn resolved(stated: &Criteria, snapshot: Option<&Value>, profile: Option<&str>) -> Result<Value, Failure> {
    let catalog = Catalog::load()?;
    let asked = stated.completed(snapshot);
    if asked.is_empty() {
        return Err(Failure::invalid(
            "no criteria provided: specify at least one of --service, --accelerator, --intent, --os, --platform, \
             --nodes, --config, or use --snapshot to load from a snapshot file",
        ));
    }
    let origin = if snapshot.is_some() { "building recipe from snapshot" } else { "building recipe from criteria" };
    log::info(origin, &[("criteria", json!(asked.words()))]);
    let choice = resolve::choose(&catalog, &asked, stated, snapshot)?;
    document::build(&catalog, &release::played(), &asked, &choice, profile)
}

/// The criteria of another recipe, resolved again by this binary.
pub(crate) fn again(recipe: &Value) -> Result<Value, Failure> {
    let mut criteria = Criteria::default();
    criteria.inherit(recipe);
    resolved(&criteria, None, None)
}

fn report(parsed: &Parsed, recipe: &Value) {
    let names: Vec<&str> =
        recipe["deploymentOrder"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let overlays = recipe["metadata"]["appliedOverlays"].as_array().map_or(0, Vec::len);
    log::info(
        "recipe generation completed",
        &[
            ("output", json!(parsed.get("output").unwrap_or("stdout"))),
            ("components", json!(names.len())),
            ("componentNames", json!(names.join(", "))),
            ("overlays", json!(overlays)),
        ],
    );
}

/// The recipe of the leaf most tests use, for the tests of other commands.
#[cfg(test)]
pub(crate) fn sample(version: &str) -> Value {
    let catalog = Catalog::load().unwrap();
    let stated = Criteria::of(&[
        ("service", "eks"),
        ("accelerator", "h100"),
        ("intent", "training"),
        ("os", "ubuntu"),
        ("platform", "kubeflow"),
    ]);
    let choice = resolve::choose(&catalog, &stated, &stated, None).unwrap();
    document::build(&catalog, version, &stated, &choice, None).unwrap()
}
