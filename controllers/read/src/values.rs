//! Whether a release's values are safe to hand on as text: every reader must take them the same way.

use serde_json::Value;
use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle};

use crate::{error::quoted, yaml};

/// The longest values of one release, in bytes.
pub const LIMIT: usize = 64 * 1024;

/// Why values are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    /// More than a plan takes for one release.
    #[error("the values have {size} bytes, more than the limit of {limit}")]
    TooLarge {
        /// Size in bytes.
        size: usize,
        /// [`LIMIT`].
        limit: usize,
    },
    /// Not one YAML document without duplicate keys.
    #[error("the values do not parse: {problem}")]
    Syntax {
        /// What is wrong and where.
        problem: String,
    },
    /// A plain integer that YAML readers take differently.
    #[error(
        "the values hold the number {text} at line {line}, which YAML readers take differently; quote it or write it otherwise"
    )]
    Number {
        /// The scalar, quoted.
        text: String,
        /// Its line, from 1.
        line: usize,
    },
    /// Not a map.
    #[error("the values are {found} at the root, not a map")]
    Root {
        /// What stands there.
        found: &'static str,
    },
}

/// Checks the values of one release and gives them parsed; empty values are an empty map.
///
/// The parsed form is for looking at (paths that exist); what is handed on is the text itself.
///
/// # Errors
/// See [`ValuesError`].
pub fn check(text: &str) -> Result<Value, ValuesError> {
    if text.len() > LIMIT {
        return Err(ValuesError::TooLarge { size: text.len(), limit: LIMIT });
    }
    if is_blank(text) {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let value: Value = yaml::parse(text).map_err(|problem| ValuesError::Syntax { problem })?;
    numbers(text)?;
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        Value::Array(_) => Err(ValuesError::Root { found: "a list" }),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(ValuesError::Root { found: "a scalar" }),
    }
}

/// Whether nothing but blank lines, comments and document markers stand in the text.
pub(crate) fn is_blank(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#') || line == "---")
        && text.lines().filter(|line| line.trim() == "---").count() <= 1
}

fn numbers(text: &str) -> Result<(), ValuesError> {
    let options = granit_parser::options! { emit_comments: false };
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| ValuesError::Syntax { problem: error.to_string() })?;
        if let Event::Scalar(scalar, ScalarStyle::Plain, _, _) = event
            && is_ambiguous(&scalar)
        {
            return Err(ValuesError::Number { text: quoted(&scalar), line: span.start.line() });
        }
    }
    Ok(())
}

/// Integers with a leading zero (octal to some, decimal or a float to others), and those beyond 64 bits (a rounded
/// float to some).
fn is_ambiguous(scalar: &str) -> bool {
    let (negative, unsigned) = match scalar.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, scalar.strip_prefix('+').unwrap_or(scalar)),
    };
    let digits: String = unsigned.chars().filter(|c| *c != '_').collect();
    let (digits, radix) = match digits.get(..2) {
        Some("0x" | "0X") => (&digits[2..], 16),
        Some("0o" | "0O") => (&digits[2..], 8),
        Some("0b" | "0B") => (&digits[2..], 2),
        Some(_) | None => (digits.as_str(), 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return false;
    }
    let leading_zero = radix == 10 && digits.len() > 1 && digits.starts_with('0');
    let fits = match u64::from_str_radix(digits, radix) {
        Ok(size) => !negative || size <= i64::MIN.unsigned_abs(),
        Err(_) => false,
    };
    leading_zero || !fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::zero("0")]
    #[case::quoted_leading_zero("\"012\"")]
    #[case::single_quoted("'012'")]
    #[case::block("|\n  012")]
    #[case::hexadecimal("0x1F")]
    #[case::largest("18446744073709551615")]
    #[case::smallest("-9223372036854775808")]
    #[case::float("0.5")]
    #[case::version("012.5.1")]
    #[case::time("01:02:03")]
    #[case::text("012a")]
    #[case::boolean("no")]
    fn a_scalar_that_all_read_alike_passes(#[case] scalar: &str) {
        check(&format!("a: {scalar}\n")).unwrap();
    }

    #[rstest]
    #[case::octal("012")]
    #[case::not_octal("08080")]
    #[case::negative("-012")]
    #[case::positive("+012")]
    #[case::underscored("0_12")]
    #[case::two_zeros("00")]
    #[case::beyond_64_bits("18446744073709551616")]
    #[case::below_64_bits("-9223372036854775809")]
    #[case::hexadecimal_beyond("0x1FFFFFFFFFFFFFFFF")]
    fn a_number_that_readers_take_differently_is_refused(#[case] scalar: &str) {
        let at = |text: String| {
            let Err(ValuesError::Number { line, .. }) = check(&text) else { panic!("{text} passed") };
            line
        };
        assert_eq!(at(format!("x: 1\na: {scalar}\n")), 2);
        assert_eq!(at(format!("x: 1\na:\n  - [b, {scalar}]\n")), 3);
        assert_eq!(at(format!("x: 1\n{scalar}: b\n")), 2);
    }

    #[rstest]
    #[case::list("- a\n", "a list")]
    #[case::scalar("hello\n", "a scalar")]
    fn a_root_that_is_no_map_is_refused(#[case] text: &str, #[case] found: &'static str) {
        assert_eq!(check(text).unwrap_err(), ValuesError::Root { found });
    }

    #[rstest]
    #[case::duplicate("a: 1\na: 2\n")]
    #[case::two_documents("a: 1\n---\nb: 1\n")]
    #[case::two_empty_documents("---\n---\n")]
    #[case::infinity("a: .inf\n")]
    #[case::unknown_alias("a: *b\n")]
    #[case::unclosed("a: [1, 2\n")]
    fn what_does_not_parse_is_refused(#[case] text: &str) {
        assert!(matches!(check(text).unwrap_err(), ValuesError::Syntax { .. }));
    }

    #[test]
    fn the_limit_is_counted_in_bytes_of_text() {
        let fits = format!("a: {}", "x".repeat(LIMIT - 3));
        assert!(check(&fits).is_ok());
        assert_eq!(check(&(fits + "x")).unwrap_err(), ValuesError::TooLarge { size: LIMIT + 1, limit: LIMIT });
    }

    #[test]
    fn empty_values_are_an_empty_map() {
        for text in ["", "---\n", "# only a comment\n", "{}\n", "null\n"] {
            assert_eq!(check(text).unwrap(), json!({}), "{text}");
        }
    }

    #[test]
    fn comments_of_any_length_are_no_obstacle() {
        let text = "# line\n".repeat(500)
            + "a:\n"
            + &"  # line\n".repeat(500)
            + "  - # line\n"
            + &"  # line\n".repeat(500)
            + "    b\n";
        assert_eq!(check(&text).unwrap(), json!({"a": ["b"]}));
    }

    #[test]
    fn anchors_are_resolved() {
        assert_eq!(check("a: &x {b: 1}\nc: *x\n").unwrap(), json!({"a": {"b": 1}, "c": {"b": 1}}));
    }
}
