//! The files of one chart: one Deployment, a ConfigMap that shows the values, definitions of its own.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::catalog::{Component, Crd, CrdPlace};
use crate::failure::Failure;
use crate::tree;
use crate::yaml;

const DEPLOYMENT: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Values.fullnameOverride | default .Release.Name }}
  namespace: {{ .Release.Namespace }}
  labels:
    app.kubernetes.io/name: @CHART@
    app.kubernetes.io/instance: {{ .Values.fullnameOverride | default .Release.Name }}
    app.kubernetes.io/version: {{ .Chart.Version | quote }}
spec:
  replicas: 1
  selector:
    matchLabels:
      app.kubernetes.io/name: @CHART@
      app.kubernetes.io/instance: {{ .Values.fullnameOverride | default .Release.Name }}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: @CHART@
        app.kubernetes.io/instance: {{ .Values.fullnameOverride | default .Release.Name }}
        app.kubernetes.io/version: {{ .Chart.Version | quote }}
      {{- with .Values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 1
      {{- with .Values.@SELECTOR@ }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.@TOLERATIONS@ }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: main
          image: {{ .Values.image | quote }}
          command: ["sleep", "2147483647"]
          resources:
            requests:
              cpu: 5m
              memory: 8Mi
          securityContext:
            allowPrivilegeEscalation: false
            runAsNonRoot: true
            runAsUser: 65534
            capabilities:
              drop: ["ALL"]
            seccompProfile:
              type: RuntimeDefault
"#;

const SEEN: &str = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Values.fullnameOverride | default .Release.Name }}-seen
  namespace: {{ .Release.Namespace }}
data:
  version: {{ .Chart.Version | quote }}
  nodeSelector: {{ .Values.@SELECTOR@ | toJson | quote }}
  tolerations: {{ .Values.@TOLERATIONS@ | toJson | quote }}
  values: {{ omit .Values "fullnameOverride" | toJson | quote }}
"#;

const KEPT: &str = r"apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Values.fullnameOverride | default .Release.Name }}-kept
  namespace: {{ .Release.Namespace }}
  annotations:
    helm.sh/resource-policy: keep
data:
  of: @CHART@
";

/// Chart.yaml as a value.
pub(super) fn metadata(component: &Component, name: &str, version: &str) -> Value {
    json!({
        "apiVersion": "v2",
        "appVersion": version,
        "description": format!("Stands in for {} in tests.", component.name),
        "name": name,
        "type": "application",
        "version": version,
    })
}

/// The chart's files by path.
pub(super) fn files(
    component: &Component,
    name: &str,
    version: &str,
    image: &str,
) -> Result<BTreeMap<String, String>, Failure> {
    let selector = pick(&component.system.selectors, &component.accelerated.selectors, "nodeSelector");
    let tolerations = pick(&component.system.tolerations, &component.accelerated.tolerations, "tolerations");
    let mut files = BTreeMap::new();
    files.insert("Chart.yaml".to_owned(), yaml::text(&metadata(component, name, version))?);
    files.insert("values.yaml".to_owned(), yaml::text(&defaults(component, image, selector, tolerations)?)?);
    if component.workload {
        let filled = |text: &str| {
            text.replace("@CHART@", name).replace("@SELECTOR@", selector).replace("@TOLERATIONS@", tolerations)
        };
        files.insert("templates/deployment.yaml".to_owned(), filled(DEPLOYMENT));
        files.insert("templates/seen.yaml".to_owned(), filled(SEEN));
        if component.keeps {
            files.insert("templates/kept.yaml".to_owned(), filled(KEPT));
        }
    }
    for crd in component.crds.iter().filter(|crd| has(crd, version)) {
        let folder = match crd.place {
            CrdPlace::Crds => "crds",
            CrdPlace::Templates => "templates",
        };
        files.insert(format!("{folder}/{}.yaml", crd.plural), definition(component, crd)?);
    }
    Ok(files)
}

