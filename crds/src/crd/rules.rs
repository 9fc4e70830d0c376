//! CEL rules (`x-kubernetes-validations`), each a function with the words of its refusal.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;

/// What the shape of a duration is; the same strings that [`crate::duration::parse`] reads.
const DURATION: &str = "^([0-9]{1,5}[hms]){1,4}$";
/// What the shape of a label key is.
const LABEL_KEY: &str = "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])$";

/// A CEL rule under construction.
pub(super) struct Rule(ValidationRule);

impl Rule {
    /// What must hold, and what is said where it does not.
    pub(super) fn new(rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self(ValidationRule { rule: rule.into(), message: Some(message.into()), ..ValidationRule::default() })
    }

    /// The field that the refusal names, below the one that carries the rule: `.approval`.
    pub(super) fn on(mut self, field_path: impl Into<String>) -> Self {
        self.0.field_path = Some(field_path.into());
        self
    }

    /// A CEL expression whose text is said instead of the message.
    pub(super) fn saying(mut self, message_expression: impl Into<String>) -> Self {
        self.0.message_expression = Some(message_expression.into());
        self
    }

    /// The refusal reads `Required value`.
    pub(super) fn missing(mut self) -> Self {
        self.0.reason = Some("FieldValueRequired".to_owned());
        self
    }
}

impl From<Rule> for ValidationRule {
    fn from(rule: Rule) -> Self {
        rule.0
    }
}

/// On a field: it never changes.
pub(super) fn unchanged(message: impl Into<String>) -> Rule {
    Rule::new("self == oldSelf", message)
}

/// On the object: an optional field neither comes nor goes. A rule on the field itself does not run then.
pub(super) fn neither_added_nor_removed(name: &str) -> Rule {
    Rule::new(format!("has(self.{name}) == has(oldSelf.{name})"), format!("{name} is immutable")).on(format!(".{name}"))
}

/// On the object: an optional field may come once and then stays.
pub(super) fn never_removed(name: &str, message: &str) -> Rule {
    Rule::new(format!("!has(oldSelf.{name}) || has(self.{name})"), message).on(format!(".{name}"))
}

/// On the object: items may be added to a list and then stay as they are.
pub(super) fn only_appended(name: &str, message: &str) -> Rule {
    let kept = format!("oldSelf.{name}.all(o, self.{name}.exists(n, n == o))");
    Rule::new(format!("!has(oldSelf.{name}) || (has(self.{name}) && {kept})"), message).on(format!(".{name}"))
}

/// On a text: a duration between two others.
///
/// No `pattern`: a failed one would not stop the conversion, whose errors would be shown as well.
pub(super) fn duration(name: &str, least: &str, most: &str) -> Rule {
    let rule = format!(
        "self.matches('{DURATION}') && duration(self) >= duration('{least}') && duration(self) <= duration('{most}')"
    );
    let message = format!("{name} must be a duration from {least} to {most} in h, m and s, such as 10m or 1h30m");
    Rule::new(rule, message)
}

/// On an object of durations: one is not longer than another. Texts that are no durations have their own rule.
pub(super) fn not_longer(one: &str, other: &str) -> Rule {
    let is_none = |name| format!("!self.{name}.matches('{DURATION}')");
    let rule = format!("{} || {} || duration(self.{one}) <= duration(self.{other})", is_none(one), is_none(other));
    Rule::new(rule, format!("{one} is longer than {other}"))
        .on(format!(".{one}"))
        .saying(format!("'{one} ' + self.{one} + ' is longer than {other} ' + self.{other}"))
}

/// On a map: every key is a label key.
pub(super) fn label_keys(longest: u16) -> Rule {
    Rule::new(
        format!("self.all(key, size(key) <= {longest} && key.matches('{LABEL_KEY}'))"),
        "every key must be a label key: an optional DNS prefix with a slash, and a name of at most 63 characters",
    )
}
