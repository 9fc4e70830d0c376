//! People at their keyboards: kubectl and the plugin under a name and groups of their own, and what they are told.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use aicr_lab::Place;
use serde_json::Value;

use crate::Stage;

/// What a person's command came to.
#[derive(Debug)]
pub struct Said {
    /// Exit code; -1 where a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl Said {
    /// It passed; what it printed.
    #[track_caller]
    pub fn passed(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// It was refused, and standard error holds this text.
    #[track_caller]
    pub fn refused(self, text: &str) -> String {
        assert_ne!(self.code, 0, "{self:?}");
        assert!(self.err.contains(text), "the refusal does not say {text:?}: {self:?}");
        self.err
    }

    /// It was refused by one of our webhooks.
    #[track_caller]
    pub fn denied(self, webhook: &str, text: &str) -> String {
        let by = format!("admission webhook \"{webhook}.operator.aicr.run\" denied the request: ");
        let words = self.refused(text);
        assert!(words.contains(&by), "not by {webhook}: {words}");
        words
    }
}

/// Somebody who may log in.
pub struct Person<'a> {
    stage: &'a Stage,
    kubeconfig: PathBuf,
    acts_as: Vec<&'static str>,
}

impl Stage {
    /// A user by client certificate.
    pub fn person(&self, name: &str, groups: &[&str]) -> Person<'_> {
        let kubeconfig = self.lab.user_kubeconfig(name, groups).unwrap_or_else(|error| panic!("{error:?}"));
        Person { stage: self, kubeconfig, acts_as: Vec::new() }
    }

    /// The administrator of the cluster, whom no RBAC holds.
    pub fn administrator(&self) -> Person<'_> {
        Person { stage: self, kubeconfig: self.lab.layout().admin_kubeconfig(), acts_as: Vec::new() }
    }

    /// The administrator, acting as an account.
    pub fn acting_as(&self, account: &'static str) -> Person<'_> {
        Person { acts_as: vec!["--as", account], ..self.administrator() }
    }

    /// The administrator, acting as a user of a group.
    pub fn acting_as_one_of(&self, user: &'static str, group: &'static str) -> Person<'_> {
        Person { acts_as: vec!["--as", user, "--as-group", group], ..self.administrator() }
    }
}

impl Person<'_> {
    /// kubectl.
    pub fn kubectl(&self, args: &[&str]) -> Said {
        self.ask(args, "")
    }

    fn ask(&self, args: &[&str], input: &str) -> Said {
        let mut kubectl = self.stage.lab.command(Place::Outside, "kubectl");
        kubectl.arg("--kubeconfig").arg(&self.kubeconfig);
        run(kubectl.args(&self.acts_as).args(args), input)
    }

    /// A merge patch.
    pub fn patch(&self, what: &[&str], patch: &Value) -> Said {
        let patch = patch.to_string();
        let args: Vec<&str> =
            ["patch"].into_iter().chain(what.iter().copied()).chain(["--type", "merge", "--patch", &patch]).collect();
        self.kubectl(&args)
    }

    /// `kubectl create` or `apply`, of an object.
    pub fn send(&self, verb: &[&str], object: &Value) -> Said {
        let args: Vec<&str> = verb.iter().copied().chain(["--filename", "-"]).collect();
        self.ask(&args, &object.to_string())
    }

    /// The plugin.
    pub fn aicr(&self, args: &[&str]) -> Said {
        let program = self.stage.product.binary("kubectl-aicr").unwrap_or_else(|error| panic!("{error:?}"));
        run(Command::new(program).args(args).env("KUBECONFIG", &self.kubeconfig), "")
    }
}

/// The input fits the pipe's buffer, or is read.
fn run(command: &mut Command, input: &str) -> Said {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = command.spawn().and_then(|mut child| {
        child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes())).transpose()?;
        child.wait_with_output()
    });
    ran.unwrap_or_else(|error| panic!("{command:?}: {error}")).into()
}

/// What people were told, beside a golden file.
pub struct Transcript {
    name: &'static str,
    text: RefCell<String>,
}

impl Transcript {
    /// An empty one, of this golden file.
    pub fn new(name: &'static str) -> Self {
        Self { name, text: RefCell::default() }
    }

    /// Notes what somebody did and was told.
    pub fn note(&self, did: &str, told: &str) {
        let mut text = self.text.borrow_mut();
        let _ = writeln!(text, "# {did}");
        let mut lines: Vec<&str> = told.lines().filter(|line| !line.trim().is_empty()).collect();
        // The API server names several violations in any order.
        lines.chunk_by_mut(|one, next| is_item(one) && is_item(next)).for_each(<[&str]>::sort_unstable);
        for line in lines {
            let _ = writeln!(text, "  {line}");
        }
    }

    /// The same for a command that shows a page first: its last line.
    pub fn note_end(&self, did: &str, told: &str) {
        self.note(did, told.trim_end().lines().last().unwrap_or_default());
    }

    /// Compares with the golden file; `UPDATE_GOLDEN=1` writes it.
    #[track_caller]
    pub fn check(self) {
        let path = aicr_lab::workspace().join(format!("tests/tests/whole/goldens/{}.txt", self.name));
        let text = self.text.into_inner();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            return std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(golden == text, "{} differs (UPDATE_GOLDEN=1 writes it):\n{text}", path.display());
    }
}

/// Whether a line is one of kubectl's list of violations.
fn is_item(line: &str) -> bool {
    line.starts_with("* ")
}
