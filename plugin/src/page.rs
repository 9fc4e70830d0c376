//! Lines of a page: fields, headings, indented text; whatever others wrote is cleaned here.

use crate::text::{Tone, clean, paint};

/// Width of a field's label with its colon.
const LABEL: usize = 16;

/// A page in the making.
#[derive(Default)]
pub(crate) struct Page(String);

impl Page {
    /// A label and its value; further lines of the value stand below its first. An empty label goes on with the last.
    pub(crate) fn field(&mut self, label: &str, tone: Tone, value: &str) {
        let label = if label.is_empty() { String::new() } else { format!("{label}:") };
        let mut label = format!("{label:LABEL$}");
        for line in clean(value).lines() {
            self.push(&format!("{label}{}", paint(tone, line)));
            label = " ".repeat(LABEL);
        }
    }

    /// A blank line and a heading.
    pub(crate) fn heading(&mut self, text: &str) {
        self.blank();
        self.push(&paint(Tone::Heading, &clean(text)));
    }

    /// Text at this many blanks, after a mark that stands before its first line only.
    pub(crate) fn text(&mut self, indent: usize, mark: &str, tone: Tone, text: &str) {
        let mut start = format!("{}{mark}", " ".repeat(indent));
        for line in clean(text).lines() {
            self.push(&format!("{start}{}", paint(tone, line)));
            start = " ".repeat(indent + mark.chars().count());
        }
    }

    /// A blank line.
    pub(crate) fn blank(&mut self) {
        self.0.push('\n');
    }

    /// The whole page.
    pub(crate) fn finish(self) -> String {
        self.0
    }

    fn push(&mut self, line: &str) {
        self.0.push_str(line.trim_end());
        self.0.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_lines_stand_below_the_first() {
        let mut page = Page::default();
        page.field("Message", Tone::Plain, "one\ntwo");
        page.field("", Tone::Plain, "three");
        page.text(2, "1. ", Tone::Plain, "do this\nthen that");
        assert_eq!(
            page.finish(),
            "Message:        one\n                two\n                three\n  1. do this\n     then that\n"
        );
    }
}
