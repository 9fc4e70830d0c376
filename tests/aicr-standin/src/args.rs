//! Flags as AICR's flag library takes them: spelling, errors and help.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::failure::{Code, Failure};

/// How often a flag may stand and whether a value follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Switch,
    One,
    Many,
}

/// One flag of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flag {
    name: &'static str,
    alias: &'static str,
    env: &'static str,
    kind: Kind,
}

impl Flag {
    pub(crate) const fn switch(name: &'static str) -> Self {
        Self { name, alias: "", env: "", kind: Kind::Switch }
    }

    pub(crate) const fn one(name: &'static str) -> Self {
        Self { name, alias: "", env: "", kind: Kind::One }
    }

    pub(crate) const fn many(name: &'static str) -> Self {
        Self { name, alias: "", env: "", kind: Kind::Many }
    }

    pub(crate) const fn or(self, alias: &'static str) -> Self {
        Self { alias, ..self }
    }

    pub(crate) const fn env(self, env: &'static str) -> Self {
        Self { env, ..self }
    }

    fn spelled(&self, word: &str) -> bool {
        word == self.name || (!self.alias.is_empty() && word == self.alias)
    }
}

/// The flags that were given.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    values: BTreeMap<&'static str, Vec<String>>,
}

/// Reads the words of a command. Words that are no flags are ignored, as the real command ignores them.
pub(crate) fn parse(flags: &[Flag], words: &[String]) -> Result<Parsed, Failure> {
    let mut parsed = Parsed::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(body) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).filter(|body| !body.is_empty())
        else {
            continue;
        };
        let (name, inline) = body.split_once('=').map_or((body, None), |(name, value)| (name, Some(value.to_owned())));
        let flag = flags.iter().find(|flag| flag.spelled(name)).ok_or_else(|| unknown(name))?;
        let value = match (flag.kind, inline) {
            (Kind::Switch, None) => "true".to_owned(),
            (_, Some(value)) => value,
            (Kind::One | Kind::Many, None) => words
                .next()
                .cloned()
                .ok_or_else(|| Failure::new(Code::Usage, format!("flag needs an argument: {word}")))?,
        };
        let slot = parsed.values.entry(flag.name).or_default();
        if flag.kind == Kind::One && !slot.is_empty() {
            return Err(Failure::invalid(format!("flag --{} can only be specified once", flag.name)));
        }
        slot.push(value);
    }
    for flag in flags.iter().filter(|flag| !flag.env.is_empty()) {
        if let Ok(value) = std::env::var(flag.env) {
            parsed.values.entry(flag.name).or_insert_with(|| vec![value]);
        }
    }
    Ok(parsed)
}

fn unknown(name: &str) -> Failure {
    Failure::new(Code::Usage, format!("flag provided but not defined: -{name}"))
}

impl Parsed {
    /// The value of a flag; an empty one counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).and_then(|values| values.last()).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// A switch with its default.
    pub(crate) fn on(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, |value| matches!(value, "true" | "1" | "t" | "T" | "TRUE" | "True"))
    }
}

/// Help of a command, as the flag library lays it out.
pub(crate) fn help(command: &str, flags: &[Flag]) -> String {
    let mut text = format!("NAME:\n   aicr {command} (stand-in)\n\nUSAGE:\n   aicr {command} [options]\n\nOPTIONS:\n");
    for flag in flags {
        let alias = if flag.alias.is_empty() { String::new() } else { format!(", -{}", flag.alias) };
        let value = if flag.kind == Kind::Switch { "" } else { " string" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "   --{}{alias}{value}", flag.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: &[Flag] = &[Flag::one("output").or("o"), Flag::many("set"), Flag::switch("fail-on-error")];

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(ToOwned::to_owned).collect()
    }

    #[test]
    fn long_short_inline_and_repeated_flags_are_read() {
        let parsed = parse(FLAGS, &words("-o out.yaml --set a:b=c --set=d:e=f --fail-on-error=false stray")).unwrap();
        assert_eq!(parsed.get("output"), Some("out.yaml"));
        assert_eq!(parsed.all("set"), ["a:b=c", "d:e=f"]);
        assert!(!parsed.on("fail-on-error", true));
    }

    #[test]
    fn an_unknown_flag_is_an_unclassified_error() {
        let failure = parse(FLAGS, &words("--nonsense")).unwrap_err();
        assert_eq!((failure.exit(), failure.to_string().as_str()), (1, "flag provided but not defined: -nonsense"));
    }

    #[test]
    fn a_single_flag_given_twice_is_an_invalid_request() {
        let failure = parse(FLAGS, &words("--output a -o b")).unwrap_err();
        assert_eq!(failure.exit(), 2);
        assert_eq!(failure.to_string(), "[INVALID_REQUEST] flag --output can only be specified once");
    }

    #[test]
    fn a_flag_without_its_value_is_an_unclassified_error() {
        assert_eq!(parse(FLAGS, &words("--output")).unwrap_err().exit(), 1);
    }
}
