//! Commands that are run to their end, with what they said when they failed.

use std::io::Write as _;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::interrupt;

/// How often a shown command is asked whether it has ended.
const POLL: Duration = Duration::from_millis(50);
/// How long one that is asked to end is waited for: a lab may have to come down.
const PATIENCE: Duration = Duration::from_mins(1);

/// Why a command did not succeed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The program could not be started.
    #[error("start {program}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The pipes of the program broke.
    #[error("talk to {program}")]
    Pipe {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The program ended with a failure.
    #[error("{line}: {status}\n{said}")]
    Failed {
        /// The command line.
        line: String,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote to standard error and, when that was empty, to standard output.
        said: String,
    },
    /// A person asked to stop.
    #[error("interrupted: {line}")]
    Interrupted {
        /// The command line.
        line: String,
    },
}

/// Runs the command without input and returns its standard output.
///
/// # Errors
/// When it cannot be started or ends with a failure; the error holds what it said.
pub fn output(command: &mut Command) -> Result<String, CommandError> {
    output_with_input(command, "")
}

/// Runs the command with a text as its standard input and returns its standard output.
///
/// # Errors
/// As [`output`].
pub fn output_with_input(command: &mut Command, input: &str) -> Result<String, CommandError> {
    let program = program(command);
    let pipe = |source| CommandError::Pipe { program: program.clone(), source };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|source| CommandError::Start { program: program.clone(), source })?;
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        // A thread of its own, so that a large input and a large output cannot block each other.
        scope.spawn(move || {
            if let Some(mut stdin) = stdin {
                // A command may end without reading all of its input.
                drop(stdin.write_all(input.as_bytes()));
            }
        });
        child.wait_with_output().map_err(pipe)
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let said = if output.stderr.is_empty() { text(&output.stdout) } else { text(&output.stderr) };
    Err(CommandError::Failed { line: line(command), status: output.status, said })
}

/// Runs the command with its output shown to the person; ends it when one asks to stop.
///
/// # Errors
/// When it cannot be started, ends with a failure, or was interrupted.
pub fn shown(command: &mut Command) -> Result<(), CommandError> {
    shown_while(command, &mut || {})
}

/// As [`shown`]; `tick` is called about every 50 ms while the command runs.
///
/// # Errors
/// As [`shown`].
pub fn shown_while(command: &mut Command, tick: &mut dyn FnMut()) -> Result<(), CommandError> {
    let program = program(command);
    command.stdin(Stdio::null());
    let mut child = command.spawn().map_err(|source| CommandError::Start { program: program.clone(), source })?;
    let status = loop {
        let ended = child.try_wait().map_err(|source| CommandError::Pipe { program: program.clone(), source })?;
        if let Some(status) = ended {
            break status;
        }
        if interrupt::requested() {
            end(&mut child);
            return Err(CommandError::Interrupted { line: line(command) });
        }
        tick();
        std::thread::sleep(POLL);
    };
    if interrupt::requested() {
        return Err(CommandError::Interrupted { line: line(command) });
    }
    if status.success() {
        return Ok(());
    }
    Err(CommandError::Failed { line: line(command), status, said: String::new() })
}

/// SIGTERM first, so that the command may end its own children; some, like `unshare`, ignore it.
fn end(child: &mut std::process::Child) {
    if let Some(process) = crate::process::Process::of(child.id()) {
        process.signal(rustix::process::Signal::TERM);
    }
    let asked = Instant::now();
    while asked.elapsed() < PATIENCE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(POLL);
    }
    drop(child.kill());
    drop(child.wait());
}

/// The command line as a person would write it (not quoted).
fn line(command: &Command) -> String {
    let mut words = vec![program(command)];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    words.join(" ")
}

fn program(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_tells_its_line_and_what_it_said() {
        let error = output(Command::new("sh").args(["-c", "echo no such luck >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("sh -c") && text.contains("no such luck") && text.contains('3'), "{text}");
    }

    #[test]
    fn input_reaches_the_command_and_output_comes_back() {
        let large = "x".repeat(1 << 20);
        assert_eq!(output_with_input(&mut Command::new("cat"), &large).unwrap(), large);
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = output(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(error.to_string().contains("no-such-program-here"));
    }
}
