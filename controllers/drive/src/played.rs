//! An API server for tests: it notes what is written, keeps the objects, and tells the watches of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

use aicr_crds::application::Engine;
use aicr_decide::{
    resolve::{AicrInstall, Installation},
    seen::Settings,
};
use http::{Method, Request, Response, StatusCode};
use kube::{Client, client::Body};
use serde_json::{Value, json};

use crate::{
    clock::Clock,
    jobs::JobSettings,
    settings::DriveSettings,
    watch::{Feeds, Watches},
};

/// What was written: method and path, and the body.
pub(crate) type Wrote = (String, Value);

/// An installation without tokens.
pub(crate) fn settings() -> DriveSettings {
    let repository = "r.example.com/p".to_owned();
    DriveSettings {
        namespace: "aicr-system".to_owned(),
        decide: Settings {
            engine: Engine {
                namespace: "argocd".to_owned(),
                project: "aicr".to_owned(),
                repository: repository.clone(),
            },
            validation_installed: false,
        },
        install: Installation {
            aicr: AicrInstall { version: "1.1.2".to_owned(), image: "r/aicr".to_owned() },
            repository,
            plain_http: Vec::new(),
            jobs_namespace: "aicr-jobs".to_owned(),
            discovery_namespace: "aicr-discovery".to_owned(),
            agent_service_account: "agent".to_owned(),
            agent_privileged: true,
            agent_requests: None,
            agent_limits: None,
        },
        registry_ca_bundle: String::new(),
        chart_sources: aicr_mirror::SourcesConfig::default(),
        jobs: JobSettings {
            jobs_namespace: "aicr-jobs".to_owned(),
            discovery_namespace: "aicr-discovery".to_owned(),
            ..JobSettings::default()
        },
        gates: BTreeSet::new(),
        validator_images: Vec::new(),
        tokens: None,
        watch_seconds: crate::settings::WATCH_SECONDS,
        clock: Clock::default(),
        instance: "pod".to_owned(),
    }
}

/// What it keeps; one that is deaf tells no watch of what is written.
#[derive(Default)]
struct Kept {
    objects: BTreeMap<String, Value>,
    wrote: Vec<Wrote>,
    version: u64,
    feeds: Option<Feeds>,
    deaf: bool,
    /// The verb on Applications that the Role lacks.
    lacks: Option<&'static str>,
}

/// The server.
#[derive(Clone, Default)]
pub(crate) struct Played(Arc<Mutex<Kept>>);

impl Played {
    /// A server, its client, and watches that it tells.
    pub(crate) fn new(settings: &DriveSettings) -> (Self, Client, Arc<Watches>) {
        let played = Self::default();
        let server = played.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                let (status, answer) = server.kept().answer(&parts.method, parts.uri.path(), body);
                let answer = Body::from(answer.to_string().into_bytes());
                Ok::<_, std::io::Error>(Response::builder().status(status).body(answer).unwrap())
            }
        });
        let client = Client::new(service, "default");
        let (watches, feeds) = Watches::new(&client, settings);
        played.kept().feeds = Some(feeds);
        (played, client, Arc::new(watches))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap()
    }

    /// Somebody else makes this object in that place, `/api/v1/nodes` say.
    pub(crate) fn have(&self, place: &str, object: Value) {
        let mut kept = self.kept();
        let path = format!("{place}/{}", object["metadata"]["name"].as_str().unwrap());
        kept.put(&path, object);
    }

    /// Somebody else deletes it.
    pub(crate) fn lose(&self, path: &str) {
        self.kept().take(path).unwrap();
    }

    /// The API server refuses the watches on Applications, or no longer.
    pub(crate) fn refuse_applications(&self) {
        self.kept().feeds.as_mut().unwrap().refuse_applications();
    }

    /// The operator's Role lacks this verb on Applications from now on.
    pub(crate) fn lacks(&self, verb: Option<&'static str>) {
        self.kept().lacks = verb;
    }

    /// From now on no watch hears of anything, or each does again of what comes.
    pub(crate) fn deaf(&self, deaf: bool) {
        self.kept().deaf = deaf;
    }

    /// What the operator wrote since this was asked last.
    pub(crate) fn wrote(&self) -> Vec<Wrote> {
        std::mem::take(&mut self.kept().wrote)
    }

    /// An object as it is now.
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.kept().objects.get(path).cloned()
    }
}

impl Kept {
    fn answer(&mut self, method: &Method, path: &str, body: Value) -> (StatusCode, Value) {
        if *method == Method::GET {
            let listed = || json!({ "metadata": {}, "items": [] });
            // The names of places are plural; what is asked for by name and is not there is not there.
            let place = path.ends_with("/pods") || path.ends_with("/events");
            return self.objects.get(path).map_or_else(
                || if place { (StatusCode::OK, listed()) } else { failure(StatusCode::NOT_FOUND) },
                |object| (StatusCode::OK, object.clone()),
            );
        }
        if path.ends_with("/selfsubjectaccessreviews") {
            let asked = body["spec"]["resourceAttributes"]["verb"].as_str();
            return (StatusCode::CREATED, json!({ "spec": {}, "status": { "allowed": asked != self.lacks } }));
        }
        self.wrote.push((format!("{method} {path}"), body.clone()));
        if *method == Method::POST {
            let path = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap());
            let taken = self.objects.contains_key(&path);
            return if taken { failure(StatusCode::CONFLICT) } else { (StatusCode::CREATED, self.put(&path, body)) };
        }
        let Some(there) = self.objects.get(path).cloned() else { return failure(StatusCode::NOT_FOUND) };
        let guard = if *method == Method::DELETE { &body["preconditions"] } else { &body["metadata"] };
        if ["uid", "resourceVersion"].iter().any(|key| !guard[key].is_null() && guard[key] != there["metadata"][key]) {
            return failure(StatusCode::CONFLICT);
        }
        if *method == Method::DELETE {
            return (StatusCode::OK, self.take(path).unwrap_or_default());
        }
        let mut object = there;
        json_patch::merge(&mut object, &body);
        (StatusCode::OK, self.put(path, object))
    }

    fn put(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = json!(self.version.to_string());
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{}", self.version));
            metadata["creationTimestamp"] =
                json!(jiff::Timestamp::from_second(i64::try_from(self.version).unwrap()).unwrap());
        }
        self.objects.insert(path.to_owned(), object.clone());
        self.tell(path, false, &object);
        object
    }

    fn take(&mut self, path: &str) -> Option<Value> {
        let object = self.objects.remove(path)?;
        self.tell(path, true, &object);
        Some(object)
    }

    fn tell(&mut self, path: &str, gone: bool, object: &Value) {
        let Some(feeds) = self.feeds.as_mut().filter(|_| !self.deaf) else { return };
        let place = path.rsplit('/').nth(1).unwrap_or_default();
        feeds.tell(place, gone, object);
    }
}

fn failure(status: StatusCode) -> (StatusCode, Value) {
    let reason = if status == StatusCode::CONFLICT { "Conflict" } else { "NotFound" };
    let body =
        json!({ "kind": "Status", "status": "Failure", "message": "no", "reason": reason, "code": status.as_u16() });
    (status, body)
}
