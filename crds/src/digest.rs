//! Digests: SHA-256 over bytes or over canonical JSON (RFC 8785), as a type that cannot be mistaken for a string.

use std::{fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, written `sha256:<64 lower-case hex digits>` as OCI does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Why a text is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a digest: expected sha256: and 64 lower-case hex digits")]
pub struct ParseDigestError(String);

/// Why a value has no canonical form: RFC 8785 knows no NaN, and map keys are strings.
#[derive(Debug, thiserror::Error)]
#[error("write canonical JSON")]
pub struct CanonicalError(#[from] serde_json::Error);

/// The RFC 8785 bytes of a value: sorted keys, no blanks, numbers as doubles.
///
/// Integers beyond 2^53 do not survive and must not stand in a hashed document as numbers.
pub fn canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    Ok(serde_json_canonicalizer::to_vec(value)?)
}

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of the value's canonical JSON.
    pub fn of_canonical<T: Serialize>(value: &T) -> Result<Self, CanonicalError> {
        canonical(value).map(|bytes| Self::of(&bytes))
    }

    /// All 64 hex digits, without the algorithm.
    pub fn hex(&self) -> String {
        self.prefix(64)
    }

    /// The first 16 hex digits, as columns and rollout names show them.
    pub fn short(&self) -> String {
        self.prefix(16)
    }

    /// The first `digits` hex digits (64 at most).
    pub fn prefix(&self, digits: usize) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 64];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0).take(digits.div_ceil(2)) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        // They are ASCII.
        str::from_utf8(&hex[..digits.min(64)]).unwrap_or_default().to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        f.write_str(&self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || ParseDigestError(text.chars().take(80).collect());
        let hex = text.strip_prefix("sha256:").filter(|hex| hex.len() == 64).ok_or_else(refused)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            *byte = match (nibble(pair[0]), nibble(pair[1])) {
                (Some(high), Some(low)) => high << 4 | low,
                (None, _) | (_, None) => return Err(refused()),
            };
        }
        Ok(Self(bytes))
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": 71, "pattern": "^sha256:[0-9a-f]{64}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_input_has_its_published_digest() {
        let known = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), known);
        assert_eq!(known.parse::<Digest>().unwrap(), Digest::of(b""));
        assert_eq!(Digest::of(b"").short(), "e3b0c44298fc1c14");
    }

    #[test]
    fn a_digest_is_read_strictly() {
        let hex = Digest::of(b"").hex();
        for bad in [
            hex.clone(),
            format!("sha256:{}", &hex[1..]),
            format!("sha256:{}", hex.to_uppercase()),
            format!("sha512:{hex}"),
            format!("sha256:{}g", &hex[1..]),
        ] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }

    #[test]
    fn key_order_does_not_matter_and_a_changed_value_does() {
        let one = serde_json::json!({"b": 1, "a": [true, null]});
        let other = serde_json::json!({"a": [true, null], "b": 1});
        assert_eq!(Digest::of_canonical(&one).unwrap(), Digest::of_canonical(&other).unwrap());
        assert_ne!(
            Digest::of_canonical(&one).unwrap(),
            Digest::of_canonical(&serde_json::json!({"b": 2, "a": [true, null]})).unwrap()
        );
    }
}
