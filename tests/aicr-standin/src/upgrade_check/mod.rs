//! `aicr upgrade-check`: two recipes in, a judged list of changes out.

mod judge;
mod jump;
mod report;

use std::path::Path;

use serde_json::{Value, json};

use crate::args::{Flag, Parsed};
use crate::catalog::Catalog;
use crate::failure::{Code, Failure};
use crate::place::{self, Format, Output, Place};
use crate::recipe;
use crate::{bundle, faults, log, yaml};

pub(crate) const FLAGS: &[Flag] = &[
    Flag::one("from").or("f"),
    Flag::one("to"),
    Flag::one("deployer").or("d"),
    Flag::switch("scan-cluster"),
    Flag::switch("fail-on-error"),
    Flag::one("output").or("o"),
    Flag::one("format").or("t"),
    Flag::one("kubeconfig").or("k"),
];

/// Runs the command. The report is written before the exit code is decided.
pub(crate) async fn run(parsed: &Parsed) -> Result<(), Failure> {
    let format = Format::parse(parsed.get("format"), Format::Table)?;
    let output = parsed.get("output");
    if format == Format::Table && matches!(Place::parse(output)?, Place::ConfigMap { .. }) {
        return Err(Failure::invalid("a table cannot be written to a ConfigMap: choose --format json or yaml"));
    }
    let from = parsed.get("from").ok_or_else(|| Failure::invalid("--from is required"))?;
    if from == "cluster" || parsed.on("scan-cluster", false) {
        return Err(Failure::invalid("reading the cluster is not supported by the stand-in"));
    }
    let kubeconfig = parsed.get("kubeconfig");
    let old = load(from, kubeconfig).await?;
    let new = match parsed.get("to") {
        Some(to) => load(to, kubeconfig).await?,
        None => recipe::again(&old)?,
    };
    let catalog = Catalog::load()?;
    let deployer = parsed.get("deployer");
    let rows = judge::rows(&catalog, &old, &new, deployer);
    if deployer.is_none() && rows.iter().any(judge::has_steps) {
        return Err(Failure::invalid(
            "a deployer is required: at least one component needs operator steps, and steps differ per deployer. Set \
             --deployer to the deployer that the bundle was made for",
        ));
    }
    let report = report::document(from, parsed.get("to"), deployer, &rows);
    let failing = report["summary"]["failing"].as_u64().unwrap_or_default();
    let output = Output { to: output, kind: "UpgradeReport", format, kubeconfig };
    match format {
        Format::Table => output.text(&report::table(&report)).await?,
        Format::Json => output.text(&faults::spoil(yaml::json(&report)?)).await?,
        Format::Yaml => output.value(&report).await?,
    }
    log::info("upgrade check complete", &[("components", json!(rows.len())), ("failing", json!(failing))]);
    if failing > 0 && parsed.on("fail-on-error", true) {
        let text = format!("upgrade check failed: {failing} component change(s) need attention");
        return Err(Failure::new(Code::Conflict, text));
    }
    Ok(())
}

/// A recipe file, a bundle directory, or a ConfigMap.
async fn load(word: &str, kubeconfig: Option<&str>) -> Result<Value, Failure> {
    let path = if Path::new(word).is_dir() { format!("{word}/recipe.yaml") } else { word.to_owned() };
    let recipe: Value = place::document(&path, kubeconfig).await?;
    bundle::check_kind(&recipe)?;
    Ok(recipe)
}
