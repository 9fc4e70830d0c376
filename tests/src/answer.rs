//! What the API server answered, and what a test expects of it.

use kube::core::DynamicObject;
use serde_json::Value;

/// The answer to one request.
#[must_use]
#[derive(Debug)]
pub struct Answer {
    request: String,
    result: Result<Value, Refusal>,
}

/// A refusal, as `kubectl` would show it.
#[derive(Debug)]
struct Refusal {
    code: u16,
    message: String,
}

impl Answer {
    /// The answer to a request that is described in a few words.
    pub(crate) fn new(request: impl Into<String>, result: Result<DynamicObject, kube::Error>) -> Self {
        let request = request.into();
        let result = match result {
            Ok(object) => Ok(serde_json::to_value(object).unwrap_or_default()),
            Err(kube::Error::Api(status)) => Err(Refusal { code: status.code, message: status.message.clone() }),
            Err(error) => panic!("{request}: {error}"),
        };
        Self { request, result }
    }

    /// It was accepted; what the server made of the object.
    pub fn accepted(self) -> Value {
        match self.result {
            Ok(object) => object,
            Err(refusal) => panic!("{} is refused with {}: {}", self.request, refusal.code, refusal.message),
        }
    }

    /// It was refused with this code, and the message holds this text; the whole message.
    pub fn rejected(self, code: u16, text: &str) -> String {
        match self.result {
            Ok(object) => panic!("{} is accepted: {}", self.request, beginning(&object)),
            Err(refusal) => {
                assert_eq!(refusal.code, code, "{}: {}", self.request, refusal.message);
                let says = refusal.message.contains(text);
                assert!(says, "{}: the refusal does not say {text:?} but {}", self.request, refusal.message);
                refusal.message
            }
        }
    }

    /// It was refused with this code, and the message is this one and no more.
    pub fn rejected_only_for(self, code: u16, text: &str) {
        let message = self.rejected(code, text);
        let cause = message.split_once(" is invalid: ").map_or(message.as_str(), |(_, cause)| cause);
        assert_eq!(cause, text);
    }
}

/// Enough of an object to know it by; the largest has a megabyte.
fn beginning(object: &Value) -> String {
    object.to_string().chars().take(400).collect()
}
