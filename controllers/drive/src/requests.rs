//! The client of the API server: without retries of its own, and counted.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use http::{Method, Request, Response};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
};
use tower::{Layer, Service};

use crate::{fence::Fence, metrics::metrics};

/// How long a connection may be silent. Calls have a bound of their own and watches end by themselves before: this one ends the
/// list or watch that a server took and never answered.
const SILENCE: Duration = Duration::from_secs(330);

/// A client that counts its requests and leaves it to reconciles to try again.
///
/// # Errors
/// A configuration from which no client can be made: certificates that cannot be read, a proxy of another kind.
pub fn client(config: Config) -> Result<Client, kube::Error> {
    Ok(ClientBuilder::try_from(patient(config))?.with_layer(&Counted).build())
}

/// The same, which writes only while the lease holds.
///
/// # Errors
/// As [`client`].
pub fn fenced(config: Config, fence: &Fence) -> Result<Client, kube::Error> {
    Ok(ClientBuilder::try_from(patient(config))?.with_layer(&Counted).with_layer(fence).build())
}

fn patient(mut config: Config) -> Config {
    config.default_retry = false;
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    config
}

/// Counts what passes.
#[derive(Clone, Copy)]
struct Counted;

impl<S> Layer<S> for Counted {
    type Service = Counter<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Counter { inner }
    }
}

#[derive(Clone)]
struct Counter<S> {
    inner: S,
}

impl<S, B> Service<Request<Body>> for Counter<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let verb = verb(request.method(), request.uri().query().unwrap_or_default());
        let resource = resource(request.uri().path());
        let answer = self.inner.call(request);
        async move {
            let answer = answer.await;
            let code = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
            metrics().requested(verb, &resource, code);
            answer
        }
        .boxed()
    }
}

fn verb(method: &Method, query: &str) -> &'static str {
    let watches = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch"));
    match *method {
        Method::GET if watches => "watch",
        Method::GET => "get",
        Method::POST => "create",
        Method::PATCH => "patch",
        Method::PUT => "update",
        Method::DELETE => "delete",
        _ => "other",
    }
}

/// The resource of a path, with its subresource and without names: as many as there are kinds.
fn resource(path: &str) -> String {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (["api", _, below @ ..] | ["apis", _, _, below @ ..]) = parts.as_slice() else { return "other".to_owned() };
    let own = match below {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        _ => below,
    };
    match own {
        [] => "other".to_owned(),
        [resource, _, subresource, ..] => format!("{resource}/{subresource}"),
        [resource, ..] => (*resource).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_counted_by_its_resource_and_never_by_a_name() {
        for (path, expected) in [
            ("/api/v1/nodes", "nodes"),
            ("/api/v1/namespaces/a/configmaps/b", "configmaps"),
            ("/api/v1/namespaces/a", "namespaces"),
            ("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/gpu", "applications"),
            ("/apis/operator.aicr.run/v1alpha1/runtimerollouts/r/status", "runtimerollouts/status"),
            ("/version", "other"),
        ] {
            assert_eq!(resource(path), expected, "{path}");
        }
    }

    #[test]
    fn a_watch_is_told_from_a_get() {
        assert_eq!(verb(&Method::GET, "labelSelector=a&watch=true"), "watch");
        assert_eq!(verb(&Method::GET, "labelSelector=watch"), "get");
        assert_eq!(verb(&Method::PATCH, ""), "patch");
    }
}
