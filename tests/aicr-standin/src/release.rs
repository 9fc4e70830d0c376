//! Which AICR release this process plays.

/// The variable that names the release; set in the image.
pub(crate) const VARIABLE: &str = "AICR_STANDIN_VERSION";

/// The release that is played when nothing is said.
const DEFAULT: &str = "v1.1.2";

/// The release whose data is used, with a leading `v`.
pub(crate) fn played() -> String {
    let value = std::env::var(VARIABLE).ok().filter(|value| !value.is_empty());
    let value = value.unwrap_or_else(|| DEFAULT.to_owned());
    format!("v{}", value.trim_start_matches('v'))
}

/// The version stamped into output, without `v`; a fault may make it another than the one played.
pub(crate) fn stamped() -> String {
    let value = crate::faults::other_version().unwrap_or_else(played);
    value.trim_start_matches('v').to_owned()
}

/// Whether the oldest supported launchers are played: v1.0.0 relabels its namespace and classifies fewer errors.
pub(crate) fn oldest() -> bool {
    played() == "v1.0.0"
}
