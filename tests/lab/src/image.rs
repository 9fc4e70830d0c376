//! Images without a daemon: one deterministic layer, pushed with crane.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::addresses::REGISTRY;
use crate::error::LabError;
use crate::files::FileError;
use crate::lab::Lab;

const BUSYBOX: &str = "/bin/busybox";
/// Debian's certificate authorities, where static programs look for them.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// User and group of every image unless told otherwise: nobody's, as in distroless images.
const USER: &str = "65532:65532";

/// One entry of an image's layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file of the machine, mode 0755.
    Program(PathBuf),
    /// A file with this text, mode 0644.
    Text(String),
    /// A symbolic link to this target.
    Link(String),
    /// An empty folder with this mode.
    Folder(u32),
}

/// What an image holds and how it starts.
#[derive(Debug, Clone)]
pub struct Image {
    name: String,
    entries: BTreeMap<String, Entry>,
    entrypoint: Vec<String>,
    command: Vec<String>,
    env: BTreeMap<String, String>,
    user: String,
}

impl Image {
    /// An image from nothing, `name` being `repository:tag` without the registry.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            entries: BTreeMap::from([("tmp".to_owned(), Entry::Folder(0o1777))]),
            entrypoint: Vec::new(),
            command: Vec::new(),
            env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin:/".to_owned())]),
            user: USER.to_owned(),
        }
    }

    /// The same image under another name, `repository:tag`.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Adds an entry at an absolute path.
    #[must_use]
    pub fn entry(mut self, path: &str, entry: Entry) -> Self {
        self.entries.insert(path.trim_start_matches('/').to_owned(), entry);
        self
    }

    /// Adds a static busybox with links for the applets that pods use.
    #[must_use]
    pub fn with_busybox(mut self) -> Self {
        let applets = [
            "cat", "date", "echo", "env", "false", "grep", "httpd", "id", "ls", "mkdir", "nc", "printf", "rm", "sed",
            "sh", "sleep", "test", "touch", "true", "wget",
        ];
        self.entries.insert("bin/busybox".to_owned(), Entry::Program(BUSYBOX.into()));
        for applet in applets {
            self.entries.insert(format!("bin/{applet}"), Entry::Link("busybox".to_owned()));
        }
        self
    }

    /// Adds the machine's certificate authorities, as distroless base images have them.
    #[must_use]
    pub fn with_authorities(self) -> Self {
        self.entry(AUTHORITIES, Entry::Program(AUTHORITIES.into()))
    }

    /// Sets the entrypoint.
    #[must_use]
    pub fn entrypoint(mut self, words: &[&str]) -> Self {
        self.entrypoint = words.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Sets the command (the entrypoint's arguments).
    #[must_use]
    pub fn command(mut self, words: &[&str]) -> Self {
        self.command = words.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets the user, `uid:gid`.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        user.clone_into(&mut self.user);
        self
    }

    /// Writes the layer: entries by name, no times, no owners, so that equal content is an equal digest.
    fn write_layer(&self, path: &Path) -> io::Result<()> {
        let mut tar = tar::Builder::new(File::create(path)?);
        for (name, entry) in &self.entries {
            let mut header = tar::Header::new_gnu();
            header.set_mtime(0);
            header.set_uid(0);
            header.set_gid(0);
            append(&mut tar, &mut header, name, entry)?;
        }
        tar.finish()
    }

    fn mutations(&self) -> Vec<String> {
        let mut args = vec!["--set-platform=linux/amd64".to_owned(), format!("--user={}", self.user)];
        args.extend(self.env.iter().map(|(name, value)| format!("--env={name}={value}")));
        let words = [("--entrypoint", &self.entrypoint), ("--cmd", &self.command)];
        args.extend(
            words
                .into_iter()
                .filter(|(_, words)| !words.is_empty())
                .map(|(flag, words)| format!("{flag}={}", words.join(","))),
        );
        args
    }
}

fn append(tar: &mut tar::Builder<File>, header: &mut tar::Header, name: &str, entry: &Entry) -> io::Result<()> {
    let (kind, mode) = match entry {
        Entry::Program(_) => (tar::EntryType::Regular, 0o755),
        Entry::Text(_) => (tar::EntryType::Regular, 0o644),
        Entry::Link(_) => (tar::EntryType::Symlink, 0o777),
        Entry::Folder(mode) => (tar::EntryType::Directory, *mode),
    };
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(0);
    match entry {
        Entry::Program(source) => {
            let file = File::open(source)?;
            header.set_size(file.metadata()?.len());
            tar.append_data(header, name, file)
        }
        Entry::Text(text) => {
            header.set_size(text.len() as u64);
            tar.append_data(header, name, text.as_bytes())
        }
        Entry::Link(target) => tar.append_link(header, name, target),
        Entry::Folder(_) => tar.append_data(header, format!("{name}/"), io::empty()),
    }
}

impl Lab {
    /// Makes an image, pushes it to the lab's registry and returns `registry/repository:tag@sha256:…`.
    ///
    /// # Errors
    /// When a file of it cannot be read or crane fails.
    pub fn push_image(&self, image: &Image) -> Result<String, LabError> {
        let layer = tempfile::Builder::new().suffix(".tar").tempfile();
        let layer = layer.map_err(FileError::new("make a temporary file in", &std::env::temp_dir()))?;
        let pack = |source| LabError::Pack { name: image.name.clone(), source };
        image.write_layer(layer.path()).map_err(pack)?;
        let target = format!("{REGISTRY}/{}", image.name);
        let file = layer.path().to_string_lossy().into_owned();
        self.crane(&["append", "--new_layer", &file, "--new_tag", &target])?;
        let mutations = image.mutations();
        let mut args = vec!["mutate", target.as_str(), "--tag", target.as_str()];
        args.extend(mutations.iter().map(String::as_str));
        self.crane(&args)?;
        let digest = self.crane(&["digest", &target])?;
        Ok(format!("{target}@{}", digest.trim()))
    }

    /// Makes an image of one static binary (`/<file name>`), pushes it under `name` (`repository:tag`) and returns
    /// `registry/repository:tag@sha256:…`. The entrypoint is the binary unless one is given.
    ///
    /// # Errors
    /// As [`Lab::push_image`].
    pub fn image_from_binary(&self, binary: &Path, name: &str, entrypoint: &[&str]) -> Result<String, LabError> {
        let file = binary.file_name().unwrap_or_default().to_string_lossy();
        let at = format!("/{file}");
        let entrypoint = if entrypoint.is_empty() { &[at.as_str()][..] } else { entrypoint };
        self.push_image(&Image::new(name).entry(&at, Entry::Program(binary.to_path_buf())).entrypoint(entrypoint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_content_is_the_same_layer_whatever_the_order_and_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        std::fs::write(&program, "binary").unwrap();
        let layer = |image: &Image, file: &str| {
            let path = folder.path().join(file);
            image.write_layer(&path).unwrap();
            std::fs::read(path).unwrap()
        };
        let (a, b) = (Entry::Program(program.clone()), Entry::Link("a".to_owned()));
        let first = layer(&Image::new("x:1").entry("/a", a.clone()).entry("/b", b.clone()), "1");
        std::fs::write(&program, "binary").unwrap();
        let second = layer(&Image::new("x:1").entry("/b", b.clone()).entry("/a", a.clone()), "2");
        assert_eq!(first, second);
        std::fs::write(&program, "Binary").unwrap();
        assert_ne!(first, layer(&Image::new("x:1").entry("/b", b).entry("/a", a), "3"));
    }

    #[test]
    fn a_text_and_a_folder_come_out_with_their_modes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("layer");
        Image::new("x:1").entry("/etc/motd", Entry::Text("hello".to_owned())).write_layer(&path).unwrap();
        let mut archive = tar::Archive::new(File::open(path).unwrap());
        let modes: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.path().unwrap().to_string_lossy().into_owned(), entry.header().mode().unwrap()))
            .collect();
        assert_eq!(modes, [("etc/motd".to_owned(), 0o644), ("tmp/".to_owned(), 0o1777)]);
    }
}
