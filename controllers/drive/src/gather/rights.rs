//! Whether the operator may write Applications: asked of the API server, and asked again after a while.

use std::time::{Duration, Instant};

use kube::Client;

use crate::{error::DriveError, settings::DriveSettings, write};

/// What the operator does to Applications.
const VERBS: [&str; 3] = ["create", "patch", "delete"];
/// How long a yes is good.
const YES: Duration = Duration::from_mins(5);
/// How long a no is good: somebody may be at work on the Role.
const NO: Duration = Duration::from_secs(30);

/// What the API server answered last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MayWrite {
    /// All of it, or nothing was answered yet.
    Yes,
    /// At least one of it is refused.
    No,
}

/// Asks, and remembers.
pub(super) struct Rights {
    client: Client,
    namespace: String,
    asked: Option<Instant>,
    answer: MayWrite,
}

impl Rights {
    pub(super) fn new(client: &Client, settings: &DriveSettings) -> Self {
        let namespace = settings.decide.engine.namespace.clone();
        Self { client: client.clone(), namespace, asked: None, answer: MayWrite::Yes }
    }

    /// The answer, new where the last is too old; where none comes, the last one stands.
    pub(super) async fn look(&mut self) -> MayWrite {
        let good = match self.answer {
            MayWrite::Yes => YES,
            MayWrite::No => NO,
        };
        if self.asked.is_some_and(|at| at.elapsed() < good) {
            return self.answer;
        }
        self.asked = Some(Instant::now());
        match self.ask().await {
            Ok(answer) => self.answer = answer,
            Err(error) => tracing::debug!(error = crate::error::chain(&error), "rights could not be asked for"),
        }
        self.answer
    }

    async fn ask(&self) -> Result<MayWrite, DriveError> {
        for verb in VERBS {
            if !write::may(&self.client, verb, &self.namespace).await? {
                tracing::warn!(verb, namespace = self.namespace, "Applications may not be written");
                return Ok(MayWrite::No);
            }
        }
        Ok(MayWrite::Yes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::played::{Played, settings};

    #[tokio::test]
    async fn one_verb_that_the_role_lacks_is_enough_and_its_return_is_seen() {
        let settings = settings();
        let (played, client, _) = Played::new(&settings);
        let rights = Rights::new(&client, &settings);
        for verb in VERBS {
            played.lacks(Some(verb));
            assert_eq!(rights.ask().await.unwrap(), MayWrite::No, "{verb}");
            assert_eq!(Rights::new(&client, &settings).look().await, MayWrite::No, "{verb}");
        }
        played.lacks(None);
        assert_eq!(rights.ask().await.unwrap(), MayWrite::Yes);
    }
}
