//! Snapshots: stored, read back, and only then is their Job deleted; and how many are kept.

use super::*;

/// B82: the Job holds the only copy until the watch has shown the other.
#[tokio::test]
async fn a_snapshot_is_read_back_before_its_job_goes() {
    let mut scene = scene();
    let wrote = scene.step().await;
    let job = format!("jobs/{}", scene.jobs[0].name);
    assert!(wrote.contains(&format!("POST {job}")), "{wrote:?}");
    scene.succeed(&snapshot());
    let map = format!("aicr-snapshot-{}", scene.jobs[0].run);
    assert_eq!(scene.step().await, [format!("POST configmaps/{map}"), format!("DELETE {job}")]);
    let stored = scene.played.get(&format!("{OWN}/{map}")).unwrap();
    assert_eq!(stored["data"]["snapshot.yaml"], snapshot());
    scene.step().await;
    let discovery = scene.resolution.discovery.clone().unwrap();
    let snapshot = discovery.snapshot.unwrap();
    assert_eq!((snapshot.config_map, snapshot.cause.as_str()), (map, "first resolution"));
    assert_eq!((discovery.accelerated_nodes, discovery.system_nodes), (2, 1));
    let aicr = scene.resolution.aicr.unwrap();
    assert_eq!((aicr.version.as_str(), aicr.image.as_str()), ("v1.1.2", "r/aicr"), "the one that ran");
}

/// B82: what is not read back keeps its Job; whoever looks next uses what is stored, and runs nothing again.
#[tokio::test(start_paused = true)]
async fn a_snapshot_that_is_not_read_back_keeps_its_job() {
    let mut scene = scene();
    scene.step().await;
    scene.succeed(&snapshot());
    let (name, map) = (scene.jobs[0].name.clone(), format!("aicr-snapshot-{}", scene.jobs[0].run));
    scene.played.deaf(true);
    let (looked, wrote) = scene.tried().await;
    assert!(matches!(looked, Err(DriveError::Timeout { .. })), "{looked:?}");
    assert_eq!(wrote, [format!("POST configmaps/{map}")]);
    // Again: the name is taken, and nothing more is known.
    let (looked, wrote) = scene.tried().await;
    assert!(looked.is_err());
    assert_eq!(wrote, [format!("POST configmaps/{map}")]);
    scene.played.deaf(false);
    scene.played.have(OWN, scene.played.get(&format!("{OWN}/{map}")).unwrap());
    let wrote = scene.step().await;
    assert_eq!(wrote[0], format!("DELETE jobs/{name}"), "{wrote:?}");
    assert!(wrote[1].starts_with("POST jobs/aicr-recipe-"), "the recipe is next: {wrote:?}");
}

/// One of the name that holds something else is not taken for it.
#[tokio::test]
async fn another_document_of_the_snapshots_name_keeps_its_job() {
    let mut scene = scene();
    scene.step().await;
    scene.succeed(&snapshot());
    let name = format!("aicr-snapshot-{}", scene.jobs[0].run);
    let other = json!({
        "metadata": { "name": name, "namespace": "aicr-system", "labels": { label::ROLE: "plan" } }, "data": {},
    });
    scene.played.have(OWN, other);
    let (looked, wrote) = scene.tried().await;
    let Err(DriveError::Content { problem, .. }) = looked else { panic!("{looked:?}") };
    assert!(problem.contains("holds something else"), "{problem}");
    assert_eq!(wrote, [format!("POST configmaps/{name}")]);
}

#[tokio::test]
async fn the_newest_five_snapshots_are_kept() {
    let mut scene = scene();
    let mut names = Vec::new();
    for token in 1..=7 {
        scene.resnapshot(&token.to_string());
        scene.step().await;
        scene.succeed(&snapshot());
        names.push(format!("aicr-snapshot-{}", scene.jobs.last().unwrap().run));
        scene.step().await;
        // What was begun for the snapshot before is cancelled by the next.
        scene.step().await;
    }
    let kept = |name: &&String| scene.played.get(&format!("{OWN}/{name}")).is_some();
    assert_eq!(names.iter().filter(kept).collect::<Vec<_>>(), names[2..].iter().collect::<Vec<_>>());
}
