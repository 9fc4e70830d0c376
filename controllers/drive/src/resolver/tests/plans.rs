//! Plans: stored once, replaced where they are another's, refused where they are too large; and whether one stands.

use super::*;

#[tokio::test]
async fn a_plan_is_stored_then_recorded_and_then_its_jobs_go() {
    let mut scene = scene();
    scene.rendered().await;
    let stored = plan("a: 1\n");
    let map = Plan::config_map_name(stored.plan.digest());
    scene.worker.ended(Ok(stored.clone())).unwrap();
    let snapshot = scene.resolution.discovery.clone().unwrap().snapshot.unwrap().config_map;
    assert_eq!(scene.step().await, [format!("POST configmaps/{map}"), format!("PATCH configmaps/{snapshot}")]);
    let jobs: Vec<String> = scene.jobs.iter().map(|job| format!("DELETE jobs/{}", job.name)).collect();
    assert_eq!(jobs.len(), 2);
    assert_eq!(scene.step().await, jobs);
    assert_eq!(scene.resolution.state, ResolutionState::Resolved);
    assert_eq!(scene.step().await, Vec::<String>::new(), "and nothing further happens");
}

/// `Resolved` stays True with the earlier plan while it is only rendered again, and is False after a change of the spec.
#[tokio::test]
async fn the_earlier_plan_stands_while_only_the_snapshot_is_new() {
    let mut scene = scene();
    let stored = plan("a: 1\n");
    let digest = stored.plan.digest();
    scene.resolved(stored).await;
    let stands = |scene: &Scene| match &scene.resolution.state {
        ResolutionState::Resolving { plan_stands, .. } => Some(*plan_stands),
        ResolutionState::Unknown | ResolutionState::Resolved | ResolutionState::Stalled { .. } => None,
    };
    scene.resnapshot("1");
    scene.step().await;
    assert_eq!(stands(&scene), Some(true));
    scene.succeed(&snapshot());
    scene.step().await;
    scene.step().await;
    assert_eq!((scene.jobs[0].stage, stands(&scene)), (Stage::Recipe, Some(true)));
    scene.runtime.spec.profile = Some("another".to_owned());
    scene.step().await;
    assert_eq!(stands(&scene), Some(false));
    scene.runtime.spec.profile = None;
    scene.step().await;
    assert_eq!(stands(&scene), Some(true));
    // What stalls says so, and the earlier plan is the candidate all the while.
    scene.runtime.spec.placement.accelerated.node_selector.insert("pool".to_owned(), "other".to_owned());
    scene.step().await;
    assert!(matches!(scene.resolution.state, ResolutionState::Stalled { reason: Reason::NodeGroupEmpty, .. }));
    assert_eq!(scene.resolution.candidate, Some(digest));
    assert_eq!(scene.resolution.discovery.clone().unwrap().accelerated_nodes, 0);
}

/// B84: refused with its size, and no further object or run comes of it.
#[tokio::test]
async fn b84_a_plan_that_is_too_large_stalls_and_nothing_grows() {
    let mut scene = scene();
    let noise: String = (0_u64..50_000).map(|number| Digest::of(&number.to_be_bytes()).hex()).collect();
    scene.rendered().await;
    scene.worker.ended(Ok(plan(&noise))).unwrap();
    assert_eq!(scene.step().await, Vec::<String>::new());
    for _ in 0..10 {
        assert_eq!(scene.step().await, Vec::<String>::new());
        let ResolutionState::Stalled { reason, message } = &scene.resolution.state else {
            panic!("{:?}", scene.resolution.state)
        };
        assert_eq!(*reason, Reason::ContentTooLarge);
        assert!(message.contains("over the limit of 983040; its largest releases are gpu-operator ("), "{message}");
        assert!(scene.worker.ended(Ok(plan(""))).is_none(), "no further run is asked for");
    }
}

#[tokio::test]
async fn a_plan_that_was_deleted_is_resolved_again() {
    let mut scene = scene();
    let name = scene.resolved(plan("a: 1\n")).await;
    scene.played.lose(&format!("{OWN}/{name}"));
    let wrote = scene.step().await;
    assert!(wrote[0].starts_with("POST jobs/aicr-recipe-"), "{wrote:?}");
}

#[rstest::rstest]
#[case::of_another_runtime(|stored: &mut StoredPlan| stored.context.runtime_uid = "another".to_owned())]
#[case::without_a_recipe(|stored: &mut StoredPlan| stored.recipe = None)]
#[tokio::test]
async fn a_plan_of_another_runtime_or_without_a_recipe_is_replaced_by_the_one_that_is_resolved(
    #[case] change: fn(&mut StoredPlan),
) {
    let mut scene = scene();
    let stored = plan("a: 1\n");
    let mut before = stored.clone();
    change(&mut before);
    let map = before.to_config_map("aicr-system").unwrap();
    scene.played.have(OWN, serde_json::to_value(map).unwrap());
    scene.rendered().await;
    scene.worker.ended(Ok(stored.clone())).unwrap();
    let name = Plan::config_map_name(stored.plan.digest());
    let wrote = scene.step().await;
    assert_eq!(wrote[..2], [format!("DELETE configmaps/{name}"), format!("POST configmaps/{name}")]);
    let kept = serde_json::from_value(scene.played.get(&format!("{OWN}/{name}")).unwrap()).unwrap();
    assert_eq!(StoredPlan::from_config_map(&kept).unwrap(), stored);
}
