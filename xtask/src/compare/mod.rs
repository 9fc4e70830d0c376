//! Real AICR output read by the operator's own code: what is found, what had to be adapted, what cannot be checked.

mod adapt;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use aicr_read::{
    ReadError,
    bundle::{self, Bundle, Source},
    chart, recipe, snapshot, values,
};

use crate::error::XtaskError;

pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// What was found, by kind of remark.
#[derive(Default)]
struct Findings {
    found: Vec<String>,
    adapted: Vec<String>,
    unchecked: Vec<String>,
    wrong: Vec<String>,
}

/// Reads everything below a folder: snapshots, recipes, bundles.
pub(crate) fn run(folder: &Path) -> Result<(), XtaskError> {
    let mut findings = Findings::default();
    for path in children(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            let files = tree(&path)?;
            if files.contains_key("checksums.txt") {
                findings.bundle(&name, &files);
            }
        } else if matches!(path.extension().and_then(|end| end.to_str()), Some("yaml" | "yml" | "json")) {
            findings.document(&name, &fs::read(&path).map_err(XtaskError::read(&path))?);
        }
    }
    findings.tell()
}

impl Findings {
    fn document(&mut self, name: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let (bytes, note) = adapt::api_version(bytes);
        let adapted = note.map(|note| format!("{name}: {note}"));
        if text.contains("kind: Snapshot") {
            self.adapted.extend(adapted);
            match snapshot::read(&bytes) {
                Ok(read) => self.snapshot(name, &read),
                Err(error) => self.wrong.push(format!("{name}: {error}")),
            }
        } else if text.contains("kind: RecipeResult") {
            self.adapted.extend(adapted);
            match recipe::read(&bytes) {
                Ok(read) => {
                    let order: Vec<&str> = read.deployment_order.iter().map(String::as_str).collect();
                    self.found.push(format!("{name}: recipe of {} components: {}", order.len(), order.join(", ")));
                }
                Err(error) => self.wrong.push(format!("{name}: {error}")),
            }
        } else {
            self.unchecked.push(format!("{name}: the operator has no reader of such a document"));
        }
    }

    fn snapshot(&mut self, name: &str, read: &snapshot::Snapshot) {
        let nodes = read.node_count().map(|count| count.to_string());
        let readings = [
            ("service", read.service()),
            ("accelerator", read.accelerator()),
            ("os", read.os()),
            ("os version", read.os_version()),
            ("kernel", read.kernel()),
            ("kubernetes", read.kubernetes_version()),
            ("nodes", nodes.as_deref()),
        ];
        let shown = |(key, value): (&str, Option<&str>)| format!("{key} {}", value.unwrap_or("(no reading)"));
        self.found.push(format!("{name}: snapshot with {}", readings.map(shown).join(", ")));
    }

    fn bundle(&mut self, name: &str, files: &Files) {
        let sums = adapt::original_sums(files);
        self.found.push(format!("{name}: {} files are what checksums.txt says", sums.good));
        self.wrong.extend(sums.bad.iter().map(|path| format!("{name}: {path} is not what checksums.txt says")));
        if !sums.absent.is_empty() {
            let kinds = sums.absent.join(", ");
            self.unchecked.push(format!("{name}: sums of {} files that are not here: {kinds}", sums.absent.len()));
        }
        let (adapted, notes) = adapt::bundle(files);
        self.adapted.extend(notes.into_iter().map(|note| format!("{name}: {note}")));
        match bundle::read_files(&adapted) {
            Ok(read) => self.releases(name, &read),
            Err(error) => self.wrong.push(format!("{name}: {error}")),
        }
    }

    fn releases(&mut self, name: &str, read: &Bundle) {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for release in &read.releases {
            match check(release) {
                Ok(kind) => *kinds.entry(kind).or_default() += 1,
                Err(problem) => self.wrong.push(format!("{name}: release {}: {problem}", release.id)),
            }
        }
        let kinds: Vec<String> = kinds.into_iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        self.found.push(format!("{name}: {} releases ({})", read.releases.len(), kinds.join(", ")));
        for component in &read.recipe.deployment_order {
            if !read.releases.iter().any(|release| release.component == *component) {
                self.wrong.push(format!("{name}: the component {component} has no release"));
            }
        }
        self.unchecked
            .push(format!("{name}: what upstream charts hold (their CRDs, their default values): they are not here"));
        self.unchecked.push(format!("{name}: that the bundle is of aicr.version: it is of a version before 1.0.0"));
    }

    fn tell(self) -> Result<(), XtaskError> {
        for (title, rows) in [
            ("found", &self.found),
            ("adapted from the older layout", &self.adapted),
            ("could not be checked", &self.unchecked),
            ("wrong", &self.wrong),
        ] {
            eprintln!("{title}:");
            for row in rows {
                eprintln!("  {row}");
            }
        }
        if self.found.is_empty() {
            return Err(XtaskError::NothingToCompare);
        }
        if self.wrong.is_empty() { Ok(()) } else { Err(XtaskError::Compared { wrong: self.wrong.len() }) }
    }
}

/// What the mirror would do with a release, as far as nothing has to be fetched.
fn check(release: &bundle::Release) -> Result<&'static str, String> {
    values::check(&release.values).map_err(|error| error.to_string())?;
    match &release.source {
        Source::Local { name, files, .. } => {
            let packed = chart::local_content(files).and_then(|_| chart::local_archive(name, files));
            let read = packed.and_then(|packed| chart::read(&packed));
            read.map(|_| "local charts").map_err(|error: ReadError| error.to_string())
        }
        Source::Upstream { version, .. } if !chart::version_is_exact(version) => {
            Err(format!("the version {version:?} is not exact"))
        }
        Source::Upstream { repo, .. } if repo.starts_with("https://") => Ok("charts of Helm repositories"),
        Source::Upstream { chart, repo, .. } if repo.is_empty() && chart.starts_with("oci://") => {
            Ok("charts of OCI registries")
        }
        Source::Upstream { .. } => Err("its chart source is none that is mirrored".to_owned()),
    }
}

fn children(folder: &Path) -> Result<Vec<PathBuf>, XtaskError> {
    let entries = fs::read_dir(folder).map_err(XtaskError::read(folder))?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(XtaskError::read(folder))?;
    paths.sort();
    Ok(paths)
}

/// Every file below a folder, by its path there.
fn tree(folder: &Path) -> Result<Files, XtaskError> {
    let mut files = Files::new();
    let mut left = vec![folder.to_path_buf()];
    while let Some(next) = left.pop() {
        for path in children(&next)? {
            if path.is_dir() {
                left.push(path);
            } else if let Ok(below) = path.strip_prefix(folder) {
                files.insert(below.to_string_lossy().into_owned(), fs::read(&path).map_err(XtaskError::read(&path))?);
            }
        }
    }
    Ok(files)
}
