//! Text of others on our terminal, and the few colours of our own.

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Ordinary text.
    Plain,
    /// A heading.
    Heading,
    /// Done.
    Good,
    /// Somebody is waited for.
    Waiting,
    /// Failed, or about to be lost.
    Bad,
}

/// The text in its tone. `anstream` takes the colours away where there is no terminal or `NO_COLOR` is set.
pub(crate) fn paint(tone: Tone, text: &str) -> String {
    let code = match tone {
        Tone::Plain => return text.to_owned(),
        Tone::Heading => "1",
        Tone::Good => "32",
        Tone::Waiting => "33",
        Tone::Bad => "31",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// The text without what could move the cursor, recolour the screen or turn the reading direction: an approver must
/// see what is there, whoever wrote it. Line breaks stay.
pub(crate) fn clean(text: &str) -> String {
    let hidden = |character: char| {
        (character.is_control() && character != '\n')
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().map(|character| if hidden(character) { '\u{fffd}' } else { character }).collect()
}

/// `1 step`, `2 steps`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_paints_over_the_screen() {
        assert_eq!(clean("done\x1b[2J\rnow\u{202e}"), "done\u{fffd}[2J\u{fffd}now\u{fffd}");
        assert_eq!(clean("two\nlines, ünïcode →"), "two\nlines, ünïcode →");
    }

    #[test]
    fn only_plain_text_has_no_codes() {
        assert_eq!(paint(Tone::Plain, "a"), "a");
        assert_eq!(paint(Tone::Bad, "a"), "\x1b[31ma\x1b[0m");
    }
}
