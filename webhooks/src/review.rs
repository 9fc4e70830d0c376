//! The request of an AdmissionReview, borrowed from its body.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The only version of the review that is read.
const API_VERSION: &str = "admission.k8s.io/v1";

/// A text that is copied only where JSON escapes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Text<'a> {
    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The text itself.
    pub(crate) fn into_inner(self) -> Cow<'a, str> {
        self.0
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

/// What is done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Operation {
    /// It is new.
    Create,
    /// It changes.
    Update,
    /// It goes.
    Delete,
    /// A connection to it is opened; none of our kinds knows that.
    Connect,
}

/// Who asks, as the API server reports them: under impersonation the impersonated.
#[derive(Debug, Deserialize)]
pub(crate) struct User<'a> {
    /// User name.
    #[serde(borrow)]
    username: Text<'a>,
    /// Groups, unread: only consent asks for them.
    #[serde(borrow, default)]
    groups: Option<&'a RawValue>,
}

impl<'a> User<'a> {
    /// User name.
    pub(crate) fn name(&self) -> &str {
        self.username.as_str()
    }

    /// Groups, in the order of the review; none where they cannot be read.
    pub(crate) fn groups(&self) -> Vec<Text<'a>> {
        self.groups.and_then(|groups| serde_json::from_str(groups.get()).ok()).unwrap_or_default()
    }
}

/// Group, version and kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Ours.
    RuntimeRollout,
    /// Ours.
    ClusterRuntime,
    /// Argo CD's.
    Application,
    /// Core.
    ConfigMap,
}

impl Kind {
    /// The kind in one word, as messages name it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::RuntimeRollout => "RuntimeRollout",
            Self::ClusterRuntime => "ClusterRuntime",
            Self::Application => "Application",
            Self::ConfigMap => "ConfigMap",
        }
    }

    fn group_version(self) -> (&'static str, &'static str) {
        match self {
            Self::RuntimeRollout | Self::ClusterRuntime => (aicr_crds::keys::GROUP, "v1alpha1"),
            Self::Application => ("argoproj.io", "v1alpha1"),
            Self::ConfigMap => ("", "v1"),
        }
    }

    fn is(self, wire: &WireKind<'_>) -> bool {
        let (group, version) = self.group_version();
        wire.group.as_str() == group && wire.version.as_str() == version && wire.kind.as_str() == self.word()
    }
}

/// An object that may know its own name, where the request does not say it.
pub(crate) trait Named {
    /// `metadata.name`.
    fn name(&self) -> Option<&str>;
}

/// One request; `O` is what a webhook needs of the object.
#[derive(Debug)]
pub(crate) struct Review<'a, O> {
    /// UID of the request, which the answer repeats.
    pub(crate) uid: Text<'a>,
    /// Kind of the object.
    pub(crate) kind: Kind,
    /// What is done.
    pub(crate) operation: Operation,
    /// `status`, or empty for the object itself.
    pub(crate) sub_resource: Text<'a>,
    /// Namespace; empty for a cluster-scoped object.
    pub(crate) namespace: Text<'a>,
    /// Who asks.
    pub(crate) user: User<'a>,
    /// The object as it will be; absent on DELETE.
    pub(crate) object: Option<O>,
    /// The object as it is; absent on CREATE.
    pub(crate) old: Option<O>,
    /// Whether nothing will be stored. It is judged the same.
    pub(crate) dry_run: bool,
    name: Option<Text<'a>>,
}

impl<O: Named> Review<'_, O> {
    /// Name of the object: the delete of a collection leaves it out of the request.
    pub(crate) fn name(&self) -> &str {
        let asked = self.name.as_ref().map(Text::as_str).filter(|name| !name.is_empty());
        let held = || self.old.as_ref().and_then(O::name).or_else(|| self.object.as_ref().and_then(O::name));
        asked.or_else(held).unwrap_or_default()
    }
}

impl<O> Review<'_, O> {
    /// Whether the status subresource is written.
    pub(crate) fn is_status(&self) -> bool {
        self.sub_resource.as_str() == "status"
    }
}

/// Why a body is no review for this webhook. The answer is HTTP 400: with `failurePolicy: Fail` that is a denial.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// Nothing was sent.
    #[error("the body is empty")]
    Empty,
    /// Not text.
    #[error("the body is not UTF-8")]
    Utf8(#[from] std::str::Utf8Error),
    /// Not JSON, or not the shape of a review.
    #[error("read the AdmissionReview")]
    Json(#[from] serde_json::Error),
    /// Another document.
    #[error("the body is no AdmissionReview of admission.k8s.io/v1 with a request")]
    Version,
    /// A review of something that this path does not judge.
    #[error("this path does not judge objects of that kind and version")]
    Kind,
}

/// Reads a review of one of `kinds`. Everything is borrowed from `body`; what no rule reads is skipped.
pub(crate) fn read<'a, O: Deserialize<'a>>(body: &'a [u8], kinds: &[Kind]) -> Result<Review<'a, O>, ReviewError> {
    if body.is_empty() {
        return Err(ReviewError::Empty);
    }
    // Once for all: what is skipped later is not looked at again.
    let text = str::from_utf8(body)?;
    let envelope: Envelope<'a, O> = serde_json::from_str(text)?;
    if envelope.api_version.as_str() != API_VERSION || envelope.kind.as_str() != "AdmissionReview" {
        return Err(ReviewError::Version);
    }
    let request = envelope.request.ok_or(ReviewError::Version)?;
    let kind = kinds.iter().copied().find(|kind| kind.is(&request.kind)).ok_or(ReviewError::Kind)?;
    Ok(Review {
        uid: request.uid,
        kind,
        operation: request.operation,
        sub_resource: request.sub_resource.unwrap_or_default(),
        namespace: request.namespace.unwrap_or_default(),
        user: request.user_info,
        object: request.object,
        old: request.old_object,
        dry_run: request.dry_run.unwrap_or_default(),
        name: request.name,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>"))]
struct Envelope<'a, O> {
    #[serde(borrow)]
    api_version: Text<'a>,
    #[serde(borrow)]
    kind: Text<'a>,
    #[serde(borrow, default = "none")]
    request: Option<Request<'a, O>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>"))]
struct Request<'a, O> {
    #[serde(borrow)]
    uid: Text<'a>,
    #[serde(borrow)]
    kind: WireKind<'a>,
    operation: Operation,
    #[serde(borrow, default)]
    sub_resource: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    namespace: Option<Text<'a>>,
    #[serde(borrow)]
    user_info: User<'a>,
    #[serde(default = "none")]
    object: Option<O>,
    #[serde(default = "none")]
    old_object: Option<O>,
    #[serde(default)]
    dry_run: Option<bool>,
}

#[derive(Deserialize)]
struct WireKind<'a> {
    #[serde(borrow, default)]
    group: Text<'a>,
    #[serde(borrow)]
    version: Text<'a>,
    #[serde(borrow)]
    kind: Text<'a>,
}

/// A default that asks nothing of `T`.
fn none<T>() -> Option<T> {
    None
}
