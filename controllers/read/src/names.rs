//! The forms that names in AICR's documents may have, since they become names of Kubernetes objects.

use crate::error::{ReadError, quoted};

/// The longest Helm release name, in bytes.
pub(crate) const RELEASE: usize = 53;

/// The longest DNS label, in bytes: component names and namespaces.
pub(crate) const LABEL: usize = 63;

/// Refuses what is no DNS label of at most `longest` bytes.
pub(crate) fn label(what: &str, role: &str, text: &str, longest: usize) -> Result<(), ReadError> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let ends = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
    let bytes = text.as_bytes();
    if bytes.len() <= longest && bytes.iter().copied().all(inner) && ends(bytes.first()) && ends(bytes.last()) {
        return Ok(());
    }
    let form = "lower-case letters, digits and inner dashes";
    Err(ReadError::damaged(what, format!("the {role} {} is not 1 to {longest} {form}", quoted(text))))
}

/// Refuses more than `limit` rows.
pub(crate) fn count(what: &str, rows: &str, found: usize, limit: usize) -> Result<(), ReadError> {
    if found <= limit {
        return Ok(());
    }
    Err(ReadError::damaged(what, format!("it has {found} {rows}, at most {limit} are read")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dns_labels_within_the_length_are_names() {
        for good in ["a", "gpu-operator", "0", &"a".repeat(53)] {
            assert!(label("x", "name", good, RELEASE).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a/b", "\u{e4}", "a b", &"a".repeat(54)] {
            assert!(label("x", "name", bad, RELEASE).is_err(), "{bad}");
        }
    }
}
