//! What a lab that is up is used with: commands, kubeconfigs, and its parts one by one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::addresses::{API_PORT, NODE_ADDRESS};
use crate::command;
use crate::components::{argocd, control_plane, registry};
use crate::error::LabError;
use crate::kubeconfig;
use crate::lab::Lab;
use crate::layout::Layout;
use crate::pki::Pki;
use crate::process::{Place, Spec};

impl Lab {
    /// Where everything of the lab lies: kubeconfigs, logs, audit log.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The API server's address for clients outside the namespace.
    pub fn api_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.runner.state().api_port)
    }

    /// A command in a place of the lab, with the parts' environment and nothing of the machine's.
    pub fn command(&self, place: Place, program: impl AsRef<Path>) -> Command {
        self.runner.command(place, program.as_ref())
    }

    /// A command in the network namespace with the administrator's kubeconfig and the registry's credentials.
    pub fn in_ns(&self, program: impl AsRef<Path>) -> Command {
        let mut command = self.command(Place::Network, program);
        command
            .env("KUBECONFIG", self.layout.admin_kubeconfig_inside())
            .env("DOCKER_CONFIG", self.layout.docker_config());
        command
    }

    /// Runs kubectl as administrator from outside the namespace and returns what it printed.
    ///
    /// # Errors
    /// When it fails.
    pub fn kubectl(&self, args: &[&str]) -> Result<String, LabError> {
        let mut kubectl = self.command(Place::Outside, "kubectl");
        kubectl.arg("--kubeconfig").arg(self.layout.admin_kubeconfig()).args(args);
        Ok(command::output(&mut kubectl)?)
    }

    /// The same from inside, which does not need the forward.
    pub(crate) fn kubectl_inside(&self, args: &[&str]) -> Result<String, LabError> {
        Ok(command::output(self.in_ns("kubectl").args(args))?)
    }

    /// Applies YAML or JSON as administrator, server side.
    ///
    /// # Errors
    /// When it is refused.
    pub fn apply(&self, objects: &str) -> Result<String, LabError> {
        let mut kubectl = self.in_ns("kubectl");
        kubectl.args(["apply", "--server-side", "--filename", "-"]);
        Ok(command::output_with_input(&mut kubectl, objects)?)
    }

    /// Asks the API server what an apply would come to; nothing is stored.
    ///
    /// # Errors
    /// When it would be refused.
    pub fn apply_dry(&self, objects: &str) -> Result<String, LabError> {
        let mut kubectl = self.in_ns("kubectl");
        kubectl.args(["apply", "--server-side", "--dry-run=server", "--filename", "-"]);
        Ok(command::output_with_input(&mut kubectl, objects)?)
    }

    /// Runs Helm 4 as administrator in the namespace and returns what it printed.
    ///
    /// # Errors
    /// When it fails.
    pub fn helm(&self, args: &[&str]) -> Result<String, LabError> {
        Ok(command::output(self.in_ns("helm4").args(args))?)
    }

    /// Runs Argo CD's Helm 3 as administrator in the namespace and returns what it printed.
    ///
    /// # Errors
    /// When it fails.
    pub fn helm3(&self, args: &[&str]) -> Result<String, LabError> {
        Ok(command::output(self.in_ns("helm").args(args))?)
    }

    /// Runs crane in the namespace with the registry's credentials and returns what it printed.
    ///
    /// # Errors
    /// When it fails.
    pub fn crane(&self, args: &[&str]) -> Result<String, LabError> {
        Ok(command::output(self.in_ns("crane").arg("--insecure").args(args))?)
    }

    /// A kubeconfig, for use outside the namespace, of a user with these groups (by client certificate).
    ///
    /// # Errors
    /// When the certificate cannot be made.
    pub fn user_kubeconfig(&self, user: &str, groups: &[&str]) -> Result<PathBuf, LabError> {
        let path = self.layout.path(&format!("{user}.kubeconfig"));
        self.write_user(&path, &self.api_url(), user, groups)?;
        Ok(path)
    }

    /// As [`Lab::user_kubeconfig`], for use inside the namespace.
    ///
    /// # Errors
    /// When the certificate cannot be made.
    pub fn user_kubeconfig_inside(&self, user: &str, groups: &[&str]) -> Result<PathBuf, LabError> {
        let path = self.layout.path(&format!("kubeconfig/user-{user}.kubeconfig"));
        self.write_user(&path, &format!("https://{NODE_ADDRESS}:{API_PORT}"), user, groups)?;
        Ok(path)
    }

    fn write_user(&self, path: &Path, server: &str, user: &str, groups: &[&str]) -> Result<(), LabError> {
        let pki = Pki::of(&self.layout);
        let identity = pki.client(&format!("user-{user}"), user, groups)?;
        kubeconfig::write(path, server, &pki, &identity)
    }

    /// Argo CD's kinds and its namespace, for a lab without Argo CD.
    ///
    /// # Errors
    /// When they are refused.
    pub fn argocd_kinds(&self) -> Result<(), LabError> {
        argocd::kinds(self)
    }

    /// A docker configuration (`.dockerconfigjson`) with the registry's credentials.
    pub fn docker_config_json(&self) -> String {
        registry::docker_config()
    }

    /// Starts a program of the caller's as a part named `name`: recorded, logged, ended with the lab.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(
        &self,
        name: &str,
        place: Place,
        program: &Path,
        args: &[&str],
        env: &[(&str, &str)],
    ) -> Result<(), LabError> {
        let spec = Spec::new(name, place, program).args(args.iter().copied());
        self.runner.start(env.iter().fold(spec, |spec, (name, value)| spec.env(name, *value)))
    }

    /// Ends a part by SIGTERM (after 20 s by SIGKILL) and waits for its end.
    ///
    /// # Errors
    /// When there is no such part or it does not end.
    pub fn stop_part(&self, name: &str) -> Result<(), LabError> {
        self.runner.stop(name)
    }

    /// Ends a part by SIGKILL and waits for its end.
    ///
    /// # Errors
    /// As [`Lab::stop_part`].
    pub fn kill_part(&self, name: &str) -> Result<(), LabError> {
        self.runner.kill(name)
    }

    /// Starts a stopped part as it was started before; returns at once (wait for what you need).
    ///
    /// # Errors
    /// When there is no such part or it cannot be started.
    pub fn start_part(&self, name: &str) -> Result<(), LabError> {
        self.runner.restart(name)
    }

    /// Waits until the API server is ready, for instance after [`Lab::start_part`].
    ///
    /// # Errors
    /// When it ends or is not ready within 90 s.
    pub fn wait_for_api(&self) -> Result<(), LabError> {
        control_plane::wait_for_api(self)
    }
}
