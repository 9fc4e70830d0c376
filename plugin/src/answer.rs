//! What the API server's refusals say to a person: the message alone, without the API server's words around it.

use kube::core::{Status, response::StatusCause};

/// Whose words a refusal is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Admission, a rule of the kind or RBAC says no (400 from admission, 403, 422).
    Denied(String),
    /// The object changed since it was read, or the door has not seen something yet (409): trying again may pass.
    Conflict(String),
    /// Anything else: not found, not logged in, overloaded.
    Other(String),
}

/// Sorts a refusal.
pub(crate) fn read(status: &Status) -> Answer {
    let admission = from_admission(&status.message);
    let text = admission.map_or_else(|| message(status), str::to_owned);
    match (status.code, admission) {
        (409, _) => Answer::Conflict(text),
        (403 | 422, _) | (_, Some(_)) => Answer::Denied(text),
        (_, None) => Answer::Other(text),
    }
}

fn message(status: &Status) -> String {
    // A path that the API server does not serve is answered in plain text, without details.
    if status.code == 404 && status.details.is_none() {
        return "the API server does not serve operator.aicr.run/v1alpha1; is the operator installed in this cluster?"
            .into();
    }
    if let Some(rules) = from_rules(status) {
        return rules;
    }
    match status.message.trim() {
        "" => format!("the API server answered {} {}", status.code, status.reason).trim_end().to_owned(),
        text => text.to_owned(),
    }
}

/// What a webhook or an admission policy said.
fn from_admission(text: &str) -> Option<&str> {
    let webhook = text.strip_prefix("admission webhook \"").and_then(|rest| rest.split_once("\" denied the request: "));
    let policy = || text.split_once(": ValidatingAdmissionPolicy '")?.1.split_once(" denied request: ");
    webhook.or_else(policy).map(|(_, said)| said)
}

/// What the CEL rules of a kind said, one a line; none where the refusal has other causes too.
fn from_rules(status: &Status) -> Option<String> {
    if status.code != 422 {
        return None;
    }
    // Follows every other cause, and is of no use to a person.
    let counts = |cause: &&StatusCause| !cause.message.contains("some validation rules were not checked");
    let causes = status.details.as_ref()?.causes.iter().filter(counts);
    let said: Vec<_> = causes.map(|cause| rule(&cause.message)).collect::<Option<_>>()?;
    (!said.is_empty()).then(|| said.join("\n"))
}

/// A rule's message, which follows the value's type where another refusal has the value.
fn rule(text: &str) -> Option<&str> {
    let (kind, said) = text.strip_prefix("Invalid value: \"")?.split_once("\": ")?;
    let is_type = ["object", "array", "string", "integer", "number", "boolean"].contains(&kind);
    (is_type && !said.contains(" in body ")).then_some(said)
}

#[cfg(test)]
mod tests {
    use kube::core::response::StatusDetails;
    use rstest::rstest;

    use super::*;

    fn status(code: u16, message: &str) -> Status {
        *Box::new(Status::failure(message, "Forbidden").with_code(code))
    }

    fn invalid(causes: &[&str]) -> Status {
        let cause = |text: &&str| StatusCause {
            reason: "FieldValueInvalid".into(),
            message: (*text).into(),
            field: "spec".into(),
        };
        let details = StatusDetails {
            name: "r".into(),
            group: "operator.aicr.run".into(),
            kind: "RuntimeRollout".into(),
            uid: String::new(),
            causes: causes.iter().map(cause).collect(),
            retry_after_seconds: 0,
        };
        Status { details: Some(details), ..status(422, "RuntimeRollout \"r\" is invalid: spec: Invalid value") }
    }

    #[rstest]
    #[case::webhook(
        403,
        "admission webhook \"rollouts.operator.aicr.run\" denied the request: rollout r: no [Approvers]\nask one",
        "rollout r: no [Approvers]\nask one"
    )]
    #[case::without_code(400, "admission webhook \"w\" denied the request: no", "no")]
    #[case::quoting(
        403,
        "admission webhook \"w\" denied the request: say \" denied the request: twice",
        "say \" denied the request: twice"
    )]
    #[case::policy(
        422,
        "runtimerollouts.operator.aicr.run \"r\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not yours",
        "not yours"
    )]
    #[case::rbac(
        403,
        "runtimerollouts.operator.aicr.run \"r\" is forbidden: User \"carol\" cannot patch resource",
        "runtimerollouts.operator.aicr.run \"r\" is forbidden: User \"carol\" cannot patch resource"
    )]
    fn a_denial_is_its_message_alone(#[case] code: u16, #[case] message: &str, #[case] says: &str) {
        assert_eq!(read(&status(code, message)), Answer::Denied(says.into()));
    }

    #[test]
    fn the_door_that_has_not_seen_it_yet_is_a_conflict() {
        let text = "admission webhook \"w\" denied the request: rollout r: try again [Stamp]";
        assert_eq!(read(&status(409, text)), Answer::Conflict("rollout r: try again [Stamp]".into()));
        assert_eq!(read(&status(409, "modified")), Answer::Conflict("modified".into()));
    }

    #[test]
    fn a_rule_of_the_kind_speaks_for_itself() {
        let unchecked =
            "Invalid value: \"null\": some validation rules were not checked because the object was invalid";
        let one = invalid(&["Invalid value: \"object\": spec is immutable", unchecked]);
        assert_eq!(read(&one), Answer::Denied("spec is immutable".into()));
        let two = invalid(&["Invalid value: \"object\": a", "Invalid value: \"string\": b"]);
        assert_eq!(read(&two), Answer::Denied("a\nb".into()));
    }

    #[rstest]
    #[case::schema(&["Too long: may not be more than 1024 bytes"])]
    #[case::of_the_value(&["Invalid value: \"2h\": spec.x in body should match '^a$'"])]
    #[case::typed(&["Invalid value: \"integer\": spec.x in body must be of type string: \"integer\""])]
    #[case::both(&["Invalid value: \"object\": a", "Required value"])]
    #[case::none(&[])]
    fn what_is_no_rule_keeps_the_words_of_the_api_server(#[case] causes: &[&str]) {
        let text = "RuntimeRollout \"r\" is invalid: spec: Invalid value";
        assert_eq!(read(&invalid(causes)), Answer::Denied(text.into()));
    }

    #[test]
    fn what_is_no_denial_is_told_apart() {
        assert_eq!(read(&status(500, "")), Answer::Other("the API server answered 500 Forbidden".into()));
        let Answer::Other(text) = read(&status(404, "404 page not found\n")) else { panic!("a denial") };
        assert!(text.contains("is the operator installed"), "{text}");
        let absent = Status { code: 404, message: "\"r\" not found".into(), ..invalid(&[]) };
        assert_eq!(read(&absent), Answer::Other("\"r\" not found".into()));
    }
}
