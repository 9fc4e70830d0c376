//! What a Job is made of, stage by stage.

use super::*;
use serde_json::{Value, json};

fn settings() -> JobSettings {
    JobSettings {
        image: "r/aicr@sha256:00".into(),
        jobs_namespace: "aicr-jobs".into(),
        discovery_namespace: "aicr-discovery".into(),
        validation_namespace: "aicr-validation".into(),
        jobs_service_account: "aicr-jobs".into(),
        snapshot_service_account: "aicr-snapshot-launcher".into(),
        validation_service_account: "aicr-validation-launcher".into(),
        registry_secret: RegistrySecret::Kept("registry".into()),
        ..JobSettings::default()
    }
}

fn plan(stage: Stage) -> JobPlan {
    let output = match stage {
        Stage::Base | Stage::Render => Output::Registry,
        Stage::Snapshot | Stage::Recipe | Stage::Assessment | Stage::Validation => Output::ConfigMap,
    };
    JobPlan {
        name: format!("aicr-{stage}-0123456789ab-2"),
        stage,
        input: "0123456789abcdef0123456789abcdef".into(),
        attempt: 2,
        args: vec!["--log-json".into(), stage.to_string()],
        inputs: match stage {
            Stage::Snapshot => BTreeMap::new(),
            Stage::Recipe | Stage::Base | Stage::Render | Stage::Assessment | Stage::Validation => {
                [("recipe.yaml".to_owned(), "a: 1".to_owned())].into()
            }
        },
        output,
    }
}

fn now() -> Timestamp {
    "2026-11-29T19:51:32.5Z".parse().unwrap()
}

fn made(stage: Stage, settings: &JobSettings) -> Value {
    serde_json::to_value(job(&plan(stage), settings, now())).unwrap()
}

#[test]
fn a_job_is_suspended_bounded_and_runs_once() {
    let job = made(Stage::Render, &settings());
    assert_eq!(job["metadata"]["namespace"], "aicr-jobs");
    assert_eq!(job["spec"]["suspend"], true);
    assert_eq!(job["spec"]["backoffLimit"], 0);
    assert_eq!(job["spec"]["activeDeadlineSeconds"], 300);
    assert_eq!(job["spec"]["ttlSecondsAfterFinished"], 86_400);
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["restartPolicy"], "Never");
    let labels = &job["metadata"]["labels"];
    assert_eq!(labels["app.kubernetes.io/managed-by"], "aicr-operator");
    assert_eq!(labels["operator.aicr.run/stage"], "render");
    assert_eq!(labels["operator.aicr.run/input"], "0123456789abcdef0123456789abcdef");
    assert_eq!(labels["operator.aicr.run/attempt"], "2");
    assert_eq!(labels["operator.aicr.run/run"], run_id("aicr-render-0123456789ab-2", now()));
    assert_eq!(&job["spec"]["template"]["metadata"]["labels"], labels);
}