/// The path that decides where the Deployment runs.
fn pick<'a>(system: &'a [String], accelerated: &'a [String], default: &'a str) -> &'a str {
    system.first().or(accelerated.first()).map_or(default, String::as_str)
}

/// The chart's own defaults: every path that AICR may write exists, empty.
fn defaults(component: &Component, image: &str, selector: &str, tolerations: &str) -> Result<Value, Failure> {
    let mut values = component.values.clone();
    let selectors = component.system.selectors.iter().chain(&component.accelerated.selectors);
    for path in selectors.map(String::as_str).chain([selector]) {
        tree::put(&mut values, path, json!({}))?;
    }
    let all = component.system.tolerations.iter().chain(&component.accelerated.tolerations);
    for path in all.map(String::as_str).chain([tolerations]) {
        tree::put(&mut values, path, json!([]))?;
    }
    tree::merge(
        &mut values,
        &json!({
            "image": image, "podAnnotations": {}, "extraSettings": {"note": ""}, "fullnameOverride": "",
        }),
    );
    Ok(values)
}

fn has(crd: &Crd, version: &str) -> bool {
    let parse = |text: &str| semver::Version::parse(text.trim_start_matches('v')).ok();
    match (crd.since.as_deref().and_then(parse), parse(version)) {
        (Some(since), Some(version)) => version >= since,
        (None, _) | (Some(_), None) => crd.since.is_none(),
    }
}

fn definition(component: &Component, crd: &Crd) -> Result<String, Failure> {
    let group = format!("{}.standin.aicr.test", component.name);
    yaml::text(&json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{group}", crd.plural)},
        "spec": {
            "group": group,
            "names": {
                "kind": crd.kind,
                "listKind": format!("{}List", crd.kind),
                "plural": crd.plural,
                "singular": crd.kind.to_lowercase(),
            },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    fn built(component: &str, version: &str) -> BTreeMap<String, String> {
        let catalog = Catalog::load().unwrap();
        files(catalog.component(component).unwrap(), "chart", version, "image").unwrap()
    }

    fn definitions(files: &BTreeMap<String, String>) -> usize {
        files.values().filter(|text| text.contains("kind: CustomResourceDefinition")).count()
    }

    #[test]
    fn gpu_operator_has_a_deployment_and_no_definitions() {
        let files = built("gpu-operator", "v26.7.0");
        assert_eq!(definitions(&files), 0);
        let deployment = &files["templates/deployment.yaml"];
        assert!(deployment.contains("with .Values.operator.nodeSelector"), "{deployment}");
        assert!(!deployment.contains('@'), "{deployment}");
    }

    #[test]
    fn the_chart_of_definitions_has_nothing_else() {
        let files = built("prometheus-operator-crds", "28.0.1");
        assert_eq!(definitions(&files), 2);
        assert!(!files.contains_key("templates/deployment.yaml"));
    }

    #[test]
    fn kubeflow_trainer_alone_keeps_something() {
        let is_kept = |text: &String| text.contains("helm.sh/resource-policy: keep");
        assert_eq!(built("kubeflow-trainer", "2.2.0").values().filter(|text| is_kept(text)).count(), 1);
        assert!(!built("gpu-operator", "v26.7.0").values().any(is_kept));
    }

    #[test]
    fn nvsentinel_gains_a_definition_with_its_upgrade() {
        assert_eq!(definitions(&built("nvsentinel", "v1.22.0")), 1);
        assert_eq!(definitions(&built("nvsentinel", "v1.25.0")), 2);
    }

    #[test]
    fn the_defaults_hold_every_path_aicr_may_write() {
        let values: Value = yaml::read(&built("cert-manager", "v1.20.2")["values.yaml"]).unwrap();
        assert_eq!(tree::at(&values, "cainjector.nodeSelector"), Some(&json!({})));
        assert_eq!(tree::at(&values, "webhook.tolerations"), Some(&json!([])));
        assert_eq!(tree::at(&values, "crds.enabled"), Some(&json!(true)));
    }
}
