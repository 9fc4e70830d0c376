//! Repositories of registries, and what of them is meant.

use std::fmt;

use aicr_crds::Digest;
use oci_client::Reference;

/// A repository of a registry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) host: String,
    pub(crate) repository: String,
}

/// What of a repository.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At<'a> {
    Tag(&'a str),
    Digest(Digest),
}

impl At<'_> {
    /// As a registry's addresses have it.
    pub(crate) fn reference(&self) -> String {
        match self {
            At::Tag(tag) => (*tag).to_owned(),
            At::Digest(digest) => digest.to_string(),
        }
    }
}

impl Place {
    /// Reads `host[:port]/repository`; nothing with a user part, a tag or a digest.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, repository) = text.split_once('/')?;
        let host_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        let good = !host.is_empty() && host.chars().all(host_word) && repository.split('/').all(is_part);
        good.then(|| Self { host: host.to_owned(), repository: repository.to_owned() })
    }

    /// The host that answers for this registry: Docker Hub has another one than its name.
    pub(crate) fn api_host(&self) -> &str {
        match self.host.as_str() {
            "docker.io" | "index.docker.io" => "registry-1.docker.io",
            host => host,
        }
    }

    /// The repository as that host knows it.
    pub(crate) fn api_repository(&self) -> String {
        let official = self.api_host() != self.host && !self.repository.contains('/');
        if official { format!("library/{}", self.repository) } else { self.repository.clone() }
    }

    /// As the pushing client takes it.
    pub(crate) fn at(&self, at: At<'_>) -> Reference {
        let (host, repository) = (self.host.clone(), self.repository.clone());
        match at {
            At::Tag(tag) => Reference::with_tag(host, repository, tag.to_owned()),
            At::Digest(digest) => Reference::with_digest(host, repository, digest.to_string()),
        }
    }

    /// How messages name it.
    pub(crate) fn named(&self, at: At<'_>) -> String {
        match at {
            At::Tag(tag) => format!("{self}:{tag}"),
            At::Digest(digest) => format!("{self}@{digest}"),
        }
    }
}

/// Whether the text is one part of a repository's name.
pub(crate) fn is_part(text: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_');
    !text.is_empty() && text.chars().all(word) && text.chars().any(|c| c.is_ascii_alphanumeric())
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.repository)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("r.example.com:5000/a/b-c_d.e", Some(("r.example.com:5000", "a/b-c_d.e")))]
    #[case("localhost/x", Some(("localhost", "x")))]
    #[case("r.example.com", None)]
    #[case("r.example.com/", None)]
    #[case("/x", None)]
    #[case("r.example.com/a//b", None)]
    #[case("r.example.com/a/../b", None)]
    #[case("r.example.com/A", None)]
    #[case("r.example.com/a:1", None)]
    #[case("r.example.com/a@sha256:00", None)]
    #[case("u:p@r.example.com/a", None)]
    #[case("https://r.example.com/a", None)]
    fn a_repository_is_a_host_and_a_path(#[case] text: &str, #[case] expected: Option<(&str, &str)>) {
        let found = Place::parse(text);
        assert_eq!(found.as_ref().map(|place| (place.host.as_str(), place.repository.as_str())), expected);
    }

    /// B38: whoever reads the prefix has brought it into its one form; another one never comes here.
    #[test]
    fn b38_a_place_with_scheme_slash_or_capitals_is_refused_and_not_guessed_at() {
        for refused in ["oci://h/p/", "oci://h/p", "h/p/", "h/P", "H/P/"] {
            assert_eq!(Place::parse(refused), None, "{refused}");
        }
        for taken in ["h/p", "h:5000/p"] {
            assert_eq!(Place::parse(taken).unwrap().to_string(), taken);
        }
    }

    #[rstest]
    #[case("docker.io/nginx", "registry-1.docker.io", "library/nginx")]
    #[case("docker.io/bitnamicharts/nginx", "registry-1.docker.io", "bitnamicharts/nginx")]
    #[case("r.example.com/nginx", "r.example.com", "nginx")]
    fn docker_hub_answers_elsewhere(#[case] text: &str, #[case] host: &str, #[case] repository: &str) {
        let place = Place::parse(text).unwrap();
        assert_eq!((place.api_host(), place.api_repository().as_str()), (host, repository));
    }
}
