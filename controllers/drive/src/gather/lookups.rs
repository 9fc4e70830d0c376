//! Applications by name, beside the watch: those that are named like ours and do not carry our label.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use aicr_crds::application::Application;
use kube::{Api, Client};

use super::asked::asked;
use crate::{error::DriveError, settings::DriveSettings};

/// How long an answer is good: that nothing is there, since our own watch tells of what we make ourselves.
const ABSENT: Duration = Duration::from_mins(1);
/// How long an answer is good: that something is there, which its owner may take away.
const PRESENT: Duration = Duration::from_secs(10);

/// Looks Applications up, and remembers the answers for a while.
pub(super) struct Lookups {
    api: Api<Application>,
    known: BTreeMap<String, (Instant, Option<Application>)>,
}

impl Lookups {
    pub(super) fn new(client: &Client, settings: &DriveSettings) -> Self {
        let api = Api::namespaced(client.clone(), &settings.decide.engine.namespace);
        Self { api, known: BTreeMap::new() }
    }

    /// The Application of this name.
    pub(super) async fn get(&mut self, name: &str) -> Result<Option<Application>, DriveError> {
        if let Some((at, answer)) = self.known.get(name) {
            let good = if answer.is_some() { PRESENT } else { ABSENT };
            if at.elapsed() < good {
                return Ok(answer.clone());
            }
        }
        let answer = asked(format!("get Application {name}"), self.api.get_opt(name)).await?;
        self.known.insert(name.to_owned(), (Instant::now(), answer.clone()));
        Ok(answer)
    }

    /// Forgets every answer.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }
}
