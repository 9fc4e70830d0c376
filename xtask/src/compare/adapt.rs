//! Output of AICR before 1.0.0, made what 1.0.0 writes: its apiVersion, and the files that it did not write yet.

use std::fmt::Write as _;

use aicr_crds::Digest;
use aicr_read::recipe;

use super::Files;

/// The apiVersion of AICR between 0.12 and 0.22.
const OLDER: &str = "aicr.run/v1alpha2";
/// The one of 1.0.0.
const NOW: &str = "aicr.run/v1";

/// A document with the apiVersion of 1.0.0, and a note where it had another one.
pub(super) fn api_version(bytes: &[u8]) -> (Vec<u8>, Option<String>) {
    let text = String::from_utf8_lossy(bytes);
    let older = format!("apiVersion: {OLDER}\n");
    if !text.starts_with(&older) {
        return (bytes.to_vec(), None);
    }
    let now = text.replacen(&older, &format!("apiVersion: {NOW}\n"), 1);
    (now.into_bytes(), Some(format!("apiVersion {OLDER} read as {NOW}")))
}

/// How the files compare with the sums that came with them.
pub(super) struct Sums {
    pub(super) good: usize,
    pub(super) bad: Vec<String>,
    pub(super) absent: Vec<String>,
}

pub(super) fn original_sums(files: &Files) -> Sums {
    let text = files.get("checksums.txt").map(|bytes| String::from_utf8_lossy(bytes)).unwrap_or_default();
    let mut sums = Sums { good: 0, bad: Vec::new(), absent: Vec::new() };
    for (sum, path) in text.lines().filter_map(|line| line.split_once("  ")) {
        match files.get(path) {
            None => sums.absent.push(path.to_owned()),
            Some(bytes) if Digest::of(bytes).hex() == sum => sums.good += 1,
            Some(_) => sums.bad.push(path.to_owned()),
        }
    }
    sums
}

/// A bundle as 1.0.0 would have written it, and what was done for that.
pub(super) fn bundle(files: &Files) -> (Files, Vec<String>) {
    let (mut files, mut notes) = (files.clone(), Vec::new());
    if let Some(bytes) = files.get("recipe.yaml") {
        let (bytes, note) = api_version(bytes);
        notes.extend(note.map(|note| format!("recipe.yaml: {note}")));
        files.insert("recipe.yaml".to_owned(), bytes);
    }
    if !files.contains_key("bundle-info.yaml")
        && let Some(info) = info(&files)
    {
        files.insert("bundle-info.yaml".to_owned(), info.into_bytes());
        notes.push("bundle-info.yaml made of the numbered folders and the recipe".to_owned());
    }
    if !notes.is_empty() {
        files.remove("checksums.txt");
        let line = |(path, bytes): (&String, &Vec<u8>)| format!("{}  {path}\n", Digest::of(bytes).hex());
        let sums: Vec<String> = files.iter().map(line).collect();
        files.insert("checksums.txt".to_owned(), sums.concat().into_bytes());
        notes.push("checksums.txt written again over the files as adapted, recipe.yaml included".to_owned());
    }
    (files, notes)
}

/// The folders in their order, each with its component and namespace.
fn info(files: &Files) -> Option<String> {
    let bytes = files.get("recipe.yaml")?;
    let recipe = recipe::read(bytes).ok()?;
    let mut folders: Vec<&str> = files.keys().filter_map(|path| path.split_once('/')).map(|(top, _)| top).collect();
    folders.dedup();
    let mut text = format!(
        "apiVersion: {NOW}\nkind: BundleInfo\nmetadata: {{version: {0}}}\nbuild:\n  deployer: helm\n  recipe: \
         {{digest: \"{1}\", path: recipe.yaml, version: {0}}}\nlayout:\n  entrypoint: deploy.sh\n  releases:\n",
        recipe.version,
        Digest::of(bytes)
    );
    for folder in folders {
        let Some((_, name)) = folder.split_once('-') else { continue };
        let stems = ["-pre", "-post", "-readiness"].iter().filter_map(|end| name.strip_suffix(end));
        let component = std::iter::once(name).chain(stems).find_map(|name| recipe.component(name))?;
        let namespace = component.namespace.as_deref()?;
        writeln!(text, "  - {{component: {}, name: {name}, namespace: {namespace}, path: {folder}}}", component.name)
            .ok()?;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_bundle_is_read_as_one_of_today_and_says_what_was_done() {
        let text = |text: &str| text.as_bytes().to_vec();
        let recipe = "apiVersion: aicr.run/v1alpha2\nkind: RecipeResult\nmetadata: {version: 0.16.0}\ncomponentRefs:\n\
                      - {name: tuning, namespace: skyhook}\ndeploymentOrder: [tuning]\n";
        let mut files = Files::from([
            ("recipe.yaml".to_owned(), text(recipe)),
            ("001-tuning/Chart.yaml".to_owned(), text("name: tuning\nversion: 0.1.0\n")),
            ("001-tuning/values.yaml".to_owned(), text("a: 1\n")),
            ("002-tuning-post/Chart.yaml".to_owned(), text("name: tuning-post\nversion: 0.1.0\n")),
            ("002-tuning-post/values.yaml".to_owned(), text("a: 1\n")),
        ]);
        let sum = Digest::of(b"a: 1\n").hex();
        files.insert(
            "checksums.txt".to_owned(),
            text(&format!("{sum}  001-tuning/values.yaml\n{sum}  install.sh\n{sum}  recipe.yaml\n")),
        );
        let sums = original_sums(&files);
        assert_eq!(
            (sums.good, sums.bad, sums.absent),
            (1, vec!["recipe.yaml".to_owned()], vec!["install.sh".to_owned()])
        );
        let (adapted, notes) = bundle(&files);
        assert_eq!(notes.len(), 3, "{notes:?}");
        let read = aicr_read::bundle::read_files(&adapted).unwrap();
        let ids: Vec<_> =
            read.releases.iter().map(|release| (release.id.as_str(), release.component.as_str())).collect();
        assert_eq!(ids, [("tuning", "tuning"), ("tuning-post", "tuning")]);
    }
}
