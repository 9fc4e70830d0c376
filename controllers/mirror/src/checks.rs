//! What a rendered bundle must be before anything of it is carried: of our AICR, whole, and made of what can be mirrored.

use aicr_crds::reason::Reason;
use aicr_read::{
    bundle::{Bundle, Release, Source},
    chart,
    recipe::Recipe,
    values,
};
use reqwest::Url;

use crate::{
    artifact,
    failure::{MirrorFailure, of_values},
    helm::HelmChart,
    place::{Place, is_part},
    plan::Around,
};

/// The longest tag of the distribution specification, in bytes; a wrapper's ends in a dash and 16 hex digits.
const TAG_LIMIT: usize = 128 - 17;

/// Where a release's chart comes from, once it is known that it can be mirrored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted<'a> {
    /// A chart of an OCI registry; the reference without `oci://`.
    Upstream { reference: &'a str, version: &'a str },
    /// A chart of an HTTPS Helm repository.
    Helm(HelmChart<'a>),
    /// The release's own chart in the bundle.
    Local(&'a Release),
}

/// Checks versions, recipe and every release; answers with one chart source a release, in their order.
///
/// # Errors
/// The first thing that is wrong, in the order of the releases.
pub(crate) fn bundle<'a>(bundle: &'a Bundle, around: &Around<'_>) -> Result<Vec<Wanted<'a>>, MirrorFailure> {
    for version in [&bundle.version, &bundle.recipe.version] {
        if !around.aicr.is(version) {
            return Err(MirrorFailure::stalled(Reason::AICRVersionMismatch, mismatch(version, around)));
        }
    }
    complete(&bundle.recipe)?;
    bundle.releases.iter().map(|release| one(release, around)).collect()
}

fn mismatch(reported: &str, around: &Around<'_>) -> String {
    let (version, image) = (&around.aicr.version, &around.aicr.image);
    format!("the image {image} reports version {reported}, but aicr.version is {version}; set both to the same release")
}

/// AICR exits 0 also where it left out what the snapshot does not satisfy.
fn complete(recipe: &Recipe) -> Result<(), MirrorFailure> {
    let (excluded, warnings) = (&recipe.excluded_overlays, &recipe.constraint_warnings);
    let said = match (warnings.first(), excluded.first()) {
        (None, None) => return Ok(()),
        (Some(warning), _) => format!(
            "overlay {} left out: constraint {} expects {}, the snapshot reads {}",
            warning.overlay,
            warning.constraint,
            warning.expected,
            warning.actual.as_deref().unwrap_or("nothing")
        ),
        (None, Some(overlay)) => format!("overlay {} left out: {}", overlay.name, overlay.reason),
    };
    let more = match warnings.len().max(excluded.len()) {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let message = format!(
        "the recipe holds less than was asked for: {said}{more}; correct the nodes, the criteria or the platform"
    );
    Err(MirrorFailure::stalled(Reason::CriteriaConflict, message))
}

fn one<'a>(release: &'a Release, around: &Around<'_>) -> Result<Wanted<'a>, MirrorFailure> {
    let (id, namespace) = (&release.id, &release.namespace);
    if !(around.namespace_allowed)(namespace) {
        let message = format!(
            "release {id} goes to namespace {namespace}, which is not allowed; add it to the AppProject's destinations"
        );
        return Err(MirrorFailure::stalled(Reason::NamespaceNotAllowed, message));
    }
    values::check(&release.values).map_err(|error| of_values(id, &error))?;
    source(release)
        .map_err(|problem| MirrorFailure::stalled(Reason::ChartSourceUnsupported, format!("release {id}: {problem}")))
}

/// The problem never quotes an address: it may hold a user part.
fn source(release: &Release) -> Result<Wanted<'_>, String> {
    let (wanted, version) = match &release.source {
        Source::Local { version, .. } => (Wanted::Local(release), version),
        Source::Upstream { chart, repo, version } if repo.is_empty() => {
            (Wanted::Upstream { reference: reference(chart)?, version }, version)
        }
        Source::Upstream { chart, repo, version } => (Wanted::Helm(helm(chart, repo, version)?), version),
    };
    if !chart::version_is_exact(version) || artifact::tag(version).len() > TAG_LIMIT {
        return Err(format!("chart version {version:?} is not one exact version"));
    }
    Ok(wanted)
}

fn reference(chart: &str) -> Result<&str, String> {
    chart
        .strip_prefix("oci://")
        .filter(|reference| Place::parse(reference).is_some())
        .ok_or_else(|| "its chart source is no oci://host/repository".to_owned())
}

fn helm<'a>(chart: &'a str, repo: &'a str, version: &'a str) -> Result<HelmChart<'a>, String> {
    let url = Url::parse(repo).ok().filter(|url| url.scheme() == "https" && url.host_str().is_some());
    let Some(url) = url else {
        return Err("its chart source is neither an https:// Helm repository nor an oci:// reference".to_owned());
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the address of its Helm repository holds a user part; use the registry credentials".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("the address of its Helm repository holds more than a path".to_owned());
    }
    if !is_part(chart) {
        return Err("its chart's name is none that a registry takes".to_owned());
    }
    Ok(HelmChart { chart, repo, version })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use aicr_decide::resolve::AicrInstall;
    use aicr_read::recipe::{ConstraintWarning, Criteria, ExcludedOverlay};
    use rstest::rstest;

    fn release(source: Source) -> Release {
        Release {
            id: "gpu-operator".into(),
            component: "gpu-operator".into(),
            namespace: "gpu".into(),
            source,
            values: "a: 1\n".into(),
            depends_on: vec![],
            readiness_gate: false,
        }
    }

    fn upstream(chart: &str, repo: &str, version: &str) -> Source {
        Source::Upstream { chart: chart.into(), repo: repo.into(), version: version.into() }
    }

    fn good() -> Bundle {
        let recipe = Recipe {
            version: "1.1.2".into(),
            criteria: Criteria::default(),
            excluded_overlays: vec![],
            constraint_warnings: vec![],
            components: vec![],
            deployment_order: vec![],
        };
        let local = Source::Local { name: "x".into(), version: "1.1.2".into(), files: BTreeMap::new() };
        let releases = vec![
            release(upstream("oci://r.example.com/charts/gpu-operator", "", "v1.2.3+a")),
            release(local),
            release(upstream("cert-manager", "https://charts.example.com/a", "v1.20.2")),
        ];
        Bundle { version: "v1.1.2".into(), releases, recipe, recipe_bytes: vec![] }
    }

    fn check(of: &Bundle) -> Result<usize, MirrorFailure> {
        let aicr = AicrInstall { version: "v1.1.2".into(), image: "r/aicr@sha256:00".into() };
        let around = Around {
            runtime_uid: "u",
            aicr: &aicr,
            created: jiff::Timestamp::UNIX_EPOCH,
            namespace_allowed: &|namespace| namespace != "kube-system",
        };
        bundle(of, &around).map(|wanted| wanted.len())
    }

    fn refused(change: impl FnOnce(&mut Bundle)) -> MirrorFailure {
        let mut changed = good();
        change(&mut changed);
        check(&changed).unwrap_err()
    }

    #[test]
    fn a_good_bundle_passes_with_or_without_the_v() {
        assert_eq!(check(&good()), Ok(3));
    }

    #[test]
    fn bundle_and_recipe_must_be_of_the_installed_version() {
        let said = "the image r/aicr@sha256:00 reports version 1.1.3, but aicr.version is v1.1.2; set both to the same release";
        let by_bundle = refused(|bundle| bundle.version = "1.1.3".into());
        let by_recipe = refused(|bundle| bundle.recipe.version = "1.1.3".into());
        for failure in [by_bundle, by_recipe] {
            assert_eq!((failure.reason, failure.message.as_str()), (Some(Reason::AICRVersionMismatch), said));
        }
    }

    #[test]
    fn a_smaller_recipe_names_overlay_constraint_and_reading() {
        let failure = refused(|bundle| {
            let excluded = |name: &str| ExcludedOverlay { name: name.into(), reason: "mixin-constraint-failed".into() };
            bundle.recipe.excluded_overlays = vec![excluded("a"), excluded("b")];
        });
        assert_eq!(failure.reason, Some(Reason::CriteriaConflict));
        assert!(failure.message.contains("overlay a left out: mixin-constraint-failed (and 1 more)"), "{failure}");
        let failure = refused(|bundle| {
            bundle.recipe.constraint_warnings = vec![ConstraintWarning {
                overlay: "eks-ubuntu".into(),
                constraint: "OS.release.ID".into(),
                expected: "ubuntu".into(),
                actual: Some("rhel".into()),
                reason: String::new(),
            }];
        });
        assert_eq!(failure.reason, Some(Reason::CriteriaConflict));
        assert!(
            failure.message.contains(
                "overlay eks-ubuntu left out: constraint OS.release.ID expects ubuntu, the snapshot reads rhel;"
            ),
            "{failure}"
        );
    }

    /// B36: no version grows in a tag but by its `+`, and the longest that a registry takes is taken.
    #[rstest]
    #[case::build("1.2.3+abc", "1.2.3_abc")]
    #[case::long(&format!("1.2.3-{}+b", "x".repeat(60)), &format!("1.2.3-{}_b", "x".repeat(60)))]
    fn b36_a_long_or_built_version_is_a_tag_and_stays_the_version(#[case] version: &str, #[case] tag: &str) {
        for repo in ["", "https://charts.example.com"] {
            let chart = if repo.is_empty() { "oci://r.example.com/a" } else { "a" };
            let mut bundle = good();
            bundle.releases[0].source = upstream(chart, repo, version);
            assert_eq!(check(&bundle), Ok(3));
        }
        assert_eq!(artifact::tag(version), tag);
        let failure = refused(|bundle| {
            bundle.releases[0].source = upstream("oci://r.example.com/a", "", &format!("1.2.3-{}", "x".repeat(120)));
        });
        assert_eq!(failure.reason, Some(Reason::ChartSourceUnsupported));
    }

    #[test]
    fn a_namespace_that_is_not_allowed_is_named_with_its_release() {
        let failure = refused(|bundle| bundle.releases[1].namespace = "kube-system".into());
        assert_eq!(failure.reason, Some(Reason::NamespaceNotAllowed));
        assert!(failure.message.contains("release gpu-operator goes to namespace kube-system"), "{failure}");
    }

    #[test]
    fn values_are_checked() {
        let failure = refused(|bundle| bundle.releases[0].values = "a: 012\n".into());
        assert_eq!(failure.reason, Some(Reason::AICRArtifactUnsupported));
    }

    #[rstest]
    #[case::https_user_part("gpu-operator", "https://u:hidden@charts.example.com", "1.2.3", "holds a user part")]
    #[case::https_query("gpu-operator", "https://charts.example.com?token=hidden", "1.2.3", "more than a path")]
    #[case::https_name("hidden/../gpu", "https://charts.example.com", "1.2.3", "chart's name")]
    #[case::https_range("gpu-operator", "https://charts.example.com", ">=1.0.0", "not one exact version")]
    #[case::http("gpu-operator", "http://charts.example.com/hidden", "1.2.3", "neither an https://")]
    #[case::git("gpu-operator", "git@hidden:charts", "1.2.3", "neither an https://")]
    #[case::file("gpu-operator", "file:///hidden", "1.2.3", "neither an https://")]
    #[case::neither("gpu-operator", "", "1.2.3", "no oci://")]
    #[case::both("oci://r/hidden/a", "oci://r", "1.2.3", "neither an https://")]
    #[case::user_part("oci://u:hidden@r.example.com/a", "", "1.2.3", "no oci://")]
    #[case::with_tag("oci://r.example.com/hidden:1", "", "1.2.3", "no oci://")]
    #[case::range("oci://r.example.com/a", "", "^1.2", "\"^1.2\" is not one exact version")]
    #[case::latest("oci://r.example.com/a", "", "latest", "not one exact version")]
    #[case::none("oci://r.example.com/a", "", "", "not one exact version")]
    fn a_source_that_cannot_be_mirrored_says_why(
        #[case] chart: &str,
        #[case] repo: &str,
        #[case] version: &str,
        #[case] said: &str,
    ) {
        let failure = refused(|bundle| bundle.releases[0].source = upstream(chart, repo, version));
        assert_eq!(failure.reason, Some(Reason::ChartSourceUnsupported));
        assert!(failure.message.contains(said) && !failure.message.contains("hidden"), "{failure}");
    }
}
