//! What the flags of `aicr bundle` ask for.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::args::Parsed;
use crate::catalog::Catalog;
use crate::failure::{Code, Failure};
use crate::snapshot::job::{pairs, toleration};
use crate::tree;

/// One `--set`: component, path, value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    pub(super) component: String,
    pub(super) path: String,
    pub(super) value: Value,
}

/// Selectors and tolerations of one group of nodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Group {
    pub(super) selector: BTreeMap<String, String>,
    pub(super) tolerations: Vec<Value>,
}

/// Everything that shapes a bundle besides the recipe.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    pub(super) set: Vec<Setting>,
    pub(super) system: Group,
    pub(super) accelerated: Group,
    pub(super) workload: BTreeMap<String, String>,
    pub(super) nodes: Option<String>,
    pub(super) storage_class: Option<String>,
    pub(super) shared_storage_class: Option<String>,
    pub(super) eviction_label: Option<String>,
    pub(super) readiness: bool,
}

impl Settings {
    pub(super) fn read(parsed: &Parsed, catalog: &Catalog) -> Result<Self, Failure> {
        let mut set = Vec::new();
        for word in parsed.all("set") {
            set.push(setting(catalog, word, "set", |text| Ok(tree::inferred(text)))?);
        }
        for word in parsed.all("set-json") {
            set.push(setting(catalog, word, "set-json", |text| {
                serde_json::from_str(text).map_err(|error| Failure::invalid(format!("invalid JSON: {error}")))
            })?);
        }
        for word in parsed.all("set-file") {
            set.push(setting(catalog, word, "set-file", |path| {
                let text = std::fs::read_to_string(path);
                text.map(Value::String)
                    .map_err(|error| Failure::not_found(format!("file not found: open {path}: {error}")))
            })?);
        }
        Ok(Self {
            set,
            system: group(parsed, "system-node-selector", "system-node-toleration")?,
            accelerated: group(parsed, "accelerated-node-selector", "accelerated-node-toleration")?,
            workload: pairs(parsed.all("workload-selector"), "workload-selector")?,
            nodes: parsed.get("nodes").map(ToOwned::to_owned),
            storage_class: parsed.get("storage-class").map(ToOwned::to_owned),
            shared_storage_class: parsed.get("shared-storage-class").map(ToOwned::to_owned),
            eviction_label: parsed.get("dra-eviction-node-label").map(ToOwned::to_owned),
            readiness: parsed.on("readiness-hooks", false),
        })
    }

    /// Whether a component is switched off by `--set component:enabled=false`.
    pub(super) fn drops(&self, component: &str) -> bool {
        self.set.iter().any(|s| s.component == component && s.path == "enabled" && s.value == json!(false))
    }

    /// The settings as bundle-info.yaml records them.
    pub(super) fn document(&self) -> Value {
        let group = |group: &Group| json!({"selector": group.selector, "tolerations": group.tolerations});
        let mut value = json!({
            "checksums": true,
            "nodeScheduling": {"accelerated": group(&self.accelerated), "system": group(&self.system)},
            "readinessHooks": self.readiness,
            "serial": false,
            "vendorCharts": false,
        });
        for (key, class) in [("storageClass", &self.storage_class), ("sharedStorageClass", &self.shared_storage_class)]
        {
            if let Some(class) = class {
                value[key] = json!(class);
            }
        }
        value
    }
}

fn group(parsed: &Parsed, selector: &str, taints: &str) -> Result<Group, Failure> {
    let tolerations = parsed.all(taints).iter().map(|word| toleration(word, taints)).collect::<Result<_, _>>()?;
    Ok(Group { selector: pairs(parsed.all(selector), selector)?, tolerations })
}

fn setting(
    catalog: &Catalog,
    word: &str,
    flag: &str,
    value: impl Fn(&str) -> Result<Value, Failure>,
) -> Result<Setting, Failure> {
    let bad = || {
        Failure::invalid(format!("invalid format \"{word}\": expected 'component:path' or 'component:path=value'"))
            .within(Code::InvalidRequest, format!("invalid --{flag}"))
    };
    let (left, text) = word.split_once('=').ok_or_else(bad)?;
    let (component, path) = left.split_once(':').ok_or_else(bad)?;
    if component.is_empty() || path.is_empty() {
        return Err(bad());
    }
    if component == "deployer" {
        return Err(Failure::invalid(
            "--set deployer:<key> options are only supported with --deployer argocd or argocd-helm (got \"helm\")",
        ));
    }
    let value = value(text).map_err(|failure| failure.within(Code::InvalidRequest, format!("invalid --{flag}")))?;
    let component = catalog.called(component).map_or_else(|| component.to_owned(), |known| known.name.clone());
    Ok(Setting { component, path: path.to_owned(), value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;

    fn read(words: &[&str]) -> Result<Settings, Failure> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Settings::read(&args::parse(super::super::FLAGS, &words).unwrap(), &Catalog::load().unwrap())
    }

    #[test]
    fn an_alias_means_the_component_and_the_value_is_typed() {
        let settings = read(&["--set", "gpuoperator:driver.version=580.99"]).unwrap();
        let expected =
            Setting { component: "gpu-operator".into(), path: "driver.version".into(), value: json!(580.99) };
        assert_eq!(settings.set, [expected]);
    }

    #[test]
    fn bad_shapes_are_refused_in_aicrs_words() {
        let table = [
            (
                ["--set", "nonsense"],
                "[INVALID_REQUEST] invalid --set: [INVALID_REQUEST] invalid format \"nonsense\": expected \
                 'component:path' or 'component:path=value'",
            ),
            (
                ["--set", "deployer:nope=1"],
                "[INVALID_REQUEST] --set deployer:<key> options are only supported with --deployer argocd or argocd-helm \
                 (got \"helm\")",
            ),
            (
                ["--system-node-selector", "nope"],
                "[INVALID_REQUEST] invalid --system-node-selector: invalid format \"nope\": expected key=value",
            ),
        ];
        for (words, text) in table {
            let failure = read(&words).unwrap_err();
            assert_eq!((failure.exit(), failure.to_string().as_str()), (2, text));
        }
    }
}
