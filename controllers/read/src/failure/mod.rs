//! Why an AICR run failed, from the end of its log as the pod's termination message keeps it.

mod class;
mod redact;

pub use class::{Class, Ruling, class, deadline_exceeded};

/// The longest text of a failure, in bytes.
pub const TEXT_LIMIT: usize = 2048;

/// What AICR said about its failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The outermost code of the chain, such as `NOT_FOUND`; plain errors have none.
    pub code: Option<String>,
    /// The error chain in one line, without credentials, at most [`TEXT_LIMIT`] bytes: what is longer lost its middle
    /// to an ellipsis, and one that was cut at the front begins with one.
    pub text: String,
    /// The part of the chain behind its innermost code, bounded alike.
    pub cause: String,
}

/// Reads a termination message: the last `command failed` of the log, as text or JSON, whole or cut.
///
/// A message without that marker gives its last line that is not the Kubernetes client's own.
pub fn read(exit_code: Option<i32>, message: &str) -> Failure {
    let chain = marked(message).unwrap_or_else(|| unmarked(message));
    let clean = redact::urls(&one_line(&chain));
    if clean.is_empty() {
        let text = exit_code.map_or_else(|| "no message".to_owned(), |code| format!("no message (exit {code})"));
        return Failure { code: None, cause: text.clone(), text };
    }
    let codes = codes(&clean);
    let cause = codes.last().map_or(clean.as_str(), |code| clean[code.end..].trim());
    Failure { code: codes.first().map(|code| code.name.to_owned()), cause: bounded(cause), text: bounded(&clean) }
}

/// The error behind the last `command failed` that carries one.
fn marked(message: &str) -> Option<String> {
    message.rmatch_indices("command failed").find_map(|(at, marker)| {
        let rest = &message[at + marker.len()..];
        let line = rest.lines().next().unwrap_or_default();
        if let Some(at) = line.find(JSON_ERROR) {
            return Some(unquote(&rest[at + JSON_ERROR.len()..]));
        }
        let at = line.find(" error=")? + " error=".len();
        let value = &rest[at..];
        match value.strip_prefix('"') {
            // Only the plain form, `command failed: error=`, writes the value as it is.
            Some(quoted) if !rest.starts_with(':') => Some(unquote(quoted)),
            Some(_) | None => Some(before_exit_code(value).to_owned()),
        }
    })
}

const JSON_ERROR: &str = "\"error\":\"";

/// What is left when the marker itself was cut off, or never written.
fn unmarked(message: &str) -> String {
    if let Some(at) = message.rfind(JSON_ERROR) {
        return unquote(&message[at + JSON_ERROR.len()..]);
    }
    for end in ["\",\"exitCode\":", " exitCode="] {
        if let Some(at) = message.rfind(end) {
            // The first word may be half a URL, whose credentials could not be told any more.
            let rest = message[..at].split_once(char::is_whitespace).map_or("", |(_, rest)| rest);
            return format!("\u{2026} {rest}");
        }
    }
    let own = |line: &&str| !line.trim().is_empty() && !is_client_log(line);
    let panic = message.lines().find(|line| line.starts_with("panic: ") || line.starts_with("fatal error: "));
    panic.or_else(|| message.lines().rfind(own)).unwrap_or_default().to_owned()
}

/// Lines of the Kubernetes client library, such as `E1129 21:08:10.487481 1 kernel.go:142] "..."`.
fn is_client_log(line: &str) -> bool {
    let bytes = line.as_bytes();
    bytes.len() > 6
        && matches!(bytes[0], b'E' | b'W' | b'I' | b'F')
        && bytes[1..5].iter().all(u8::is_ascii_digit)
        && bytes[5] == b' '
}

fn before_exit_code(value: &str) -> &str {
    value.rfind(" exitCode=").map_or(value, |at| &value[..at])
}

