//! Reconciles inputs to a plan: gather, decide, carry out; and says how far the inputs have come.

mod entries;
mod said;
mod store;

use aicr_crds::{plan::Plan, reason::Reason};
use aicr_decide::{
    resolve::{self, JobPlan, MirrorPlan, MirrorSeen, Output, Seen, Verdict},
    seen::World,
};
use aicr_mirror::RegistryConfig;
use jiff::Timestamp;

use crate::{
    controller::{Hands, Look},
    error::{DriveError, chain},
    gather::Access,
    mirror::{Mirror, Request},
    settings::DriveSettings,
};

/// Resolves; holds what the last mirror run came to.
pub(crate) struct Resolver {
    mirror: Mirror,
    seen: MirrorSeen,
    /// What of it never changes.
    registry: RegistryConfig,
}

impl Resolver {
    /// A resolver that mirrors with this.
    pub(crate) fn new(mirror: Mirror, settings: &DriveSettings) -> Self {
        let registry = RegistryConfig {
            repository: settings.install.repository.clone(),
            plain_http: settings.install.plain_http.clone(),
            ca_bundle: settings.registry_ca_bundle.clone().into_bytes(),
            sources: settings.chart_sources.clone(),
            ..RegistryConfig::default()
        };
        Self { mirror, seen: MirrorSeen::None, registry }
    }

    /// One reconcile.
    #[tracing::instrument(
        name = "reconcile",
        skip_all,
        fields(
            controller = "resolver",
            runtime = world.uid(),
            plan = world.resolution.candidate.map(tracing::field::display),
        )
    )]
    pub(crate) async fn step(
        &mut self,
        hands: &mut Hands,
        world: &mut World,
        now: Timestamp,
    ) -> Result<Look, DriveError> {
        let looked = {
            let world = &*world;
            let mut seen = hands.gather.resolution(world, self.seen.clone());
            let mut access = Access::Ready(None);
            let mut verdict = resolve::next(&seen, now);
            if let Verdict::DeleteJobs(names) = &verdict {
                delete_jobs(hands, names).await?;
                seen.jobs.retain(|job| !names.contains(&job.name));
                verdict = resolve::next(&seen, now);
            }
            if needs_registry(&verdict) {
                access = hands.gather.access(now).await?;
                seen.credentials = access.credentials();
                verdict = resolve::next(&seen, now);
            }
            let resolution = said::resolution(&entries::all(hands, &seen), &world.plans, &seen, &verdict);
            tracing::debug!(state = ?resolution.state, "resolved so far");
            let at = Pass { hands, world, seen: &seen, now };
            (resolution, self.carry_out(at, verdict, access).await)
        };
        world.resolution = looked.0;
        looked.1
    }

    async fn carry_out(&mut self, pass: Pass<'_>, verdict: Verdict, access: Access) -> Result<Look, DriveError> {
        match verdict {
            Verdict::Run(plan) => run(pass.hands, &plan).await,
            Verdict::Record(record) => store::remember(&pass, *record).await,
            Verdict::StoreSnapshot { job, record } => store::snapshot(pass, &job, &record).await,
            Verdict::Mirror(plan) => self.mirror(pass, *plan, access).await,
            Verdict::DeleteJobs(_) => Ok(Look::Soon),
            Verdict::Resolved(digest) => {
                self.seen = MirrorSeen::None;
                store::make_newest(&pass, digest).await?;
                tracing::debug!(plan = %digest, "the inputs have a plan");
                Ok(Look::OnEvent)
            }
            Verdict::Wait(_, at) => Ok(at.map_or(Look::OnEvent, Look::At)),
            Verdict::Stall(reason, message) => {
                tracing::debug!(%reason, why = message, "resolution stalls");
                // What stalls for the registry's sake goes by itself and tells nobody.
                Ok(match access {
                    Access::Unavailable(_, again) => Look::At(again),
                    Access::Ready(_) | Access::Pending => Look::OnEvent,
                })
            }
        }
    }

    async fn mirror(&mut self, pass: Pass<'_>, plan: MirrorPlan, access: Access) -> Result<Look, DriveError> {
        let Some(outcome) = self.mirror.take(plan.inputs) else {
            if let Access::Ready(auth) = access {
                self.mirror.start(request(&pass, plan, RegistryConfig { auth, ..self.registry.clone() }));
            }
            return Ok(Look::OnEvent);
        };
        let failed = |reason, message| self.seen.failed(plan.inputs, reason, message, pass.now);
        self.seen = match outcome {
            Ok(stored) => match stored.to_config_map(pass.hands.namespace()) {
                Ok(map) => {
                    store::plan(&pass, &map, stored.plan.digest()).await?;
                    store::record(&pass, &plan, stored.plan.digest()).await?;
                    MirrorSeen::None
                }
                Err(error) => failed(Some(Reason::ContentTooLarge), chain(&error)),
            },
            Err(failure) => failed(failure.reason, failure.message),
        };
        Ok(Look::Soon)
    }
}

/// What one reconcile works with.
struct Pass<'a> {
    hands: &'a mut Hands,
    world: &'a World,
    seen: &'a Seen<'a>,
    now: Timestamp,
}

fn needs_registry(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Run(plan) => plan.output == Output::Registry,
        Verdict::Mirror(_) => true,
        Verdict::StoreSnapshot { .. }
        | Verdict::Record(_)
        | Verdict::DeleteJobs(_)
        | Verdict::Resolved(_)
        | Verdict::Wait(..)
        | Verdict::Stall(..) => false,
    }
}

fn request(pass: &Pass<'_>, plan: MirrorPlan, registry: RegistryConfig) -> Request {
    let world = pass.world;
    let active = world.active().and_then(|digest| world.plans.get(&digest));
    Request {
        plan,
        active: active.map(|(_, stored)| Plan::clone(&stored.plan)),
        runtime_uid: world.uid().to_owned(),
        aicr: world.install.aicr.clone(),
        namespaces: pass.hands.gather.namespaces(),
        registry,
        at: pass.now,
    }
}

/// Makes one AICR Job; also what assessments use.
pub(crate) async fn run(hands: &mut Hands, plan: &JobPlan) -> Result<Look, DriveError> {
    tracing::info!(run = plan.name, stage = %plan.stage, "an AICR Job is made");
    Ok(Look::after(&hands.run_job(plan).await?))
}

async fn delete_jobs(hands: &mut Hands, names: &[String]) -> Result<(), DriveError> {
    for name in names {
        hands.delete_job(name).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
