//! The entries of the Secret in which the authority is kept, as bytes.

use std::fmt;

/// The entry with the authority's certificate (PEM).
pub const CERTIFICATE: &str = "ca.crt";
/// The entry with the authority's key (PEM, PKCS #8).
pub const KEY: &str = "ca.key";
/// The entry with the certificates that came before, newest first (PEM); trusted through a rotation.
pub const PREVIOUS: &str = "ca-previous.crt";

/// What the Secret holds, or shall hold. An empty entry is an absent one: the chart makes the shell.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Stored {
    pub(crate) certificate: Option<Vec<u8>>,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) previous: Option<Vec<u8>>,
}

impl Stored {
    /// Picks our entries; `entry` looks one up among the Secret's decoded data. Others are not ours to touch.
    pub fn read<'a>(entry: impl Fn(&str) -> Option<&'a [u8]>) -> Self {
        let pick = |name: &str| entry(name).filter(|bytes| !bytes.is_empty()).map(<[u8]>::to_vec);
        Self { certificate: pick(CERTIFICATE), key: pick(KEY), previous: pick(PREVIOUS) }
    }

    /// Our entries as a merge patch of the Secret's data shall set them; `None` is an entry to take away.
    pub fn entries(&self) -> [(&'static str, Option<&[u8]>); 3] {
        [(CERTIFICATE, self.certificate.as_deref()), (KEY, self.key.as_deref()), (PREVIOUS, self.previous.as_deref())]
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names only: one of the values is a private key.
        let present = self.entries().into_iter().filter_map(|(name, value)| value.map(|_| name));
        f.debug_list().entries(present).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_entry_is_absent_and_a_key_is_never_printed() {
        let stored = Stored::read(|name| match name {
            KEY => Some(b"top secret".as_slice()),
            CERTIFICATE => Some(b"".as_slice()),
            _ => None,
        });
        assert_eq!(stored.entries(), [(CERTIFICATE, None), (KEY, Some(b"top secret".as_slice())), (PREVIOUS, None)]);
        assert_eq!(format!("{stored:?}"), r#"["ca.key"]"#);
    }
}
