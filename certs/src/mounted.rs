//! The other provider: a Secret of cert-manager's, mounted as a folder and read again on a short tick.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use rustls::{
    Error as TlsError, InconsistentKeys,
    client::verify_server_name,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    server::ParsedCertificate,
    sign::CertifiedKey,
};
use x509_parser::parse_x509_certificate;

use crate::{provider, resolver::Served, schedule::Validity, service::ServiceNames};

const CHAIN_FILE: &str = "tls.crt";
const KEY_FILE: &str = "tls.key";
/// The most of a file that is read, in bytes: as much as a Secret holds.
const MOST: u64 = 1 << 20;

/// A folder with `tls.crt` and `tls.key`, compared by content: Kubernetes exchanges the files by a symbolic link, and a
/// watch of the files themselves would miss it.
pub struct Mounted {
    folder: PathBuf,
    names: ServiceNames,
    last: Option<Content>,
}

/// Why what is mounted cannot be served. Whatever was served before stays.
#[derive(Debug, thiserror::Error)]
pub enum MountedError {
    /// A file is missing or cannot be read.
    #[error("read {file} of the mounted certificate")]
    Read {
        /// The file's name.
        file: &'static str,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A file is larger than any Secret.
    #[error("{file} of the mounted certificate is larger than 1 MiB")]
    TooLarge {
        /// The file's name.
        file: &'static str,
    },
    /// Not PEM, no X.509 certificate, or cut off.
    #[error("tls.crt of the mounted certificate cannot be read")]
    Certificate,
    /// Not PEM, no private key, or cut off.
    #[error("tls.key of the mounted certificate cannot be read")]
    Key,
    /// Certificate and key do not belong together: half of a change, as a rule gone at the next look.
    #[error("tls.key is another certificate's than tls.crt")]
    KeyOfAnother,
    /// rustls does not take the pair.
    #[error("load the mounted certificate")]
    Load(#[source] TlsError),
    /// It does not carry the name that the API server asks for.
    #[error("the mounted certificate is not for {name}")]
    Name {
        /// The name.
        name: String,
    },
    /// Its life has ended.
    #[error("the mounted certificate expired at {at}")]
    Expired {
        /// When.
        at: Timestamp,
    },
}

#[derive(PartialEq, Eq)]
struct Content {
    chain: Vec<u8>,
    key: Vec<u8>,
}

impl Mounted {
    /// A folder to look into; nothing is read yet.
    pub fn new(folder: impl Into<PathBuf>, names: ServiceNames) -> Self {
        Self { folder: folder.into(), names, last: None }
    }

    /// Reads the folder: a pair to serve when its content has changed, nothing when it has not. Blocks on two files.
    ///
    /// Content that was refused is looked at afresh each time, so a half-written pair heals by itself.
    pub fn look(&mut self, now: Timestamp) -> Result<Option<Served>, MountedError> {
        let content = Content { chain: read(&self.folder, CHAIN_FILE)?, key: read(&self.folder, KEY_FILE)? };
        if self.last.as_ref() == Some(&content) {
            return Ok(None);
        }
        let served = load(&content, &self.names, now)?;
        self.last = Some(content);
        Ok(Some(served))
    }
}

fn read(folder: &Path, file: &'static str) -> Result<Vec<u8>, MountedError> {
    let failed = |source| MountedError::Read { file, source };
    let mut content = Vec::new();
    File::open(folder.join(file)).map_err(failed)?.take(MOST + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() as u64 > MOST { Err(MountedError::TooLarge { file }) } else { Ok(content) }
}

fn load(content: &Content, names: &ServiceNames, now: Timestamp) -> Result<Served, MountedError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&content.chain)
        .collect::<Result<_, _>>()
        .map_err(|_| MountedError::Certificate)?;
    let validity = check(chain.first().ok_or(MountedError::Certificate)?, names, now)?;
    let key = PrivateKeyDer::from_pem_slice(&content.key).map_err(|_| MountedError::Key)?;
    let key = provider().key_provider.load_private_key(key).map_err(|_| MountedError::Key)?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Ok(()) => Ok(Served::new(certified, validity)),
        Err(TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch)) => Err(MountedError::KeyOfAnother),
        Err(error) => Err(MountedError::Load(error)),
    }
}

fn check(leaf: &CertificateDer<'_>, names: &ServiceNames, now: Timestamp) -> Result<Validity, MountedError> {
    let (_, certificate) = parse_x509_certificate(leaf).map_err(|_| MountedError::Certificate)?;
    let validity = Validity::of(&certificate);
    if now > validity.not_after {
        return Err(MountedError::Expired { at: validity.not_after });
    }
    let parsed = ParsedCertificate::try_from(leaf).map_err(|_| MountedError::Certificate)?;
    let called = || MountedError::Name { name: names.called().to_owned() };
    let name = ServerName::try_from(names.called()).map_err(|_| called())?;
    verify_server_name(&parsed, &name).map(|()| validity).map_err(|_| called())
}
