//! The binary `aicr`: the stand-in for AICR's command.

use std::process::ExitCode;

fn main() -> ExitCode {
    aicr_standin::aicr(std::env::args().skip(1).collect())
}
