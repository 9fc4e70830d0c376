//! The tree of a Helm bundle: folders in deployment order, root files, checksums.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::settings::Settings;
use super::{values, wrapper};
use crate::catalog::{Catalog, Component, deployment_order};
use crate::failure::Failure;
use crate::faults::{self, Spoilt};
use crate::{log, oci, release, yaml};

/// A rendered bundle.
#[derive(Debug)]
pub(super) struct Rendered {
    /// Relative path and content, in the order they were made.
    pub(super) files: Vec<(String, String)>,
    pub(super) notes: Vec<String>,
}

/// One release of the bundle.
struct Release<'a> {
    component: &'a Component,
    name: String,
    files: Vec<(&'static str, String)>,
    manifest: Option<String>,
}

/// Renders the bundle; `root` stands before the paths in the checksums.
pub(super) fn render(catalog: &Catalog, recipe: &Value, settings: &Settings, root: &str) -> Result<Rendered, Failure> {
    let entries = entries(recipe, settings);
    check_settings(recipe, &entries, settings)?;
    let notes = notes(&entries, settings)?;
    let mut releases = Vec::new();
    for name in order(&entries)? {
        let component = catalog
            .component(&name)
            .ok_or_else(|| Failure::invalid(format!("component {name} is unknown to this aicr build")))?;
        releases.extend(component_releases(component, entries[name.as_str()], settings)?);
    }
    let mut files = Vec::new();
    for (index, release) in releases.iter().enumerate() {
        let folder = folder(index, &release.name);
        let kind = if release.manifest.is_some() { "local-helm" } else { "upstream-helm" };
        log::info(
            "wrote local chart folder",
            &[
                ("index", json!(index + 1)),
                ("dir", json!(folder)),
                ("kind", json!(kind)),
                ("parent", json!(release.component.name)),
            ],
        );
        files.extend(release.files.iter().map(|(path, content)| (format!("{folder}/{path}"), content.clone())));
    }
    root_files(&mut files, recipe, &entries, settings, &releases)?;
    let mut checksums = String::new();
    for (path, content) in &files {
        // Writing to a String cannot fail.
        let _ = writeln!(checksums, "{}  {root}{path}", oci::hex(content.as_bytes()));
    }
    files.push(("checksums.txt".into(), checksums));
    Ok(Rendered { files, notes })
}

fn folder(index: usize, release: &str) -> String {
    format!("{:03}-{release}", index + 1)
}

/// The recipe's components that stay, by name.
fn entries<'a>(recipe: &'a Value, settings: &Settings) -> BTreeMap<&'a str, &'a Value> {
    let all = recipe["componentRefs"].as_array().into_iter().flatten();
    all.filter_map(|entry| entry["name"].as_str().map(|name| (name, entry)))
        .filter(|(name, entry)| entry["overrides"]["enabled"] != json!(false) && !settings.drops(name))
        .collect()
}

fn order(entries: &BTreeMap<&str, &Value>) -> Result<Vec<String>, Failure> {
    let strings =
        |value: &Value| value.as_array().into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect();
    let needs = entries.iter().map(|(name, entry)| ((*name).to_owned(), strings(&entry["dependencyRefs"]))).collect();
    deployment_order(&needs)
}

/// Settings for absent components and for paths a profile owns are refused.
fn check_settings(recipe: &Value, entries: &BTreeMap<&str, &Value>, settings: &Settings) -> Result<(), Failure> {
    let owned = &recipe["metadata"]["selectedProfile"]["ownedPaths"];
    for setting in &settings.set {
        let name = setting.component.as_str();
        let Some(entry) = entries.get(name) else {
            let recipe_has =
                recipe["componentRefs"].as_array().into_iter().flatten().any(|entry| entry["name"] == name);
            if recipe_has && settings.drops(name) {
                continue;
            }
            let (state, word) = if recipe_has { ("disabled in", "component") } else { ("not in", "unknown component") };
            return Err(Failure::invalid(format!("--set {word} \"{name}\" is {state} the recipe")));
        };
        let owns = owned[name].as_array().is_some_and(|paths| paths.iter().any(|path| *path == setting.path));
        if owns && crate::tree::at(&entry["overrides"], &setting.path) != Some(&setting.value) {
            return Err(Failure::invalid(format!("--set {name}:{} is owned by the selected profile", setting.path)));
        }
    }
    Ok(())
}

