//! The small charts behind the stand-in's recipes: built always alike, written or pushed.

mod archive;
mod template;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use crate::args::{self, Flag};
use crate::catalog::{Catalog, Component};
use crate::failure::Failure;
use crate::log;
use crate::oci::{self, Transport};

const FLAGS: &[Flag] = &[
    Flag::one("push"),
    Flag::switch("plain-http"),
    Flag::one("out"),
    Flag::one("image"),
    Flag::switch("help").or("h"),
];

/// The image of every chart's Deployment unless another is named.
const IMAGE: &str = "10.245.0.1:5000/test/busybox:1";

/// Runs `aicr-standin-charts` with the words after the program's name.
pub fn run(words: &[String]) -> ExitCode {
    // Nobody else installs a provider in this process.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    match work(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            log::plain(&format!("aicr-standin-charts: {failure}"));
            ExitCode::from(failure.exit())
        }
    }
}

fn work(words: &[String]) -> Result<(), Failure> {
    let parsed = args::parse(FLAGS, words)?;
    if parsed.on("help", false) {
        log::out("aicr-standin-charts [--push HOST/PATH [--plain-http]] [--out DIR] [--image IMAGE]\n");
        return Ok(());
    }
    let charts = all(parsed.get("image").unwrap_or(IMAGE))?;
    let (push, out) = (parsed.get("push"), parsed.get("out"));
    if push.is_none() && out.is_none() {
        return Err(Failure::invalid("one of --push and --out is needed"));
    }
    if let Some(directory) = out {
        write(&charts, Path::new(directory))?;
    }
    let Some(prefix) = push else { return Ok(()) };
    let transport = if parsed.on("plain-http", false) { Transport::PlainHttp } else { Transport::Https };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(format!("no runtime: {error}")))?;
    runtime.block_on(push_all(&charts, prefix, transport))
}

/// A built chart.
struct Chart {
    name: String,
    version: String,
    metadata: String,
    archive: Vec<u8>,
}

/// Every chart of every release, each version once.
fn all(image: &str) -> Result<Vec<Chart>, Failure> {
    let catalog = Catalog::load()?;
    let mut wanted: BTreeMap<(String, String), &Component> = BTreeMap::new();
    for release in catalog.releases() {
        let pins = catalog.pins(release)?;
        for component in &catalog.components {
            if let (Some(chart), Some(pin)) = (&component.chart, pins.get(&component.name)) {
                // A renamed component has the chart of its first name.
                wanted.entry((chart.clone(), pin.clone())).or_insert(component);
            }
        }
    }
    wanted.into_iter().map(|((name, version), component)| build(component, name, version, image)).collect()
}

fn build(component: &Component, name: String, version: String, image: &str) -> Result<Chart, Failure> {
    let files = template::files(component, &name, &version, image)?;
    let archive = archive::tgz(&name, &files)
        .map_err(|error| Failure::internal(format!("failed to pack chart {name}: {error}")))?;
    let metadata = template::metadata(component, &name, &version).to_string();
    Ok(Chart { name, version, metadata, archive })
}

fn write(charts: &[Chart], directory: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::internal(format!("failed to write {}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    for chart in charts {
        let path = directory.join(format!("{}-{}.tgz", chart.name, chart.version));
        std::fs::write(path, &chart.archive).map_err(failed)?;
    }
    Ok(())
}

async fn push_all(charts: &[Chart], prefix: &str, transport: Transport) -> Result<(), Failure> {
    for chart in charts {
        let tag = chart.version.replace('+', "_");
        let target = oci::reference(&format!("{prefix}/{}:{tag}", chart.name), &tag)?;
        oci::push(&target, &archive::artifact(chart), transport).await?;
        log::out(&format!("pushed {}\n", target.whole()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_release_finds_its_charts_and_they_are_always_the_same() {
        let (first, second) = (all(IMAGE).unwrap(), all(IMAGE).unwrap());
        // Fourteen charts, three versions of gpu-operator, two of nodewright and of nvsentinel.
        assert_eq!(first.len(), 18);
        for (a, b) in first.iter().zip(&second) {
            assert_eq!(a.archive, b.archive, "{}", a.name);
        }
        let versions: Vec<&str> =
            first.iter().filter(|chart| chart.name == "gpu-operator").map(|chart| chart.version.as_str()).collect();
        assert_eq!(versions, ["v26.7.0", "v26.7.1", "v26.7.2"]);
    }
}
