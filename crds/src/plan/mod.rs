//! Plans: the ordered releases that AICR rendered, their digest, and how one is stored in a ConfigMap.

mod index;
mod stored;

use serde::{Deserialize, Serialize};

use crate::digest::{CanonicalError, Digest};

use index::Index;
pub(crate) use index::Print;
pub use stored::{PlanContext, StoreError, StoredPlan, StoredPlanError};

/// The schema of plans that this operator writes and reads.
pub const SCHEMA_VERSION: &str = "1";

/// The hashed part of a plan: what AICR rendered, and nothing that varies without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanContent {
    /// Schema of this document.
    pub schema_version: String,
    /// Releases in AICR's normative order.
    pub releases: Vec<ReleaseContent>,
}

/// The hashed part of one release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReleaseContent {
    /// Release name, which is the Application's and Helm's too; 53 characters at most.
    pub id: String,
    /// AICR component it belongs to.
    pub component: String,
    /// Namespace it is installed in.
    pub namespace: String,
    /// Its chart.
    pub chart: ChartContent,
    /// AICR's own values text, byte for byte.
    pub values: String,
    /// Releases that must be ready before it.
    pub depends_on: Vec<String>,
    /// Whether it is a readiness gate.
    pub readiness_gate: bool,
}

/// What counts as a chart's identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChartContent {
    /// Repository below the registry prefix: `charts/<chart>` or `wrappers/<release>`.
    pub repository: String,
    /// A mirrored chart's digest, or the digest of a local chart's files.
    pub content: Digest,
}

/// Where a release's archive lies: what Argo CD is pointed at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Archive {
    /// Release.
    pub id: String,
    /// Version of the archive.
    pub version: String,
    /// Digest of its manifest in the registry.
    pub digest: Digest,
    /// CRDs that the chart carries, by name, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crds: Vec<String>,
}

/// A plan: the hashed content, and beside it the archives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    digest: Digest,
    content: PlanContent,
    archives: Vec<Archive>,
    index: Index,
}

/// Why a plan is none.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The schema is not ours.
    #[error("unsupported plan schema version {0:?}")]
    Schema(String),
    /// Releases and archives do not match one to one.
    #[error("release {0} has no archive, or more than one")]
    Archives(String),
    /// Two releases share a name.
    #[error("release {0} appears twice")]
    Duplicate(String),
    /// A release name that Helm or Argo CD would cut.
    #[error("release name {0:?} is empty or longer than 53 characters")]
    Name(String),
    /// A dependency names no earlier release.
    #[error("release {release} depends on {needs}, which is not an earlier release")]
    Dependency {
        /// The release.
        release: String,
        /// What it names.
        needs: String,
    },
    /// The content has no canonical form.
    #[error("hash the plan")]
    Canonical(#[from] CanonicalError),
}

impl Plan {
    /// A plan of these releases; checks that names are unique and short, that each release has its archive, and that
    /// each dependency is an earlier release (so there are no cycles).
    pub fn new(releases: Vec<ReleaseContent>, archives: Vec<Archive>) -> Result<Self, PlanError> {
        Self::from_parts(PlanContent { schema_version: SCHEMA_VERSION.to_owned(), releases }, archives)
    }

    /// The same, with the digest of a known plan of this content, where there is one: hashing it is most of the work.
    pub fn new_among<'a>(
        releases: Vec<ReleaseContent>,
        archives: Vec<Archive>,
        known: impl IntoIterator<Item = &'a Self>,
    ) -> Result<Self, PlanError> {
        let content = PlanContent { schema_version: SCHEMA_VERSION.to_owned(), releases };
        let same = known.into_iter().find(|known| known.content == content);
        Self::checked(content, archives, same.map(|same| same.digest))
    }

    /// A plan of stored parts, checked as [`Plan::new`] does.
    pub fn from_parts(content: PlanContent, archives: Vec<Archive>) -> Result<Self, PlanError> {
        Self::checked(content, archives, None)
    }

    fn checked(content: PlanContent, archives: Vec<Archive>, known: Option<Digest>) -> Result<Self, PlanError> {
        if content.schema_version != SCHEMA_VERSION {
            return Err(PlanError::Schema(content.schema_version));
        }
        for (place, release) in content.releases.iter().enumerate() {
            let earlier = &content.releases[..place];
            if release.id.is_empty() || release.id.len() > 53 {
                return Err(PlanError::Name(release.id.clone()));
            }
            if earlier.iter().any(|other| other.id == release.id) {
                return Err(PlanError::Duplicate(release.id.clone()));
            }
            if let Some(needs) =
                release.depends_on.iter().find(|needs| !earlier.iter().any(|other| other.id == **needs))
            {
                return Err(PlanError::Dependency { release: release.id.clone(), needs: needs.clone() });
            }
            if archives.iter().filter(|archive| archive.id == release.id).count() != 1 {
                return Err(PlanError::Archives(release.id.clone()));
            }
        }
        if let Some(stray) =
            archives.iter().find(|archive| !content.releases.iter().any(|release| release.id == archive.id))
        {
            return Err(PlanError::Archives(stray.id.clone()));
        }
        let index = Index::of(&content.releases, &archives);
        let digest = known.map_or_else(|| Digest::of_canonical(&content), Ok)?;
        Ok(Self { digest, content, archives, index })
    }

    /// sha256 over the canonical JSON of the content.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The hashed part.
    pub fn content(&self) -> &PlanContent {
        &self.content
    }

    /// Where each release's archive lies.
    pub fn archives(&self) -> &[Archive] {
        &self.archives
    }

    /// The releases in order, each with its place and archive.
    pub fn releases(&self) -> impl Iterator<Item = PlanRelease<'_>> {
        (0..self.content.releases.len()).filter_map(|place| self.at(place))
    }

    /// One release by name.
    pub fn release(&self, id: &str) -> Option<PlanRelease<'_>> {
        self.at(self.index.place(&self.content.releases, id)?)
    }

    fn at(&self, order: usize) -> Option<PlanRelease<'_>> {
        let content = self.content.releases.get(order)?;
        let archive = self.archives.get(self.index.archive(order))?;
        Some(PlanRelease { order, content, archive, print: self.index.print(order) })
    }

    /// Name of the ConfigMap that stores a plan of this digest: `aicr-plan-<first 32 hex>`.
    pub fn config_map_name(digest: Digest) -> String {
        format!("aicr-plan-{}", digest.prefix(32))
    }
}

