//! Faults that a test asks for by environment; without those variables nothing here has any effect.

use std::sync::OnceLock;
use std::time::Duration;

use crate::configmap;
use crate::failure::Failure;
use crate::log;
use crate::place::Place;

static COMMAND: OnceLock<&'static str> = OnceLock::new();

/// How output is spoilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoilt {
    /// Half of the document.
    Truncated,
    /// An apiVersion that nobody knows.
    ApiVersion,
    /// The document twice in one stream.
    Twice,
    /// A bundle without its bundle-info.yaml.
    NoBundleInfo,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(format!("AICR_STANDIN_FAULT_{name}")).ok().filter(|value| !value.is_empty())
}

/// Whether the faults are meant for the command that runs.
fn meant() -> bool {
    let running = COMMAND.get().copied().unwrap_or_default();
    variable("COMMAND").is_some_and(|commands| commands.split(',').any(|command| command.trim() == running))
}

/// Another version than the one played, for stamps only.
pub(crate) fn other_version() -> Option<String> {
    variable("VERSION")
}

/// How the running command's output is to be spoilt.
pub(crate) fn output() -> Option<Spoilt> {
    if !meant() {
        return None;
    }
    match variable("OUTPUT")?.as_str() {
        "truncated" => Some(Spoilt::Truncated),
        "apiversion" => Some(Spoilt::ApiVersion),
        "twice" => Some(Spoilt::Twice),
        "no-bundle-info" => Some(Spoilt::NoBundleInfo),
        other => {
            log::plain(&format!("aicr stand-in: unknown AICR_STANDIN_FAULT_OUTPUT {other}"));
            None
        }
    }
}

/// The document as the fault wants it.
pub(crate) fn spoil(text: String) -> String {
    match output() {
        None | Some(Spoilt::NoBundleInfo) => text,
        Some(Spoilt::Truncated) => text.chars().take(text.chars().count() / 2).collect(),
        Some(Spoilt::ApiVersion) => {
            text.replace("aicr.run/v1beta2", "aicr.run/v9").replace("aicr.run/v1", "aicr.run/v9")
        }
        Some(Spoilt::Twice) => format!("{text}---\n{text}"),
    }
}

/// Sleeps and fails as wanted, before the command does anything.
pub(crate) async fn before(command: &'static str) -> Result<(), Failure> {
    COMMAND.get_or_init(|| command);
    if !meant() {
        return Ok(());
    }
    if let Some(seconds) = variable("SLEEP").and_then(|seconds| seconds.parse().ok()) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
    let Some(exit) = variable("EXIT").and_then(|exit| exit.parse().ok()) else {
        return Ok(());
    };
    if used_up().await? {
        return Ok(());
    }
    Err(Failure::wanted(exit, variable("MESSAGE").unwrap_or_else(|| "[INTERNAL] a fault was asked for".into())))
}

/// Whether the fault has happened as often as it should; counts this run. Without a bound it never is.
async fn used_up() -> Result<bool, Failure> {
    let (Some(times), Some(counter)) = (variable("TIMES").and_then(|n| n.parse::<u32>().ok()), variable("COUNTER"))
    else {
        return Ok(false);
    };
    let Place::ConfigMap { namespace, name } = Place::parse(Some(&counter))? else {
        return Err(Failure::invalid("AICR_STANDIN_FAULT_COUNTER is not of the form cm://namespace/name"));
    };
    let client = configmap::client(None).await?;
    let runs = configmap::count(&client, &namespace, &name).await?;
    Ok(runs > times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_variables_nothing_is_spoilt() {
        assert_eq!(output(), None);
        assert_eq!(spoil("a: aicr.run/v1\n".into()), "a: aicr.run/v1\n");
    }
}