#[test]
fn the_pod_is_what_restricted_pod_security_admits() {
    let job = made(Stage::Render, &settings());
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(
        pod["securityContext"],
        json!({"runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"}})
    );
    let container = &pod["containers"][0];
    assert_eq!(
        container["securityContext"],
        json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}})
    );
    assert_eq!(container["terminationMessagePolicy"], "FallbackToLogsOnError");
    assert_eq!((&container["command"], &container["args"]), (&json!(["aicr"]), &json!(["--log-json", "render"])));
    assert_eq!(container["workingDir"], "/tmp");
    assert_eq!(
        container["resources"],
        json!({"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}})
    );
}

#[test]
fn only_a_render_gets_registry_credentials_and_no_token() {
    let of = |stage, settings: &JobSettings| made(stage, settings)["spec"]["template"]["spec"].take();
    let render = of(Stage::Render, &settings());
    assert_eq!(render["automountServiceAccountToken"], false);
    assert_eq!(render["containers"][0]["env"], json!([{"name": "DOCKER_CONFIG", "value": "/docker"}]));
    let volumes = render["volumes"].as_array().unwrap();
    assert_eq!(
        volumes.iter().map(|volume| volume["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["work", "in", "docker"]
    );
    assert_eq!(
        volumes[2]["secret"],
        json!({"secretName": "registry", "items": [{"key": ".dockerconfigjson", "path": "config.json"}]})
    );
    assert_eq!(volumes[1]["configMap"]["name"], "aicr-render-0123456789ab-2-in");
    let recipe = of(Stage::Recipe, &settings());
    assert_eq!(recipe["automountServiceAccountToken"], true);
    assert_eq!((&recipe["containers"][0]["env"], recipe["volumes"].as_array().unwrap().len()), (&Value::Null, 2));
    let anonymous = of(Stage::Render, &JobSettings { registry_secret: RegistrySecret::Anonymous, ..settings() });
    assert_eq!((&anonymous["containers"][0]["env"], anonymous["volumes"].as_array().unwrap().len()), (&Value::Null, 2));
}

#[test]
fn a_run_that_pushes_trusts_the_registry_s_authority_beside_the_system_s() {
    let settings = JobSettings { registry_ca_bundle: "PEM".into(), ..settings() };
    let pod = made(Stage::Render, &settings)["spec"]["template"]["spec"].take();
    let container = &pod["containers"][0];
    assert_eq!(container["env"][1], json!({"name": "SSL_CERT_DIR", "value": "/etc/ssl/certs:/authorities"}));
    let mount = json!({"name": "authorities", "mountPath": "/authorities", "readOnly": true});
    assert!(container["volumeMounts"].as_array().unwrap().contains(&mount), "{container}");
    let item = json!({"key": "registry-authorities.pem", "path": "registry-authorities.pem"});
    let source = json!({"name": "aicr-render-0123456789ab-2-in", "items": [item]});
    let volumes = pod["volumes"].as_array().unwrap();
    assert!(volumes.iter().any(|volume| volume["configMap"] == source), "{pod}");
    let map = inputs(&plan(Stage::Render), &settings, "uid").unwrap().data.unwrap();
    assert_eq!(map["registry-authorities.pem"], "PEM");
    assert_eq!(inputs(&plan(Stage::Recipe), &settings, "uid").unwrap().data, Some(plan(Stage::Recipe).inputs));
    assert!(!made(Stage::Recipe, &settings).to_string().contains("authorities"));
    assert!(!made(Stage::Render, &self::settings()).to_string().contains("SSL_CERT_DIR"));
}

#[test]
fn a_run_with_a_token_of_the_moment_has_a_secret_of_its_own_that_goes_with_the_job() {
    let settings = JobSettings { registry_secret: RegistrySecret::OfTheRun, ..settings() };
    let plan = plan(Stage::Render);
    let made = secret(&plan, &settings, "job-uid", b"{}").unwrap();
    assert_eq!(made.metadata.name.as_deref(), Some("aicr-render-0123456789ab-2-registry"));
    assert_eq!(made.metadata.namespace.as_deref(), Some("aicr-jobs"));
    assert_eq!(made.metadata.owner_references.as_ref().unwrap()[0].uid, "job-uid");
    assert_eq!(made.data.unwrap()[DOCKER_KEY].0, b"{}");
    let volumes = self::made(Stage::Render, &settings)["spec"]["template"]["spec"]["volumes"].take();
    assert_eq!(volumes[2]["secret"]["secretName"], "aicr-render-0123456789ab-2-registry");
    assert!(secret(&self::plan(Stage::Recipe), &settings, "u", b"{}").is_none());
    assert!(secret(&plan, &self::settings(), "u", b"{}").is_none());
}

#[test]
fn a_snapshot_runs_as_its_launcher_in_its_namespace_without_inputs() {
    let job = made(Stage::Snapshot, &settings());
    assert_eq!(job["metadata"]["namespace"], "aicr-discovery");
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "aicr-snapshot-launcher");
    assert_eq!(pod["volumes"].as_array().unwrap().len(), 1);
    assert_eq!(made(Stage::Assessment, &settings())["spec"]["template"]["spec"]["serviceAccountName"], "aicr-jobs");
    assert!(inputs(&plan(Stage::Snapshot), &settings(), "uid").is_none());
}

#[test]
fn validation_runs_as_its_launcher_and_pushes_evidence_beside_its_report() {
    let job = made(Stage::Validation, &settings());
    assert_eq!(job["metadata"]["namespace"], "aicr-validation");
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "aicr-validation-launcher");
    assert_eq!(pod["automountServiceAccountToken"], true);
    assert_eq!(pod["containers"][0]["env"], json!([{"name": "DOCKER_CONFIG", "value": "/docker"}]));
    let of_the_run = JobSettings { registry_secret: RegistrySecret::OfTheRun, ..settings() };
    let secret = secret(&plan(Stage::Validation), &of_the_run, "uid", b"{}").unwrap();
    assert_eq!(secret.metadata.namespace.as_deref(), Some("aicr-validation"));
    assert!(output(&plan(Stage::Validation), &settings(), "uid").is_some());
}

#[test]
fn inputs_and_output_are_owned_by_the_job() {
    let recipe = plan(Stage::Recipe);
    let inputs = inputs(&recipe, &settings(), "uid").unwrap();
    let output = output(&recipe, &settings(), "uid").unwrap();
    assert_eq!(inputs.data, Some(recipe.inputs.clone()));
    assert_eq!((output.metadata.name.as_ref(), &output.data), (Some(&recipe.name), &None));
    for map in [inputs, output] {
        assert_eq!(map.metadata.namespace.as_deref(), Some("aicr-jobs"));
        let owners = serde_json::to_value(map.metadata.owner_references).unwrap();
        assert_eq!(owners, json!([{"apiVersion": "batch/v1", "kind": "Job", "name": recipe.name, "uid": "uid"}]));
    }
    assert!(super::output(&plan(Stage::Render), &settings(), "uid").is_none());
}

#[test]
fn run_ids_have_the_time_and_differ_by_job() {
    let id = run_id("aicr-render-a-1", now());
    assert!(id.starts_with("20261129-195132-") && id.len() == 32, "{id}");
    assert_eq!(id, run_id("aicr-render-a-1", now()));
    assert_ne!(id, run_id("aicr-render-a-2", now()));
}

#[test]
fn only_what_is_set_places_jobs() {
    let of = |settings: &JobSettings| made(Stage::Recipe, settings)["spec"]["template"]["spec"].take();
    let bare = of(&settings());
    assert_eq!((&bare["nodeSelector"], &bare["tolerations"]), (&Value::Null, &Value::Null));
    let placed = of(&JobSettings {
        node_selector: [("pool".to_owned(), "system".to_owned())].into(),
        tolerations: serde_json::from_value(json!([{"key": "a", "operator": "Exists"}])).unwrap(),
        ..settings()
    });
    assert_eq!(placed["nodeSelector"], json!({"pool": "system"}));
    assert_eq!(placed["tolerations"], json!([{"key": "a", "operator": "Exists"}]));
}
