//! How far two versions are apart, in the words of the report.

use semver::Version;

/// A pinned version, with or without `v`; none when it is no semantic version.
pub(super) fn parse(text: &str) -> Option<Version> {
    Version::parse(text.trim_start_matches('v')).ok()
}

/// The distance: `3 patches`, `1 minor`, `2 majors`.
pub(super) fn words(from: &Version, to: &Version) -> String {
    let steps = [
        (from.major.abs_diff(to.major), "major", "majors"),
        (from.minor.abs_diff(to.minor), "minor", "minors"),
        (from.patch.abs_diff(to.patch), "patch", "patches"),
    ];
    let (count, one, many) = steps.into_iter().find(|(count, ..)| *count > 0).unwrap_or((0, "patch", "patches"));
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Whether compatibility may break: a major, a minor while major is 0, or another prerelease.
pub(super) fn breaking(from: &Version, to: &Version) -> bool {
    from.major != to.major || (from.major == 0 && from.minor != to.minor) || from.pre != to.pre
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_and_breaks_are_told_by_the_first_number_that_differs() {
        let table = [
            ("v26.7.0", "v26.7.1", "1 patch", false),
            ("1.2.0", "1.2.3", "3 patches", false),
            ("v0.19.0", "v0.20.1", "1 minor", true),
            ("1.22.0", "1.25.0", "3 minors", false),
            ("1.0.0", "3.1.0", "2 majors", true),
            ("1.0.0-rc1", "1.0.0", "0 patches", true),
        ];
        for (from, to, text, breaks) in table {
            let (from, to) = (parse(from).unwrap(), parse(to).unwrap());
            assert_eq!((words(&from, &to).as_str(), breaking(&from, &to)), (text, breaks), "{from} {to}");
        }
        assert_eq!(parse("main"), None);
    }
}
