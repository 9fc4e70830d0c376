//! What AWS says of a failure, in few words: its code and message, else the causes; never what was sent.

use std::error::Error;

use aws_sdk_ecr::error::ProvideErrorMetadata;

/// Bytes that a failure may take.
const LIMIT: usize = 512;

/// A failure of the SDK in one line.
pub(crate) fn said<E: Error + ProvideErrorMetadata + 'static>(error: &E) -> String {
    let line = match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        (None, _) => causes(error),
    };
    cut(&line.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        // Some layers repeat the one below.
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_failure_is_cut_at_a_character_boundary() {
        assert_eq!(cut(&"ä".repeat(LIMIT)).len(), LIMIT);
        assert_eq!(cut("short"), "short");
    }
}
