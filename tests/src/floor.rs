//! A floor of tests that share one cluster: libtest's words and flags, and an end at which the cluster is taken down.
//!
//! libtest itself ends the process without dropping what tests share, so the cluster would outlive it.

use std::process::ExitCode;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use libtest_mimic::{Arguments, Trial};

/// A test by name.
pub type Test<C> = (&'static str, fn(&C));

/// What a failed test means for those after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Each stands alone: the others run.
    Others,
    /// Each finds what the one before it left, so the others would wait in vain: they fail at once, naming it.
    Nothing,
}

/// Runs tests one after another on a cluster that is brought up for the first of them.
pub fn run<C: Send + Sync + 'static>(
    up: fn() -> C,
    after: After,
    tests: impl IntoIterator<Item = Test<C>>,
) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let cluster = Arc::new(LazyLock::new(up));
    let unfinished = Arc::new(Mutex::new(None));
    let trial = |(name, test): Test<C>| {
        let (cluster, unfinished) = (Arc::clone(&cluster), Arc::clone(&unfinished));
        Trial::test(name, move || {
            if let (After::Nothing, Some(broken)) = (after, begin(&unfinished, name)) {
                return Err(format!("not run: {broken} failed").into());
            }
            test(&cluster);
            *unfinished.lock().unwrap_or_else(PoisonError::into_inner) = None;
            Ok(())
        })
    };
    let conclusion = libtest_mimic::run(&arguments, tests.into_iter().map(trial).collect());
    // The last owner: what is up goes down here.
    drop(cluster);
    let left = aicr_lab::traces();
    if left.is_empty() {
        return conclusion.exit_code();
    }
    eprintln!("left behind: {}", left.join(", "));
    ExitCode::FAILURE
}

/// The test before that did not come to its end, which keeps its place; or nothing, and this one takes it.
fn begin(unfinished: &Mutex<Option<&'static str>>, name: &'static str) -> Option<&'static str> {
    let mut unfinished = unfinished.lock().unwrap_or_else(PoisonError::into_inner);
    if unfinished.is_none() {
        *unfinished = Some(name);
        return None;
    }
    *unfinished
}

/// Names functions as tests: `tests![module: first, second; other: third]`.
#[macro_export]
macro_rules! tests {
    ($($module:ident: $($test:ident),+ $(,)?);+ $(;)?) => {
        [$($((concat!(stringify!($module), "::", stringify!($test)), $module::$test as fn(&_)),)+)+]
    };
}
