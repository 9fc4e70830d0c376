//! Tables over the gates, read as `design/rules.md` section 3 lists them.

use aicr_decide::rollout::GATES;

#[test]
fn the_gates_stand_in_the_order_of_the_page() {
    let names: Vec<&str> = GATES.iter().map(|(name, _)| *name).collect();
    let page = [
        "ended",
        "written by a newer operator",
        "runtime gone",
        "deadline passed",
        "revoked",
        "superseded",
        "approval expired",
        "step in flight",
        "acknowledgement owed",
        "approval missing",
        "nothing left to start",
        "held",
        "inventory differs",
        "target unfit",
        "next step",
        "validation",
    ];
    assert_eq!(names, page);
}
