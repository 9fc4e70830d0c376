//! The Jobs that AICR's snapshot launcher makes: how they are told from those that a person's own run made.

use super::{jobs::JobPhase, jobs::JobSeen, verdict::Stage};

/// What our launchers' names begin with.
const LAUNCHER: &str = "aicr-snapshot-";
/// What the names of their agents begin with. AICR's own default is `aicr`, so a person's run never looks like ours.
const AGENT: &str = "agent-";
/// Length of AICR's run ID, `YYYYMMDD-HHMMSS-<16 hex>`.
const RUN_ID: usize = 32;

/// `--job-name` of a launcher: AICR adds its run ID, and a Job's name ends at 63 characters.
pub(super) fn prefix(launcher: &str) -> Option<String> {
    launcher.strip_prefix(LAUNCHER).map(|rest| format!("{AGENT}{rest}"))
}

/// The launcher of an agent's Job, by name; `None` for what is not ours.
pub fn launcher(agent: &str) -> Option<String> {
    let rest = agent.strip_prefix(AGENT)?;
    let (own, run_id) = rest.split_at_checked(rest.len().checked_sub(RUN_ID)?)?;
    let own = own.strip_suffix('-')?;
    let (input, attempt) = own.split_once('-')?;
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let hex = |text: &str| text.bytes().all(is_hex);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_run_id = run_id.bytes().enumerate().all(|(place, b)| match place {
        8 | 15 => b == b'-',
        0..15 => b.is_ascii_digit(),
        _ => is_hex(b),
    });
    (input.len() == 12 && hex(input) && digits(attempt) && is_run_id).then(|| format!("{LAUNCHER}{own}"))
}

/// Agents whose launcher has ended or is gone: it was killed before it could take them away.
pub fn left_behind(agents: &[String], jobs: &[JobSeen]) -> Vec<String> {
    let is_alive = |name: &str| {
        jobs.iter().any(|job| {
            job.stage == Stage::Snapshot
                && job.name == name
                && match job.phase {
                    JobPhase::Suspended | JobPhase::Active(_) => true,
                    JobPhase::Succeeded { .. } | JobPhase::Failed { .. } => false,
                }
        })
    };
    let left = |agent: &&String| launcher(agent).is_some_and(|launcher| !is_alive(&launcher));
    agents.iter().filter(left).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAUNCHED: &str = "aicr-snapshot-0123456789ab-2";
    const OURS: &str = "agent-0123456789ab-2-20261129-195132-0393318d739f10f3";

    #[test]
    fn an_agent_is_named_after_its_launcher_within_the_bound_of_a_name() {
        let prefix = prefix(LAUNCHED).unwrap();
        assert_eq!(OURS, format!("{prefix}-20261129-195132-0393318d739f10f3"));
        assert!(OURS.len() <= 63);
        assert_eq!(launcher(OURS).as_deref(), Some(LAUNCHED));
    }

    /// B79.
    #[test]
    fn what_a_person_runs_in_the_same_namespace_is_never_ours() {
        for foreign in [
            "aicr-20261129-195132-0393318d739f10f3",
            "agent-20261129-195132-0393318d739f10f3",
            "agent-0123456789ab-20261129-195132-0393318d739f10f3",
            "agent-mine-2-20261129-195132-0393318d739f10f3",
            "agent-0123456789ab-2",
            "agent-0123456789ab-2-20261129-195132-0393318d739f10fX",
            // 32 bytes before the end there is no character.
            "agent-0123456789ab-2-20261129-195132-\u{e9}393318d739f10f",
            "aicr",
            "agent-",
            "",
        ] {
            assert_eq!(launcher(foreign), None, "{foreign}");
            assert_eq!(left_behind(&[foreign.to_owned()], &[]), [""; 0], "{foreign}");
        }
    }

    #[test]
    fn an_agent_is_left_behind_once_its_launcher_has_ended_or_is_gone() {
        let job = |phase| JobSeen {
            name: LAUNCHED.into(),
            stage: Stage::Snapshot,
            input: "0123456789abcdef".into(),
            attempt: 2,
            run: "r".into(),
            phase,
        };
        let agents = [OURS.to_owned()];
        assert_eq!(left_behind(&agents, &[job(JobPhase::Active(None))]), [""; 0]);
        assert_eq!(left_behind(&agents, &[job(JobPhase::Suspended)]), [""; 0]);
        assert_eq!(left_behind(&agents, &[]), agents);
        let at = jiff::Timestamp::UNIX_EPOCH;
        let ended = JobPhase::Succeeded { message: String::new(), output: None, refused: None, at };
        assert_eq!(left_behind(&agents, &[job(ended)]), agents);
    }
}
