//! The digest that `aicr bundle --image-refs` leaves in the pod's termination message.

use aicr_crds::digest::Digest;

use crate::error::{ReadError, quoted};

/// Reads the termination message of a bundle run: one line, `sha256:` and 64 hex digits.
///
/// # Errors
/// `Damaged` for anything else, such as an empty message or the end of a log.
pub fn digest(message: &str) -> Result<Digest, ReadError> {
    let line = message.strip_suffix('\n').unwrap_or(message);
    line.parse().map_err(|_| {
        let problem = format!("expected one line with the digest of the pushed bundle, found {}", quoted(message));
        ReadError::damaged("the termination message of aicr bundle", problem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_digest_line_is_read_and_nothing_else() {
        let good = Digest::of(b"bundle");
        assert_eq!(digest(&format!("{good}\n")).unwrap(), good);
        assert_eq!(digest(&good.to_string()).unwrap(), good);
        let two = format!("{good}\n{good}\n");
        for bad in ["", "\n", "sha256:12\n", "[cli] command failed: error=x exitCode=6", &two, &format!("x@{good}\n")] {
            assert!(matches!(digest(bad), Err(ReadError::Damaged { .. })), "{bad}");
        }
    }
}
