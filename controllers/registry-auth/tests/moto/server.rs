//! One moto on a free port of loopback, from an environment of its own.

use std::{
    env,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Instant,
};

use crate::BOUND;

/// What is installed: every package with its version.
const PINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/parts/moto/requirements.txt");

/// A running moto; it ends with this value.
pub(crate) struct Moto {
    process: Child,
    port: u16,
}

impl Moto {
    /// Starts one, and waits until it listens.
    pub(crate) fn start() -> Self {
        let program = environment().join("bin/moto_server");
        // Whoever is given a port by the system and lets go of it has it for a while.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut process = Command::new(program)
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("moto starts");
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(process.try_wait().unwrap().is_none(), "moto ended by itself");
            assert!(begun.elapsed() < BOUND, "moto does not listen");
            std::thread::yield_now();
        }
        Self { process, port }
    }

    /// Where it listens.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Ends it.
    pub(crate) fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The Python environment with moto; made once, in the folder that `AICR_MOTO_ENV` names or that of the build.
fn environment() -> PathBuf {
    let folder = env::var_os("AICR_MOTO_ENV")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("moto-env"), PathBuf::from);
    if !folder.join("bin/moto_server").is_file() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        let mut pip = Command::new(folder.join("bin/pip"));
        run(pip.args(["install", "--quiet", "--disable-pip-version-check", "--requirement", PINS]));
    }
    folder
}

fn run(command: &mut Command) {
    let status = command.status().expect("the command starts");
    assert!(status.success(), "{command:?}: {status}");
}
