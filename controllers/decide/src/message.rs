//! Messages within bounds: cut at a character boundary, with a mark.

use std::borrow::Cow;

/// Bytes that a condition's message may take (`metav1.Condition`).
pub const CONDITION_LIMIT: usize = 32_768;
/// Bytes that an Event's note may take.
pub const EVENT_LIMIT: usize = 1024;

const MARK: &str = " …";

/// The text, cut at a character boundary so that it takes at most `limit` bytes, mark included.
pub fn bounded<'a>(text: impl Into<Cow<'a, str>>, limit: usize) -> String {
    let text = text.into();
    if text.len() <= limit {
        return text.into_owned();
    }
    let mut end = limit.saturating_sub(MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MARK}", &text[..end])
}

/// Up to `limit` items, then a count of the rest: `a, b, c and 4 more`.
pub fn listed<T: std::fmt::Display>(items: &[T], limit: usize) -> String {
    let shown = items.iter().take(limit).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(limit) {
        0 => shown,
        rest => format!("{shown} and {rest} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B85.
    #[test]
    fn a_long_message_is_cut_at_a_character_boundary_with_a_mark() {
        let long = "ä".repeat(200_000);
        for limit in [1024, 1025, CONDITION_LIMIT] {
            let cut = bounded(&long, limit);
            assert!(cut.len() <= limit && cut.len() > limit - 4, "{}", cut.len());
            assert!(cut.ends_with(MARK));
        }
        assert_eq!(bounded("short", 1024), "short");
    }

    #[test]
    fn a_list_names_some_and_counts_the_rest() {
        assert_eq!(listed(&["a", "b", "c"], 3), "a, b, c");
        assert_eq!(listed(&["a", "b", "c", "d"], 2), "a, b and 2 more");
    }
}
