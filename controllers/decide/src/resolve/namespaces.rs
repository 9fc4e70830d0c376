//! Where a release may be installed: the project's destinations, and a few namespaces only by their full name.

/// The project's destinations, and the namespaces that it must list by their full name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespaces {
    globs: Vec<String>,
    guarded: [String; 2],
}

impl Namespaces {
    /// These destinations of the project, as globs, and the operator's and Argo CD's own namespaces.
    pub fn new(globs: Vec<String>, guarded: [String; 2]) -> Self {
        Self { globs, guarded }
    }

    /// Whether a release may be installed there.
    pub fn allow(&self, namespace: &str) -> bool {
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
