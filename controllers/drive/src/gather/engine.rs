//! Whether Argo CD can be driven, and where its project lets releases go.

use aicr_decide::seen::EngineState;

use crate::{settings::DriveSettings, watch::Watches};

/// What the watches say of Argo CD.
pub(super) fn state(watches: &Watches) -> EngineState {
    if !watches.has_engine() {
        return EngineState::Missing;
    }
    if watches.applications.is_refused() || watches.projects.is_refused() {
        return EngineState::Unauthorized;
    }
    if watches.projects.is_empty() {
        return EngineState::ProjectMissing;
    }
    EngineState::Available
}

/// The project's destinations, and the namespaces that it must list by their full name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Namespaces {
    globs: Vec<String>,
    guarded: [String; 2],
}

impl Namespaces {
    /// Of the project as it is seen.
    pub(super) fn of(watches: &Watches, settings: &DriveSettings) -> Self {
        let projects = watches.projects.all();
        let globs = projects.iter().flat_map(|project| project.namespaces()).map(str::to_owned).collect();
        Self { globs, guarded: [settings.namespace.clone(), settings.decide.engine.namespace.clone()] }
    }

    /// Whether a release may be installed there.
    pub(crate) fn allow(&self, namespace: &str) -> bool {
        if self.globs.iter().any(|glob| glob == namespace) {
            return true;
        }
        let guarded = namespace.starts_with("kube-") || self.guarded.iter().any(|name| name == namespace);
        !guarded && self.globs.iter().any(|glob| matches(glob, namespace))
    }
}

/// A glob as Argo CD's: `*` stands for any run of characters.
fn matches(glob: &str, text: &str) -> bool {
    let Some((head, rest)) = glob.split_once('*') else { return glob == text };
    let Some(mut left) = text.strip_prefix(head) else { return false };
    loop {
        if matches(rest, left) {
            return true;
        }
        let mut characters = left.chars();
        if characters.next().is_none() {
            return false;
        }
        left = characters.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(globs: &[&str], namespace: &str) -> bool {
        let globs = globs.iter().map(|glob| (*glob).to_owned()).collect();
        Namespaces { globs, guarded: ["aicr-system".to_owned(), "argocd".to_owned()] }.allow(namespace)
    }

    #[test]
    fn a_release_goes_where_the_project_lets_it_and_to_guarded_namespaces_only_where_they_are_listed() {
        assert!(allow(&["gpu-operator"], "gpu-operator"));
        assert!(!allow(&["gpu-operator"], "monitoring"));
        assert!(allow(&["gpu-*"], "gpu-operator"));
        assert!(!allow(&["gpu-*"], "cpu-operator"));
        assert!(allow(&["*-operator"], "gpu-operator"));
        for guarded in ["kube-system", "aicr-system", "argocd"] {
            assert!(!allow(&["*"], guarded), "{guarded}");
            assert!(allow(&["*", guarded], guarded), "{guarded}");
        }
        assert!(!allow(&[], "default"));
    }
}
