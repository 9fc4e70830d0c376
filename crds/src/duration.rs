//! Kubernetes duration strings (`10m`, `1h39m60s`), as the CRDs take them.

use jiff::SignedDuration;

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration: expected numbers with h, m or s, such as 10m or 1h30m")]
pub struct ParseDurationError(String);

/// Reads one to four numbers of up to five digits, each with its unit `h`, `m` or `s`; the sum of all.
///
/// The same strings that the CRDs' CEL rule accepts (`^([0-9]{1,5}[hms]){1,4}$`).
pub fn parse(text: &str) -> Result<SignedDuration, ParseDurationError> {
    let refused = || ParseDurationError(text.chars().take(40).collect());
    let (mut total, mut number, mut parts) = (0_i64, String::new(), 0);
    for character in text.chars() {
        if character.is_ascii_digit() {
            number.push(character);
            continue;
        }
        let seconds = match character {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return Err(refused()),
        };
        if !(1..=5).contains(&number.len()) {
            return Err(refused());
        }
        total += number.parse::<i64>().map_err(|_| refused())? * seconds;
        number.clear();
        parts += 1;
    }
    if number.is_empty() && (1..=4).contains(&parts) { Ok(SignedDuration::from_secs(total)) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_the_sum_of_their_parts() {
        for (text, seconds) in [("0s", 0), ("10m", 600), ("1h39m60s", 6000), ("168h", 604_800), ("7200m", 432_000)] {
            assert_eq!(parse(text), Ok(SignedDuration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn what_cel_refuses_is_refused_here() {
        for text in ["", "10", "m", "1d", "10x", "-5m", "1.5h", "123456s", "1s1s1s1s1s", "10m ", "h1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
