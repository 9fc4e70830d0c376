//! Asking a person on the terminal before something is written.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::failure::Failure;

/// Whether a person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// `--yes` said so already.
    Given,
    /// A person is there to answer.
    Ask,
}

impl Consent {
    /// What the flag and the terminal allow: without either, nobody can agree, which is a usage error.
    pub(crate) fn new(yes: bool) -> Result<Self, Failure> {
        match (yes, io::stdin().is_terminal()) {
            (true, _) => Ok(Self::Given),
            (false, true) => Ok(Self::Ask),
            (false, false) => {
                Err(Failure::Usage("standard input is no terminal; pass --yes to approve without being asked".into()))
            }
        }
    }

    /// Returns once consent is given.
    pub(crate) fn obtain(self, question: &str) -> Result<(), Failure> {
        match self {
            Self::Given => Ok(()),
            Self::Ask => ask(question, &mut io::stdin().lock(), &mut anstream::stderr()),
        }
    }
}

fn ask(question: &str, input: &mut impl BufRead, output: &mut impl Write) -> Result<(), Failure> {
    write!(output, "{question} [y/N] ")?;
    output.flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    if ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) { Ok(()) } else { Err(Failure::NotConfirmed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        let answer = |text: &str| ask("Approve?", &mut text.as_bytes(), &mut Vec::new());
        for yes in ["y\n", "Yes\n", "yes"] {
            assert!(answer(yes).is_ok(), "{yes:?}");
        }
        for no in ["", "\n", "n\n", "yess\n", "no\n"] {
            assert!(matches!(answer(no), Err(Failure::NotConfirmed)), "{no:?}");
        }
    }
}