/// What the bundler says without stopping, and the one thing it stops for.
fn notes(entries: &BTreeMap<&str, &Value>, settings: &Settings) -> Result<Vec<String>, Failure> {
    let mut notes = Vec::new();
    if entries.contains_key("nodewright-customizations") {
        if settings.workload.is_empty() {
            notes.push("nodewright-customizations is enabled but --workload-selector is not set".to_owned());
        }
        if settings.accelerated.selector.is_empty() {
            notes.push("nodewright-customizations is enabled but --accelerated-node-selector is not set".to_owned());
        }
    }
    let stored = entries.contains_key("kube-prometheus-stack") && settings.storage_class.is_some();
    if stored && settings.system.selector.is_empty() {
        return Err(Failure::invalid("kube-prometheus-stack with a storage class requires --system-node-selector"));
    }
    for note in &notes {
        log::warn(note, &[]);
    }
    Ok(notes)
}

fn component_releases<'a>(
    component: &'a Component,
    entry: &Value,
    settings: &Settings,
) -> Result<Vec<Release<'a>>, Failure> {
    let values = values::compose(component, entry, settings)?;
    let text = values_text(&values)?;
    let version = entry["version"].as_str().or(component.payload.as_deref()).unwrap_or("0.0.0");
    let mut releases = Vec::new();
    if let Some(chart) = entry["chart"].as_str() {
        releases.push(upstream(component, chart, (entry["source"].as_str().unwrap_or_default(), version), &text));
    }
    if let Some(manifest) = &component.manifest {
        let name = if releases.is_empty() { component.name.clone() } else { format!("{}-post", component.name) };
        let content = wrapper::manifest(component, manifest, &values)?;
        releases.push(local(component, name, (manifest, content), (version, &text))?);
    }
    if settings.readiness && component.readiness {
        let name = format!("{}-readiness", component.name);
        let none = values_text(&json!({}))?;
        releases.push(local(component, name, ("readiness", wrapper::gate(component)?), (version, &none))?);
    }
    Ok(releases)
}

fn values_text(values: &Value) -> Result<String, Failure> {
    let empty = values.as_object().is_some_and(serde_json::Map::is_empty);
    let body = if empty { "{}\n".to_owned() } else { yaml::text(values)? };
    Ok(format!("# Generated by AICR\n---\n{body}"))
}

fn upstream<'a>(component: &'a Component, chart: &str, (source, version): (&str, &str), values: &str) -> Release<'a> {
    let (chart, repo) =
        if source.starts_with("oci://") { (format!("{source}/{chart}"), "") } else { (chart.to_owned(), source) };
    let files = vec![
        ("values.yaml", values.to_owned()),
        ("cluster-values.yaml", "# Generated by AICR\n---\n".to_owned()),
        ("upstream.env", format!("CHART='{chart}'\nREPO='{repo}'\nVERSION='{version}'\n")),
        ("install.sh", install(component, &component.name)),
    ];
    Release { component, name: component.name.clone(), files, manifest: None }
}

fn local<'a>(
    component: &'a Component,
    name: String,
    (manifest, content): (&str, String),
    (version, values): (&str, &str),
) -> Result<Release<'a>, Failure> {
    let files = vec![
        ("Chart.yaml", wrapper::chart(&name, &component.name, version)?),
        ("values.yaml", values.to_owned()),
        ("cluster-values.yaml", "# Generated by AICR\n---\n".to_owned()),
        ("templates/manifest.yaml", content),
        ("install.sh", install(component, &name)),
    ];
    Ok(Release { component, name, files, manifest: Some(manifest.to_owned()) })
}

fn install(component: &Component, release: &str) -> String {
    format!(
        "#!/usr/bin/env bash\n# The stand-in installs nothing.\necho 'helm upgrade --install {release} --namespace {} \
         --create-namespace -f values.yaml -f cluster-values.yaml'\nexit 1\n",
        component.namespace
    )
}

