//! Warnings that the API server sends beside an answer, shown as kubectl shows them.

use std::io::Write;

use http::{HeaderMap, Response, header::WARNING};

use crate::text::clean;

/// Prints the warnings of an answer on standard error and hands the answer on.
pub(crate) fn show<B>(response: Response<B>) -> Response<B> {
    for text in texts(response.headers()) {
        // Nobody is there to be warned.
        let _ = writeln!(anstream::stderr(), "Warning: {}", clean(&text));
    }
    response
}

fn texts(headers: &HeaderMap) -> Vec<String> {
    headers.get_all(WARNING).iter().filter_map(|value| text(&String::from_utf8_lossy(value.as_bytes()))).collect()
}

/// The quoted part of `299 - "text"`.
fn text(line: &str) -> Option<String> {
    let (_, quoted) = line.strip_prefix("299 ")?.split_once('"')?;
    let (mut text, mut rest) = (String::new(), quoted.chars());
    loop {
        match rest.next()? {
            '"' => return Some(text),
            '\\' => text.push(rest.next()?),
            character => text.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_what_stands_between_the_quotes() {
        assert_eq!(
            text(r#"299 - "you approve \"r\" yourself" "date""#).as_deref(),
            Some(r#"you approve "r" yourself"#)
        );
        assert_eq!(text("299 - \"cut"), None);
        assert_eq!(text("110 - \"stale\""), None);
    }

    #[test]
    fn every_warning_is_shown() {
        let mut headers = HeaderMap::new();
        headers.append(WARNING, "299 - \"one\"".parse().unwrap());
        headers.append(WARNING, "299 - \"two\"".parse().unwrap());
        assert_eq!(texts(&headers), ["one", "two"]);
    }
}
