//! This test binary once more, with another environment: it mints, and tells what it got line by line.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use aicr_drive::Mint as _;
use aicr_registry_auth::Ecr;
use jiff::Timestamp;

/// Variable that names what the child does.
const ROLE: &str = "AICR_MOTO_CHILD";
/// What a line of ours begins with.
const MARK: &str = "minted|";

/// What one mint came to.
#[derive(Debug)]
pub(crate) enum Line {
    Token { user: String, password: String, expires: Timestamp },
    Failed(String),
}

/// A child to be.
pub(crate) struct Child(Command);

impl Child {
    /// One that does this, and knows nothing of AWS.
    pub(crate) fn new(role: &str) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "--nocapture", "child::as_a_child"]).env(ROLE, role);
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AWS_")) {
            command.env_remove(name);
        }
        // Nothing of this machine counts: neither its files nor an instance's metadata.
        command.env("HOME", env!("CARGO_TARGET_TMPDIR")).env("AWS_EC2_METADATA_DISABLED", "true");
        command.env("AWS_REGION", "us-east-1");
        Self(command)
    }

    /// The same with these variables.
    pub(crate) fn with<const N: usize>(mut self, variables: [(&str, String); N]) -> Self {
        self.0.envs(variables);
        self
    }

    /// What it told.
    pub(crate) fn run(mut self) -> Vec<Line> {
        let output = self.0.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
        told.lines().filter_map(|line| line.split_once(MARK)).map(|(_, line)| read(line)).collect()
    }
}

fn read(line: &str) -> Line {
    match line.split('|').collect::<Vec<_>>().as_slice() {
        ["token", user, password, expires] => Line::Token {
            user: (*user).to_owned(),
            password: (*password).to_owned(),
            expires: expires.parse().unwrap(),
        },
        ["failed", why @ ..] => Line::Failed(why.join("|")),
        _ => panic!("{line}"),
    }
}

/// A file for an identity, with the first one in it.
pub(crate) fn identity_file(name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    fs::write(&file, "first").unwrap();
    file
}

#[test]
#[ignore = "a part of the other tests"]
#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn as_a_child() {
    let Ok(role) = env::var(ROLE) else { return };
    let mints = if role == "rotate" { 2 } else { 1 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    // One value for both, as in the operator: nothing is made anew but by the mint itself.
    let ecr = Ecr::of("registry.example.com/aicr");
    for mint in 0..mints {
        if mint == 1 {
            fs::write(env::var("AICR_IDENTITY_FILE").unwrap(), "second").unwrap();
        }
        match runtime.block_on(ecr.mint()) {
            Ok(token) => println!("{MARK}token|{}|{}|{}", token.user, token.password(), token.expires_at),
            Err(error) => println!("{MARK}failed|{error}"),
        }
    }
}
