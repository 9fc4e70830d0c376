//! A floor of tests that share one cluster: libtest's words and flags, and an end at which the cluster is taken down.
//!
//! libtest itself ends the process without dropping what tests share, so the cluster would outlive it.

use std::process::ExitCode;
use std::sync::{Arc, LazyLock};

use libtest_mimic::{Arguments, Trial};

/// A test by name.
pub type Test<C> = (&'static str, fn(&C));

/// Runs tests one after another on a cluster that is brought up for the first of them.
pub fn run<C: Send + Sync + 'static>(up: fn() -> C, tests: impl IntoIterator<Item = Test<C>>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let cluster = Arc::new(LazyLock::new(up));
    let trial = |(name, test): Test<C>| {
        let cluster = Arc::clone(&cluster);
        Trial::test(name, move || {
            test(&cluster);
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

/// Names functions as tests: `tests![module: first, second; other: third]`.
#[macro_export]
macro_rules! tests {
    ($($module:ident: $($test:ident),+ $(,)?);+ $(;)?) => {
        [$($((concat!(stringify!($module), "::", stringify!($test)), $module::$test as fn(&_)),)+)+]
    };
}
