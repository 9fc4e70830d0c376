//! Whole rollouts, end to end.

use std::time::Duration;

use aicr_crds::rollout::Operation;
use aicr_tests::engine::plans::{self, Which};
use aicr_tests::engine::story::End;
use aicr_tests::engine::wire::{Crash, Wire};
use aicr_tests::engine::{BOUND, Engine, OPERATOR};

/// What a rollout of six steps may take against an engine that answers at once; it takes about one.
const QUICK: Duration = Duration::from_secs(30);

pub(crate) fn six_releases_are_installed_in_order_each_written_once(engine: &Engine) {
    engine.clear();
    let plan = Which::A.plan();
    engine.runtime(&[plan.clone(), Which::B.plan()]);
    let before = engine.before();
    let operator = engine.operator(Wire::new(Crash::Never));
    assert_eq!(engine.run(&operator, &plan, QUICK), End::Settled);
    let order: Vec<String> = engine.player.take().into_iter().map(|played| played.name).collect();
    let wanted: Vec<String> = plan.releases().map(|release| release.content.id.clone()).collect();
    assert_eq!(order, wanted, "Argo CD's writes, one each, in the plan's order");
    assert_eq!(engine.complaints(&before, plan.digest()), Vec::<String>::new());
}

pub(crate) fn an_upgrade_a_gate_an_install_and_a_removal_are_one_rollout(engine: &Engine) {
    engine.clear();
    let (from, to) = (Which::A.plan(), Which::B.plan());
    engine.runtime(&[from.clone(), to.clone()]);
    let operator = engine.operator(Wire::new(Crash::Never));
    assert_eq!(engine.run(&operator, &from, BOUND), End::Settled);
    let before = engine.before();
    engine.pin(to.digest());
    assert_eq!(engine.run(&operator, &to, QUICK), End::Settled);
    assert_eq!(engine.complaints(&before, to.digest()), Vec::<String>::new());
    let newest = engine.sight.rollouts().last().cloned().unwrap();
    let steps: Vec<(Operation, &str)> =
        newest.spec.steps.iter().map(|step| (step.operation, step.release.as_str())).collect();
    let wanted = [
        (Operation::Upgrade, "network-operator"),
        (Operation::Verify, "network-operator-readiness"),
        (Operation::Install, "nodewright"),
        (Operation::Remove, "kai-scheduler"),
    ];
    assert_eq!(steps, wanted);
}

/// That a release is ready and that the next one begins is one status; each step has one more, of what it waits for.
pub(crate) fn a_step_takes_two_statuses_and_two_records(engine: &Engine) {
    const STEPS: usize = 18;
    /// What a rollout of any size takes to begin and to end.
    const AROUND: usize = 4;
    engine.clear();
    let plan = plans::row(STEPS, "1.0.0");
    engine.runtime(std::slice::from_ref(&plan));
    let mark = engine.audit.mark();
    let operator = engine.operator(Wire::new(Crash::Never));
    assert_eq!(engine.run(&operator, &plan, BOUND), End::Settled);
    let lines = engine.audit.taken_since(mark, OPERATOR);
    let count = |resource: &str, status: &str| {
        lines.iter().filter(|line| line.resource == resource && line.subresource == status).count()
    };
    assert_eq!(count("applications", ""), STEPS);
    let (records, statuses) = (count("runtimerollouts", ""), count("runtimerollouts", "status"));
    assert!(records <= 2 * STEPS + AROUND, "{records} records");
    assert!(statuses <= 2 * STEPS + AROUND, "{statuses} statuses");
}
