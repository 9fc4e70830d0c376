//! Argo CD's own logins beside the operator's: a `repository` Secret for the same URL goes before its repo-creds.

use std::collections::BTreeSet;

use aicr_crds::application::Application;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

/// The label selector of Argo CD's logins for one repository each.
pub(crate) const REPOSITORY_SECRETS: &str = "argocd.argoproj.io/secret-type=repository";

/// Where Argo CD reads the operator's charts: its namespace, and the registry with the prefix that they lie under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Argo CD's namespace.
    pub(crate) namespace: String,
    prefix: String,
}

/// The places of these Applications, each once.
pub(crate) fn places(applications: &[Application]) -> BTreeSet<Place> {
    applications.iter().filter_map(place).collect()
}

/// A release's chart is at `<prefix>/charts/<chart>` or `<prefix>/wrappers/<release>`.
fn place(application: &Application) -> Option<Place> {
    let url = plain(&application.source.repo_url);
    let (folder, _) = url.rsplit_once('/')?;
    let prefix = folder.strip_suffix("/charts").or_else(|| folder.strip_suffix("/wrappers"))?;
    Some(Place { namespace: application.namespace()?, prefix: prefix.to_owned() })
}

/// One line for each of `secrets`, those of `place`'s namespace, that speaks for a URL at or below its prefix.
pub(crate) fn warnings(place: &Place, secrets: &[Secret]) -> Vec<String> {
    let ours = |url: &str| url.strip_prefix(&place.prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let found = secrets.iter().filter_map(|secret| Some((secret.name_any(), url(secret)?)));
    let mut lines: Vec<_> = found
        .filter(|(_, url)| ours(&plain(url)))
        .map(|(name, url)| {
            let namespace = &place.namespace;
            format!(
                "repository Secret {namespace}/{name} has its own login for {url}: Argo CD takes it instead of the \
                 operator's; delete it, or keep it valid yourself"
            )
        })
        .collect();
    lines.sort();
    lines
}

fn url(secret: &Secret) -> Option<String> {
    let stored = secret.data.as_ref()?.get("url")?;
    String::from_utf8(stored.0.clone()).ok()
}

/// As Argo CD compares them: without scheme, without a slash at the end, in lower case.
fn plain(url: &str) -> String {
    let url = url.trim().trim_end_matches('/').to_lowercase();
    url.strip_prefix("oci://").map(str::to_owned).unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn application(url: &str) -> Application {
        let object = json!({
            "metadata": { "name": "gpu-operator", "namespace": "argocd" },
            "spec": { "source": { "repoURL": url }, "destination": {}, "project": "aicr" },
        });
        serde_json::from_value(object).unwrap()
    }

    fn secret(url: &str) -> Secret {
        let url = k8s_openapi::ByteString(url.into());
        let data = Some([("url".to_owned(), url)].into());
        let metadata = kube::core::ObjectMeta { name: Some("old-login".into()), ..Default::default() };
        Secret { metadata, data, ..Secret::default() }
    }

    #[test]
    fn charts_and_wrappers_of_one_prefix_are_one_place() {
        let urls = ["oci://h:5000/aicr/lab/charts/gpu-operator", "oci://h:5000/aicr/lab/wrappers/gate"];
        let applications: Vec<_> = urls.into_iter().map(application).collect();
        let expected = Place { namespace: "argocd".into(), prefix: "h:5000/aicr/lab".into() };
        assert_eq!(places(&applications), [expected].into());
        assert!(places(&[application("https://charts.example.com")]).is_empty());
    }

    #[rstest]
    #[case::the_same("oci://h:5000/aicr/lab/charts/gpu-operator", true)]
    #[case::without_scheme("h:5000/aicr/lab/charts/gpu-operator/", true)]
    #[case::in_capitals("OCI://H:5000/AICR/lab", true)]
    #[case::the_prefix("h:5000/aicr/lab", true)]
    #[case::a_neighbour("h:5000/aicr/laboratory/charts/gpu-operator", false)]
    #[case::above("h:5000/aicr", false)]
    #[case::another("oci://elsewhere/aicr/lab/charts/gpu-operator", false)]
    fn b39_a_second_login_under_our_prefix_is_named(#[case] url: &str, #[case] named: bool) {
        let places = places(&[application("oci://h:5000/aicr/lab/charts/gpu-operator")]);
        let lines = warnings(places.first().unwrap(), &[secret(url)]);
        assert_eq!(lines.len(), usize::from(named), "{lines:?}");
        assert!(lines.iter().all(|line| line.contains("argocd/old-login") && line.contains(url)), "{lines:?}");
    }

    #[test]
    fn a_secret_without_a_url_says_nothing() {
        let places = places(&[application("oci://h/p/charts/c")]);
        assert!(warnings(places.first().unwrap(), &[Secret::default()]).is_empty());
    }
}
