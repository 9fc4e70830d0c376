//! The OCI registry and redis.

use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::json;

use crate::addresses::{REGISTRY, REGISTRY_PASSWORD, REGISTRY_USER};
use crate::error::LabError;
use crate::files;
use crate::lab::{Lab, RegistryAccess};
use crate::layout::Layout;
use crate::process::{Place, Spec};

/// `REGISTRY_PASSWORD` with bcrypt at its least cost.
const HTPASSWD: &str = "aicr:$2b$04$.WjdpoLdSsTB/So5b6DOVe1qt5tiOyiDD7wV413tjFxCcL7U64/uK\n";

/// Writes the registry's configuration and the docker configuration that opens it.
pub(crate) fn configure(layout: &Layout, access: RegistryAccess) -> Result<(), LabError> {
    let mut config = json!({
        "version": "0.1",
        "log": {"level": "error", "accesslog": {"disabled": false}},
        "storage": {"filesystem": {"rootdirectory": layout.text("registry")}, "delete": {"enabled": true}},
        "http": {"addr": REGISTRY},
    });
    if access == RegistryAccess::Basic {
        let htpasswd = layout.path("htpasswd");
        files::write(&htpasswd, HTPASSWD)?;
        config["auth"] = json!({"htpasswd": {"realm": "lab", "path": htpasswd}});
    }
    files::write(&layout.path("registry.json"), config.to_string())?;
    files::make_dir(&layout.docker_config())?;
    Ok(files::write(&layout.docker_config().join("config.json"), docker_config())?)
}

/// A docker configuration (`.dockerconfigjson`) with the registry's credentials.
pub(crate) fn docker_config() -> String {
    let auth = BASE64_STANDARD.encode(format!("{REGISTRY_USER}:{REGISTRY_PASSWORD}"));
    json!({"auths": {REGISTRY: {"username": REGISTRY_USER, "password": REGISTRY_PASSWORD, "auth": auth}}}).to_string()
}

/// Starts the registry and waits until it answers.
pub(crate) fn start(lab: &Lab) -> Result<(), LabError> {
    let serve = ["serve".to_owned(), lab.layout.text("registry.json")];
    // The traces of Debian's build go nowhere; without the variable it complains every few seconds.
    let spec = Spec::new("registry", Place::Network, "docker-registry").args(serve);
    lab.runner.start(spec.env("OTEL_TRACES_EXPORTER", "none"))?;
    lab.runner.wait_for("registry", "an answer of the registry", Duration::from_secs(30), || {
        lab.crane(&["catalog", REGISTRY]).map(drop).map_err(|error| error.to_string())
    })
}

/// Starts redis for Argo CD: on loopback, in memory only.
pub(crate) fn start_redis(lab: &Lab) -> Result<(), LabError> {
    let args = ["--bind", "127.0.0.1", "--port", "6379", "--save", "", "--appendonly", "no", "--daemonize", "no"];
    lab.runner.start(Spec::new("redis", Place::Network, "redis-server").args(args))
}
