//! Evidence of `aicr validate`: the summary on disk, and in a registry, unsigned.

use std::path::Path;

use serde_json::{Value, json};

use crate::args::Parsed;
use crate::failure::Failure;
use crate::{bundle, log, oci};

/// Writes what speaks for the verdict below `folder`, and pushes it where `--push` says.
pub(crate) async fn emit(parsed: &Parsed, folder: &str, recipe: &Value, report: &Value) -> Result<(), Failure> {
    let folder = Path::new(folder);
    let files = [
        ("summary-bundle/ctrf/deployment.json".to_owned(), report.to_string()),
        ("summary-bundle/recipe.yaml".to_owned(), recipe.to_string()),
    ];
    bundle::save(&files, folder)?;
    let Some(remote) = parsed.get("push") else { return Ok(()) };
    if !parsed.on("no-sign", false) {
        return Err(Failure::invalid("signing is not supported by the stand-in: give --no-sign"));
    }
    let target = oci::reference(remote.strip_prefix("oci://").unwrap_or(remote), "latest")?;
    let artifact = bundle::layer::artifact(&files, folder)?;
    oci::push(&target, &artifact, bundle::transport(parsed)).await?;
    let keys = [("reference", json!(target.whole())), ("digest", json!(artifact.digest()))];
    log::info("evidence pushed", &keys);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_and_the_recipe_are_written_where_nothing_is_to_be_pushed() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("evidence");
        let run = async {
            let (recipe, report) = (json!({"a": 1}), json!({"b": 2}));
            emit(&Parsed::default(), place.to_str().unwrap(), &recipe, &report).await
        };
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run).unwrap();
        let text = std::fs::read_to_string(place.join("summary-bundle/ctrf/deployment.json")).unwrap();
        assert_eq!(text, r#"{"b":2}"#);
    }
}
