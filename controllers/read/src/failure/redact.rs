//! Credentials in URLs are taken out of what people and logs get to see.

/// Replaces the user part of every URL with `***`.
pub(super) fn urls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let start = at + "://".len();
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>' | '\\');
        let authority = &rest[..rest.find(ends).unwrap_or(rest.len())];
        if let Some(at) = authority.rfind('@') {
            out.push_str("***");
            rest = &rest[at..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("https://user:pw@host/a@b", "https://***@host/a@b")]
    #[case("Get \"https://token@host:5000/v2/\": EOF", "Get \"https://***@host:5000/v2/\": EOF")]
    #[case("a oci://u:p@one b https://u:p@two?x=1", "a oci://***@one b https://***@two?x=1")]
    #[case("https://u:p@ss@host", "https://***@host")]
    #[case("oci://host/chart@sha256:12", "oci://host/chart@sha256:12")]
    #[case("mail a@b.c, https://host", "mail a@b.c, https://host")]
    #[case("://@", "://***@")]
    #[case("://", "://")]
    fn the_user_part_of_a_url_is_hidden(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(urls(text), expected);
    }
}
