//! Plans from one line: `nfd=1 gpu-operator=2+crds nvsentinel=1,values=b,ns=other,chart=nvsentinel-ng,alone=yes`.

use aicr_crds::{
    Digest,
    plan::{Archive, ChartContent, Plan, PlanContext, ReleaseContent, StoredPlan},
    runtime::Criteria,
};
use jiff::Timestamp;

/// A plan of these releases, each depending on the one before.
pub(crate) fn plan(line: &str, recipe: &str, created: Timestamp) -> StoredPlan {
    let (mut contents, mut archives): (Vec<ReleaseContent>, Vec<Archive>) = (vec![], vec![]);
    for word in line.split_whitespace() {
        let (id, rest) = word.split_once('=').expect("release=version");
        let mut parts = rest.split(',');
        let version = parts.next().unwrap();
        let options: std::collections::BTreeMap<&str, &str> =
            parts.map(|part| part.split_once('=').expect("key=value")).collect();
        let (version, crds) = version.split_once('+').map_or((version, false), |(version, _)| (version, true));
        let digest = Digest::of(format!("{id} {version}").as_bytes());
        let component = id.strip_suffix("-readiness").unwrap_or(id);
        contents.push(ReleaseContent {
            id: id.into(),
            component: component.into(),
            namespace: (*options.get("ns").unwrap_or(&component)).into(),
            chart: ChartContent {
                repository: format!("charts/{}", options.get("chart").unwrap_or(&id)),
                content: digest,
            },
            values: format!("v: {}\n", options.get("values").unwrap_or(&"a")),
            depends_on: contents
                .last()
                .filter(|_| !options.contains_key("alone"))
                .map(|before| vec![before.id.clone()])
                .unwrap_or_default(),
            readiness_gate: id.ends_with("-readiness"),
        });
        let names = if crds { vec![format!("things.{id}.test")] } else { vec![] };
        archives.push(Archive { id: id.into(), version: version.into(), digest, crds: names });
    }
    StoredPlan {
        plan: Plan::new(contents, archives).unwrap(),
        recipe: Some(recipe.into()),
        context: PlanContext {
            runtime_uid: "uid-runtime".into(),
            aicr_version: Some("v1.1.2".into()),
            aicr_image: None,
            snapshot: None,
            inputs: None,
            criteria: Criteria::default(),
            created,
        },
    }
}