/// The text up to the closing quote, escapes resolved; up to the end where the quote was cut off.
fn unquote(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => match chars.next() {
                Some('n' | 'r' | 't') => out.push(' '),
                Some('u') => out.push(escaped(&mut chars, 4)),
                Some('x') => out.push(escaped(&mut chars, 2)),
                Some(other) => out.push(other),
                None => {}
            },
            other => out.push(other),
        }
    }
    out
}

fn escaped(chars: &mut std::str::Chars<'_>, digits: usize) -> char {
    let hex: String = chars.by_ref().take(digits).collect();
    u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Line breaks and other controls become single blanks; colour codes vanish.
fn one_line(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // A colour code ends with its first letter.
            let _ = chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(if c.is_control() { ' ' } else { c });
        }
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

struct Code<'a> {
    name: &'a str,
    end: usize,
}

/// The `[CODE]` marks of a chain, outermost first.
fn codes(chain: &str) -> Vec<Code<'_>> {
    let is_code = |name: &str| name.len() > 2 && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    let open = chain.match_indices('[').filter_map(|(at, _)| {
        let length = chain[at + 1..].find(']')?;
        let name = &chain[at + 1..at + 1 + length];
        is_code(name).then_some(Code { name, end: at + length + 2 })
    });
    open.collect()
}