fn root_files(
    files: &mut Vec<(String, String)>,
    recipe: &Value,
    entries: &BTreeMap<&str, &Value>,
    settings: &Settings,
    releases: &[Release<'_>],
) -> Result<(), Failure> {
    files.push(("README.md".into(), readme(recipe, releases)));
    files.push(("deploy.sh".into(), "#!/usr/bin/env bash\necho 'the stand-in deploys nothing'\nexit 1\n".into()));
    let kept = yaml::text(&kept(recipe, entries))?;
    let info = yaml::text(&info(recipe, &kept, settings, releases))?;
    files.push(("recipe.yaml".into(), kept));
    match faults::output() {
        Some(Spoilt::NoBundleInfo) => {}
        None | Some(Spoilt::Truncated | Spoilt::ApiVersion | Spoilt::Twice) => {
            files.push(("bundle-info.yaml".into(), faults::spoil(info)));
        }
    }
    Ok(())
}

/// The recipe without the components that were dropped.
fn kept(recipe: &Value, entries: &BTreeMap<&str, &Value>) -> Value {
    let mut recipe = recipe.clone();
    let stays = |name: &Value| name.as_str().is_some_and(|name| entries.contains_key(name));
    if let Some(refs) = recipe["componentRefs"].as_array_mut() {
        refs.retain(|entry| stays(&entry["name"]));
    }
    if let Some(order) = recipe["deploymentOrder"].as_array_mut() {
        order.retain(stays);
    }
    recipe
}

fn readme(recipe: &Value, releases: &[Release<'_>]) -> String {
    let rows: Vec<String> = releases.iter().map(|r| format!("| {} | {} |", r.name, r.component.namespace)).collect();
    let rows = rows.join("\n");
    format!(
        "# Bundle of the AICR stand-in\n\nRecipe version: {}\nBundler version: {}\n\n| Release | Namespace |\n| --- | --- \
         |\n{rows}\n",
        recipe["metadata"]["version"].as_str().unwrap_or_default(),
        release::stamped(),
    )
}

fn info(recipe: &Value, text: &str, settings: &Settings, releases: &[Release<'_>]) -> Value {
    let rows = releases.iter().enumerate().map(|(index, release)| {
        let mut row = json!({
            "component": release.component.name,
            "name": release.name,
            "namespace": release.component.namespace,
            "path": folder(index, &release.name),
        });
        if let Some(manifest) = &release.manifest {
            row["manifest"] = json!(manifest);
        }
        row
    });
    json!({
        "apiVersion": "aicr.run/v1",
        "build": {
            "deployer": "helm",
            "recipe": {
                "digest": oci::digest(text.as_bytes()),
                "path": "recipe.yaml",
                "version": recipe["metadata"]["version"],
            },
            "settings": settings.document(),
        },
        "kind": "BundleInfo",
        "layout": {"entrypoint": "deploy.sh", "releases": rows.collect::<Vec<_>>()},
        "metadata": {"version": release::stamped()},
    })
}

#[cfg(test)]
mod tests {
    use super::super::settings::Setting;
    use super::*;
    use crate::recipe::sample;

    fn bundle(version: &str, settings: &Settings) -> BTreeMap<String, String> {
        let rendered = render(&Catalog::load().unwrap(), &sample(version), settings, "").unwrap();
        rendered.files.into_iter().collect()
    }

    fn set(component: &str, path: &str, value: Value) -> Settings {
        let setting = Setting { component: component.into(), path: path.into(), value };
        Settings { set: vec![setting], ..Settings::default() }
    }

    fn releases(files: &BTreeMap<String, String>) -> Vec<String> {
        let info: Value = yaml::read(&files["bundle-info.yaml"]).unwrap();
        let rows = info["layout"]["releases"].as_array().unwrap();
        rows.iter().map(|row| row["path"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_kubeflow_leaf_has_sixteen_releases_and_the_gate_makes_seventeen() {
        let plain = releases(&bundle("v1.0.0", &Settings::default()));
        assert_eq!(plain.len(), 16);
        assert_eq!((plain[8].as_str(), plain[12].as_str()), ("009-gpu-operator", "013-kubeflow-trainer-post"));
        let gated = releases(&bundle("v1.0.0", &Settings { readiness: true, ..Settings::default() }));
        assert_eq!((gated.len(), gated[9].as_str()), (17, "010-gpu-operator-readiness"));
    }

    #[test]
    fn a_folder_holds_upstream_env_or_a_chart_never_both() {
        let files = bundle("v1.0.0", &Settings::default());
        for path in releases(&files) {
            let has = |name: &str| files.contains_key(&format!("{path}/{name}"));
            assert_ne!(has("upstream.env"), has("Chart.yaml"), "{path}");
            assert!(has("values.yaml") && has("cluster-values.yaml"), "{path}");
        }
        assert_eq!(
            files["009-gpu-operator/upstream.env"],
            "CHART='gpu-operator'\nREPO='https://helm.ngc.nvidia.com/nvidia'\nVERSION='v26.7.0'\n"
        );
        assert_eq!(
            files["011-kai-scheduler/upstream.env"],
            "CHART='oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler'\nREPO=''\nVERSION='v0.16.9'\n"
        );
    }

    #[test]
    fn the_same_call_gives_the_same_bytes_and_the_checksums_fit() {
        let files = bundle("v1.1.2", &Settings::default());
        assert_eq!(files, bundle("v1.1.2", &Settings::default()));
        let lines: Vec<&str> = files["checksums.txt"].lines().collect();
        assert_eq!(lines.len(), files.len() - 1);
        for line in lines {
            let (digest, path) = line.split_once("  ").unwrap();
            assert_eq!(digest, oci::hex(files[path].as_bytes()), "{path}");
        }
    }

    #[test]
    fn a_disabled_component_is_dropped_and_the_folders_are_renumbered() {
        let files = bundle("v1.0.0", &set("aws-efa", "enabled", json!(false)));
        let releases = releases(&files);
        assert_eq!((releases.len(), releases[1].as_str()), (15, "002-cert-manager"));
        assert!(!files["recipe.yaml"].contains("aws-efa"));
    }

    #[test]
    fn a_setting_for_an_absent_component_is_refused() {
        let settings = set("network-operator", "a", json!(1));
        let failure = render(&Catalog::load().unwrap(), &sample("v1.0.0"), &settings, "").unwrap_err();
        assert_eq!(failure.exit(), 2);
    }

    #[test]
    fn values_begin_with_aicrs_two_lines_and_have_sorted_keys() {
        let files = bundle("v1.0.0", &Settings::default());
        let text = &files["009-gpu-operator/values.yaml"];
        assert!(text.starts_with("# Generated by AICR\n---\ncdi:\n"), "{text}");
        assert_eq!(files["009-gpu-operator/cluster-values.yaml"], "# Generated by AICR\n---\n");
    }

    #[test]
    fn two_releases_of_the_same_content_differ_in_their_stamps_only() {
        let (old, new) = (bundle("v1.1.3", &Settings::default()), bundle("v1.1.4", &Settings::default()));
        let differing: Vec<&String> =
            old.iter().filter(|(path, text)| new[*path] != **text).map(|(path, _)| path).collect();
        // Chart.yaml is not among them here: within one process both carry this process's stamp.
        assert_eq!(differing, ["README.md", "bundle-info.yaml", "checksums.txt", "recipe.yaml"]);
    }

    #[test]
    fn local_charts_carry_aicrs_stamps() {
        let files = bundle("v1.0.0", &Settings::default());
        let chart: Value = yaml::read(&files["013-kubeflow-trainer-post/Chart.yaml"]).unwrap();
        assert_eq!(chart["name"], "kubeflow-trainer-post");
        assert_eq!(chart["version"], release::stamped());
        assert_eq!(chart["annotations"]["aicr.run/generated-by"], release::stamped());
        assert_eq!(
            (&chart["appVersion"], &chart["annotations"]["aicr.run/component-version"]),
            (&json!("2.2.0"), &json!("2.2.0"))
        );
    }
}
