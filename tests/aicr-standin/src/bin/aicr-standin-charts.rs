//! Builds the small Helm charts of every data set and writes or pushes them.

use std::process::ExitCode;

fn main() -> ExitCode {
    aicr_standin::charts(&std::env::args().skip(1).collect::<Vec<_>>())
}