/// Keeps the beginning, which says what was done, and the end, which says why it failed.
fn bounded(text: &str) -> String {
    if text.len() <= TEXT_LIMIT {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(TEXT_LIMIT / 4);
    let tail = text.ceil_char_boundary(text.len() - (TEXT_LIMIT - TEXT_LIMIT / 4 - '\u{2026}'.len_utf8()));
    format!("{}\u{2026}{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::text(
        "[cli] loading snapshot\n[cli] command failed: error=[NOT_FOUND] recipe file not found: /nope.yaml exitCode=3\n",
        Some("NOT_FOUND"),
        "[NOT_FOUND] recipe file not found: /nope.yaml",
        "recipe file not found: /nope.yaml"
    )]
    #[case::json(
        r#"{"time":"t","level":"ERROR","msg":"command failed","module":"aicr","version":"1.0.0","error":"[INTERNAL] a: [INVALID_REQUEST] \"b\" is \u003cbad\u003e","exitCode":8}"#,
        Some("INTERNAL"), "[INTERNAL] a: [INVALID_REQUEST] \"b\" is <bad>", "\"b\" is <bad>")]
    #[case::logfmt(
        "time=t level=ERROR msg=\"command failed\" module=aicr version=1.0.0 error=\"[TIMEOUT] job \\\"x\\\": gone\" exitCode=5",
        Some("TIMEOUT"),
        "[TIMEOUT] job \"x\": gone",
        "job \"x\": gone"
    )]
    #[case::usage(
        "Incorrect Usage: flag provided but not defined: -x\n\n2026/11/29 19:41:22 ERROR command failed error=\"flag provided but not defined: -x\" exitCode=1\n",
        None,
        "flag provided but not defined: -x",
        "flag provided but not defined: -x"
    )]
    #[case::unknown_command(
        "No help topic for 'frobnicate'\n",
        None,
        "No help topic for 'frobnicate'",
        "No help topic for 'frobnicate'"
    )]
    #[case::line_breaks(
        "[cli] command failed: error=[UNAUTHORIZED] missing required permissions:\n  create roles\n  create jobs exitCode=4",
        Some("UNAUTHORIZED"),
        "[UNAUTHORIZED] missing required permissions: create roles create jobs",
        "missing required permissions: create roles create jobs"
    )]
    #[case::client_log_behind(
        "[cli] command failed: error=[INTERNAL] a exitCode=8\nW1129 21:08:10.487481 1 warnings.go:107] \"Warning: x\"\n",
        Some("INTERNAL"),
        "[INTERNAL] a",
        "a"
    )]
    #[case::client_log_alone(
        "something broke\nE1129 21:08:10.487481 1 kernel.go:142] \"x\"\n",
        None,
        "something broke",
        "something broke"
    )]
    #[case::last_of_two(
        "[cli] command failed: error=one exitCode=1\n[cli] command failed: error=two exitCode=2\n",
        None,
        "two",
        "two"
    )]
    #[case::marker_inside(
        "[cli] command failed: error=[INTERNAL] exec: command failed badly exitCode=8",
        Some("INTERNAL"),
        "[INTERNAL] exec: command failed badly",
        "exec: command failed badly"
    )]
    #[case::colour(
        "\u{1b}[31m[cli] command failed: error=[INTERNAL] a exitCode=8\u{1b}[0m\n",
        Some("INTERNAL"),
        "[INTERNAL] a",
        "a"
    )]
    #[case::raw_with_quote("[cli] command failed: error=\"a\" is b exitCode=1", None, "\"a\" is b", "\"a\" is b")]
    #[case::front_cut(
        "half/url rest: [INTERNAL] a: b exitCode=8\n",
        Some("INTERNAL"),
        "\u{2026} rest: [INTERNAL] a: b",
        "a: b"
    )]
    #[case::json_front_cut(
        r#"icr","version":"1","error":"[INTERNAL] a: b","exitCode":8}"#,
        Some("INTERNAL"),
        "[INTERNAL] a: b",
        "a: b"
    )]
    #[case::json_error_cut(r#"cut a: b","exitCode":8}"#, None, "\u{2026} a: b", "\u{2026} a: b")]
    #[case::end_cut("[cli] command failed: error=[INTERNAL] a: b", Some("INTERNAL"), "[INTERNAL] a: b", "a: b")]
    #[case::json_end_cut(
        r#"{"msg":"command failed","error":"[INTERNAL] a: b\"#,
        Some("INTERNAL"),
        "[INTERNAL] a: b",
        "a: b"
    )]
    #[case::panic("x\npanic: boom\n\ngoroutine 1 [running]:\nmain.main()\n", None, "panic: boom", "panic: boom")]
    fn the_chain_and_its_cause_are_found(
        #[case] message: &str,
        #[case] code: Option<&str>,
        #[case] text: &str,
        #[case] cause: &str,
    ) {
        let failure = read(Some(1), message);
        assert_eq!(failure.text, text);
        assert_eq!(failure.cause, cause);
        assert_eq!(failure.code.as_deref(), code);
    }

    #[test]
    fn an_empty_message_names_the_exit() {
        assert_eq!(read(Some(137), "\n").text, "no message (exit 137)");
        assert_eq!(read(None, "").text, "no message");
    }

    #[test]
    fn a_long_text_keeps_both_ends_within_the_limit() {
        for filler in ["x", "\u{e4}", "\u{1f600}"] {
            for shift in 0..4 {
                let message = format!(
                    "[cli] command failed: error=[INTERNAL] {}start {} end exitCode=8",
                    "y".repeat(shift),
                    filler.repeat(3000)
                );
                let text = read(Some(8), &message).text;
                assert!(text.len() <= TEXT_LIMIT, "{}", text.len());
                assert!(text.contains("start") && text.ends_with(" end") && text.contains('\u{2026}'));
            }
        }
    }

    #[test]
    fn credentials_do_not_survive() {
        let text =
            read(Some(6), "[cli] command failed: error=Get \"https://user:pw@r.example.com/v2/\": x exitCode=6").text;
        assert!(!text.contains("pw") && text.contains("r.example.com"), "{text}");
    }

    #[test]
    fn no_cut_makes_it_panic() {
        let whole =
            "\u{e4}{\"msg\":\"command failed\",\"error\":\"[INTERNAL] \\u00e4 \\x41 \u{1f600}: b\",\"exitCode\":8}";
        for (at, _) in whole.char_indices() {
            let _ = (read(Some(8), &whole[at..]), read(Some(8), &whole[..at]));
        }
    }
}
