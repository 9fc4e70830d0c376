//! Values of flags as they are read, with what was expected where one is something else.

use k8s_openapi::api::core::v1::Toleration;

pub(super) fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    if key.is_empty() { Err("the key is empty".to_owned()) } else { Ok((key.to_owned(), value.to_owned())) }
}

pub(super) fn toleration(text: &str) -> Result<Toleration, String> {
    serde_json::from_str(text).map_err(|error| format!("expected one toleration as JSON: {error}"))
}

pub(super) fn crd(text: &str) -> Result<String, String> {
    let whole = text.split_once('.').is_some_and(|(plural, group)| !plural.is_empty() && group.contains('.'));
    if whole { Ok(text.to_owned()) } else { Err("expected the name of a CRD, PLURAL.GROUP".to_owned()) }
}

/// One form of it: OCI names have no capitals, and what is made of it has its scheme once and no slash at the end.
pub(super) fn repository(text: &str) -> Result<String, String> {
    let lower = text.to_lowercase();
    let bare = lower.strip_prefix("oci://").unwrap_or(&lower);
    let bare = bare.strip_suffix('/').unwrap_or(bare);
    let parts: Vec<&str> = bare.split('/').collect();
    if parts.len() < 2 || parts.contains(&"") || bare.contains("://") {
        return Err("expected HOST[:PORT]/PREFIX of an OCI registry".to_owned());
    }
    Ok(bare.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B38.
    #[test]
    fn b38_a_repository_has_one_form_however_it_is_given() {
        for (given, taken) in
            [("oci://h/p/", "h/p"), ("h/p", "h/p"), ("h:5000/p", "h:5000/p"), ("H/P", "h/p"), ("OCI://h/p/q", "h/p/q")]
        {
            assert_eq!(repository(given).as_deref(), Ok(taken), "{given}");
        }
        for refused in ["r", "r/", "/p", "r//p", "https://r/p", "oci://", "oci://oci://h/p", ""] {
            assert!(repository(refused).is_err(), "{refused}");
        }
    }
}
