//! The lab's keys, made with `openssl`: one authority, certificates for parts and users, keys for service accounts.

use std::path::PathBuf;
use std::process::Command;

use crate::addresses::{KUBERNETES_SERVICE, NODE_ADDRESS, NODE_NAME};
use crate::command;
use crate::error::LabError;
use crate::files;
use crate::layout::Layout;

/// Days that a certificate is valid: a lab lives for hours.
const DAYS: &str = "30";
/// A new key on P-256: made at once, where an RSA key takes its time.
const EC: [&str; 4] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];

/// The key pairs of the lab.
#[derive(Debug, Clone)]
pub(crate) struct Pki {
    folder: PathBuf,
}

/// A client certificate and its key.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Pki {
    pub(crate) fn of(layout: &Layout) -> Self {
        Self { folder: layout.path("pki") }
    }

    /// Makes the authority, the API server's and the kubelet's serving certificates, and the service account key.
    pub(crate) fn make(&self) -> Result<(), LabError> {
        files::make_dir(&self.folder)?;
        let (key, certificate) = (self.text("ca.key"), self.text("ca.crt"));
        let usage = "keyUsage=critical,keyCertSign,cRLSign";
        let new = ["req", "-x509", "-nodes", "-days", DAYS, "-subj", "/CN=lab-ca", "-addext", usage];
        openssl(&[&new[..], &EC, &["-keyout", &key, "-out", &certificate]].concat())?;
        let (private, public) = (self.text("service-accounts.key"), self.text("service-accounts.pub"));
        openssl(&["genrsa", "-out", &private, "2048"])?;
        openssl(&["rsa", "-in", &private, "-pubout", "-out", &public])?;
        let names = format!(
            "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,IP:127.0.0.1,\
             IP:{KUBERNETES_SERVICE},IP:{NODE_ADDRESS}"
        );
        self.issue("apiserver", "/CN=kube-apiserver", &names)?;
        self.issue("kubelet-serving", "/CN=kubelet", &format!("DNS:{NODE_NAME},IP:{NODE_ADDRESS}"))?;
        Ok(())
    }

    /// A new certificate for a user and its groups.
    pub(crate) fn client(&self, file: &str, user: &str, groups: &[&str]) -> Result<Identity, LabError> {
        let groups = groups.iter().fold(String::new(), |groups, group| format!("{groups}/O={group}"));
        let subject = format!("{groups}/CN={user}");
        self.issue(file, &subject, &format!("DNS:{file}"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    fn issue(&self, file: &str, subject: &str, names: &str) -> Result<Identity, LabError> {
        let [key, request, extensions, certificate] =
            ["key", "csr", "ext", "crt"].map(|suffix| self.text(&format!("{file}.{suffix}")));
        let usage = "keyUsage=digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\n";
        files::write(extensions.as_ref(), format!("subjectAltName={names}\n{usage}"))?;
        let new = ["req", "-new", "-nodes", "-keyout", &key, "-out", &request, "-subj", subject];
        openssl(&[&new[..], &EC].concat())?;
        let (authority, authority_key) = (self.text("ca.crt"), self.text("ca.key"));
        let signer = ["-CA", &authority, "-CAkey", &authority_key, "-CAcreateserial", "-days", DAYS];
        let sign = ["x509", "-req", "-in", &request, "-out", &certificate, "-extfile", &extensions];
        openssl(&[&sign[..], &signer].concat())?;
        Ok(Identity { certificate: certificate.into(), key: key.into() })
    }
}

fn openssl(args: &[&str]) -> Result<(), LabError> {
    command::output(Command::new("openssl").args(args))?;
    Ok(())
}