/// One release of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanRelease<'a> {
    /// Its place, from 0.
    pub order: usize,
    /// The hashed part.
    pub content: &'a ReleaseContent,
    /// Where its archive lies.
    pub archive: &'a Archive,
    pub(crate) print: &'a Print,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(id: &str, depends_on: &[&str]) -> ReleaseContent {
        ReleaseContent {
            id: id.into(),
            component: id.into(),
            namespace: "gpu".into(),
            chart: ChartContent { repository: format!("charts/{id}"), content: Digest::of(id.as_bytes()) },
            values: "a: 1\n".into(),
            depends_on: depends_on.iter().map(|&needs| needs.to_owned()).collect(),
            readiness_gate: false,
        }
    }

    fn archive(id: &str) -> Archive {
        Archive { id: id.into(), version: "1.0.0".into(), digest: Digest::of(id.as_bytes()), crds: vec![] }
    }

    #[test]
    fn the_digest_covers_content_and_order_but_not_where_archives_lie() {
        let plan = |ids: [&str; 2], version: &str| {
            let archives = ids.map(|id| Archive { version: version.into(), ..archive(id) });
            Plan::new(ids.map(|id| release(id, &[])).into(), archives.into()).unwrap().digest()
        };
        assert_eq!(plan(["a", "b"], "1"), plan(["a", "b"], "2"));
        assert_ne!(plan(["a", "b"], "1"), plan(["b", "a"], "1"));
    }

    #[test]
    fn a_known_plan_gives_its_digest_only_to_the_same_content() {
        let archives = || vec![archive("a"), archive("b")];
        let made = |second: &str, known: &[&Plan]| {
            let releases = vec![release("a", &[]), ReleaseContent { values: second.into(), ..release("b", &["a"]) }];
            Plan::new_among(releases, archives(), known.iter().copied()).unwrap()
        };
        let (one, other) = (made("b: 1\n", &[]), made("b: 2\n", &[]));
        assert_ne!(one.digest(), other.digest());
        assert_eq!(made("b: 2\n", &[&one, &other]), other);
        assert_eq!(made("b: 2\n", &[&one]), other);
    }

    #[test]
    fn a_dependency_that_is_not_an_earlier_release_is_refused() {
        let archives = vec![archive("a"), archive("b")];
        assert!(Plan::new(vec![release("a", &[]), release("b", &["a"])], archives.clone()).is_ok());
        for bad in [
            vec![release("a", &["b"]), release("b", &["a"])],
            vec![release("a", &["gone"]), release("b", &[])],
            vec![release("a", &["a"]), release("b", &[])],
        ] {
            assert!(matches!(Plan::new(bad, archives.clone()), Err(PlanError::Dependency { .. })));
        }
    }

    #[test]
    fn names_are_unique_and_short_and_archives_match() {
        assert!(matches!(
            Plan::new(vec![release("a", &[]), release("a", &[])], vec![archive("a")]),
            Err(PlanError::Duplicate(_))
        ));
        let long = "x".repeat(54);
        assert!(matches!(Plan::new(vec![release(&long, &[])], vec![archive(&long)]), Err(PlanError::Name(_))));
        assert!(matches!(Plan::new(vec![release("a", &[])], vec![]), Err(PlanError::Archives(_))));
        assert!(matches!(
            Plan::new(vec![release("a", &[])], vec![archive("a"), archive("b")]),
            Err(PlanError::Archives(_))
        ));
    }
}
