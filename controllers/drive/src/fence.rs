//! Until when this process may write: a leader that was frozen beyond its lease finds that out before its next write, and not
//! after it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use futures::{FutureExt as _, future::BoxFuture};
use http::{Method, Request, Response};
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

/// What may be asked of the API server without a lease: each is sent as a creation, and creates nothing.
const REVIEWS: [&str; 2] = ["/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/"];

/// The end of the lease, as whoever holds it knows it. Its clock goes on while the process is frozen.
#[derive(Clone, Debug, Default)]
pub struct Fence {
    until: Arc<Mutex<Option<Instant>>>,
}

/// The lease is over.
#[derive(Debug, thiserror::Error)]
#[error("this replica does not hold the lease, or does not know that it still does: nothing is written")]
struct Over;

impl Fence {
    /// Writes pass until then.
    pub fn open_until(&self, until: Instant) {
        self.set(Some(until));
    }

    /// No write passes any more.
    pub fn close(&self) {
        self.set(None);
    }

    fn set(&self, until: Option<Instant>) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Whether writes pass now.
    pub fn is_open(&self) -> bool {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    fn passes(&self, method: &Method, path: &str) -> bool {
        let is_write = *method != Method::GET && !REVIEWS.iter().any(|review| path.starts_with(review));
        !is_write || self.is_open()
    }
}

impl<S> Layer<S> for Fence {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Fenced { inner, fence: self.clone() }
    }
}

/// Requests that go through it.
#[derive(Clone)]
pub struct Fenced<S> {
    inner: S,
    fence: Fence,
}

impl<S, B> Service<Request<Body>> for Fenced<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if self.fence.passes(request.method(), request.uri().path()) {
            let answer = self.inner.call(request);
            async move { answer.await.map_err(Into::into) }.boxed()
        } else {
            std::future::ready(Err(BoxError::from(Over))).boxed()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ROLLOUT: &str = "/apis/operator.aicr.run/v1alpha1/runtimerollouts/r";

    #[tokio::test(start_paused = true)]
    async fn what_writes_passes_while_the_lease_is_known_to_hold_and_what_reads_always() {
        let fence = Fence::default();
        assert!(!fence.passes(&Method::PATCH, ROLLOUT), "no lease was held yet");
        fence.open_until(Instant::now() + Duration::from_secs(30));
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert!(fence.passes(&method, ROLLOUT));
        }
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(!fence.passes(&Method::PATCH, ROLLOUT) && !fence.passes(&Method::DELETE, ROLLOUT));
        assert!(fence.passes(&Method::GET, ROLLOUT));
        assert!(fence.passes(&Method::POST, "/apis/authorization.k8s.io/v1/subjectaccessreviews"));
        fence.open_until(Instant::now() + Duration::from_secs(1));
        fence.close();
        assert!(!fence.passes(&Method::POST, ROLLOUT));
    }

    #[tokio::test]
    async fn a_write_that_does_not_pass_is_not_sent() {
        let inner = tower::service_fn(|_: Request<Body>| async {
            Ok::<_, std::convert::Infallible>(Response::new(Body::empty()))
        });
        let fence = Fence::default();
        let mut fenced = fence.layer(inner);
        let request = |method| Request::builder().method(method).uri(ROLLOUT).body(Body::empty()).unwrap();
        let refused = fenced.call(request(Method::PATCH)).await.unwrap_err();
        assert!(refused.to_string().contains("nothing is written"), "{refused}");
        assert!(fenced.call(request(Method::GET)).await.is_ok());
        fence.open_until(Instant::now() + Duration::from_secs(30));
        assert!(fenced.call(request(Method::PATCH)).await.is_ok());
    }
}
