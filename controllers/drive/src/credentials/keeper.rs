//! Keeps the token fresh: when the schedule says so, fetch, write it for Argo CD, and tell who was refused meanwhile.

use std::{sync::Arc, time::Duration};

use aicr_decide::{
    resolve::token::{Fetches, TokenSeen, lasts, with_registry_errors},
    rollout::ObjectRef,
};
use jiff::Timestamp;

use super::{Held, Mint, NoToken, Token, TokenSettings};
use crate::{
    error::DriveError,
    metrics::metrics,
    watch::{Shelf, Watches},
    write::{Writer, Written},
};

/// The wall clock is looked at this often: a timer drifts while a machine sleeps.
const TICK: Duration = Duration::from_secs(30);
/// How long one fetch may take.
const FETCH_LIMIT: Duration = Duration::from_mins(1);

/// Fetches tokens for as long as it is polled; in the one replica that leads.
pub(crate) struct Keeper {
    settings: TokenSettings,
    namespace: String,
    watches: Arc<Watches>,
    write: Writer,
    held: Held,
}

impl Keeper {
    /// A keeper of the Secret in this namespace.
    pub(crate) fn new(
        settings: TokenSettings,
        namespace: &str,
        watches: Arc<Watches>,
        write: Writer,
        held: Held,
    ) -> Self {
        Self { settings, namespace: namespace.to_owned(), watches, write, held }
    }

    /// Without end.
    pub(crate) async fn run(self) {
        let mut changes = self.watches.changes.listen();
        let mut fetches = Fetches::default();
        let mut chance = 0.0;
        loop {
            changes.mark_unchanged();
            let now = Timestamp::now();
            let answered = self.watches.repo_creds.as_ref().is_some_and(Shelf::is_answered);
            let due = fetches.next(&self.watches.token(), now, chance);
            if answered && due <= now {
                fetches = self.fetch(fetches, now).await;
                // The fraction of a second is chance enough: no two operators share it.
                chance = f64::from(now.subsec_nanosecond()) / 1e9;
                continue;
            }
            let wait = Duration::try_from(due.duration_since(now)).unwrap_or(TICK).min(TICK);
            tokio::select! {
                told = changes.changed() => if told.is_err() { std::future::pending::<()>().await },
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn fetch(&self, before: Fetches, now: Timestamp) -> Fetches {
        let kept = self.keep(now).await;
        self.watches.changes.tell();
        match kept {
            Ok(token) => {
                tracing::info!(expires_at = %token.expires_at, "a registry token is fetched");
                metrics().token(token.expires_at, now);
                self.tell_refused().await;
                Fetches::succeeded(now)
            }
            Err(NoToken(why)) => {
                let after = before.failed(now);
                tracing::warn!(why, failures = after.failures, "no registry token; it is tried again");
                after
            }
        }
    }

    /// Fetches and stores. A token is held for the mirror and the runs also where Argo CD's Secret cannot be written.
    async fn keep(&self, now: Timestamp) -> Result<Token, NoToken> {
        let fetched = mint(self.settings.mint.as_ref()).await;
        let token = match fetched {
            Ok(token) => token,
            Err(NoToken(why)) => {
                self.held.failed(why.clone());
                return Err(NoToken(why));
            }
        };
        self.held.put(token.clone());
        self.store(&token).await?;
        if lasts(token.expires_at, now) {
            return Ok(token);
        }
        Err(NoToken(format!("the token that was fetched expires at {}", token.expires_at)))
    }

    async fn store(&self, token: &Token) -> Result<(), NoToken> {
        let (name, namespace) = (&self.settings.secret, &self.namespace);
        let there = self.watches.repo_creds.as_ref().and_then(|shelf| shelf.get(name));
        let Some(there) = there else {
            return Err(NoToken(format!(
                "Secret {name} is missing in namespace {namespace}, or may not be read; run helm upgrade"
            )));
        };
        match self.write.store_token(&there.metadata, token).await {
            Ok(Written::Done(())) => Ok(()),
            Ok(Written::Stale) => Err(NoToken(format!("Secret {name} changed meanwhile"))),
            Err(error) => Err(NoToken(format!("Secret {name} cannot be written: {}", code(&error)))),
        }
    }

    /// Argo CD looks again by itself only once something changes or its cache ends.
    async fn tell_refused(&self) {
        let applications = self.watches.applications.all();
        let refused: Vec<ObjectRef> = with_registry_errors(applications.iter().map(AsRef::as_ref));
        for on in refused {
            if let Err(error) = self.write.refresh(&on, false).await {
                tracing::warn!(application = on.name, error = code(&error), "it could not be asked to look again");
            }
        }
    }
}

async fn mint(from: &dyn Mint) -> Result<Token, NoToken> {
    let late = || NoToken(format!("the registry's token service did not answer within {} s", FETCH_LIMIT.as_secs()));
    tokio::time::timeout(FETCH_LIMIT, from.mint()).await.unwrap_or_else(|_| Err(late()))
}

/// What went wrong, without the API server's words: they may quote what was sent.
fn code(error: &DriveError) -> String {
    if let DriveError::Api { source, .. } = error
        && let kube::Error::Api(status) = source.as_ref()
    {
        return format!("{} {}", status.code, status.reason);
    }
    error.to_string()
}

impl Watches {
    /// What Argo CD's Secret says of its token; where the operator fetches none, nothing that is fresh.
    pub(crate) fn token(&self) -> TokenSeen {
        let readable = self.repo_creds.as_ref().filter(|store| !store.is_refused());
        let Some(secret) = readable.and_then(|store| store.all().into_iter().next()) else {
            return TokenSeen::NoSecret;
        };
        let annotations = secret.metadata.annotations.as_ref();
        let expires = annotations.and_then(|all| all.get(aicr_crds::keys::annotation::TOKEN_EXPIRES_AT));
        TokenSeen::read(expires.map(String::as_str))
    }
}

#[cfg(test)]
#[path = "keeper/tests.rs"]
mod tests;
