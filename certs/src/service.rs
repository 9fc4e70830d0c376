//! The names under which the API server calls the webhooks' Service.

/// `service.namespace.svc` and the same with `cluster.local`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceNames {
    called: String,
    full: String,
}

/// A name that is no DNS label: 1 to 63 of a-z, 0-9 and -, with no - at either end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of a Service or namespace")]
pub struct NotALabel(String);

impl ServiceNames {
    /// The names of this Service.
    pub fn new(service: &str, namespace: &str) -> Result<Self, NotALabel> {
        for name in [service, namespace] {
            if !is_label(name) {
                return Err(NotALabel(name.chars().take(80).collect()));
            }
        }
        let called = format!("{service}.{namespace}.svc");
        Ok(Self { full: format!("{called}.cluster.local"), called })
    }

    /// The name the API server asks for, `service.namespace.svc`.
    pub fn called(&self) -> &str {
        &self.called
    }

    /// Every name a leaf carries.
    pub fn all(&self) -> [&str; 2] {
        [&self.called, &self.full]
    }
}

fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_service_has_two_names() {
        let names = ServiceNames::new("aicr-operator", "aicr-system").unwrap();
        assert_eq!(names.all(), ["aicr-operator.aicr-system.svc", "aicr-operator.aicr-system.svc.cluster.local"]);
    }

    #[rstest]
    #[case::empty("")]
    #[case::two_labels("a.b")]
    #[case::capital("A")]
    #[case::wildcard("*")]
    #[case::hyphen_first("-a")]
    #[case::hyphen_last("a-")]
    #[case::too_long(&"a".repeat(64))]
    fn what_is_no_label_is_refused(#[case] name: &str) {
        ServiceNames::new(name, "ns").unwrap_err();
        ServiceNames::new("service", name).unwrap_err();
    }
}
