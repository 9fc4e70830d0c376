//! Bodies of answers: as they come, or as a watch that something happens to.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, future};
use hyper::body::{Body as HttpBody, Bytes, Frame};
use kube::client::Body;
use tokio::sync::watch;

use super::Numbers;
use super::trouble::{Stream, Trouble};

type Part = Result<Frame<Bytes>, kube::Error>;

/// A body as a stream of its parts.
pub(super) struct Streamed(BoxStream<'static, Part>);

impl HttpBody for Streamed {
    type Data = Bytes;
    type Error = kube::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Part>> {
        self.0.poll_next_unpin(context)
    }
}

/// Parts of a late watch that may be on their way.
const ON_THE_WAY: usize = 4096;

/// What the API server sends where a watch's version is too old.
const GONE: &[u8] = br#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (2)","reason":"Expired","code":410}}
"#;
/// Not JSON, and a line of its own.
const GARBAGE: &[u8] = b"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"\xff\xfe<html>502 Bad Gateway\n";

impl Streamed {
    /// As it comes.
    pub(super) fn plain(body: Body) -> Self {
        Self(parts(body))
    }

    /// A watch, which is counted while it is open.
    pub(super) fn watch(body: Body, trouble: &Trouble, numbers: &Arc<Numbers>) -> Self {
        let late = trouble.lateness();
        let later = move |part| async move {
            tokio::time::sleep(late).await;
            part
        };
        let parts = parts(body).map(later).buffered(ON_THE_WAY).boxed();
        let state = Some((parts, trouble.stream(), Open::new(numbers)));
        let parts = stream::unfold(state, |state| async move {
            let (mut parts, mut happenings, open) = state?;
            tokio::select! {
                biased;
                () = changed(&mut happenings) => {
                    let how = *happenings.borrow_and_update();
                    match how {
                        Stream::Flows => Some((Ok(Frame::data(Bytes::new())), Some((parts, happenings, open)))),
                        Stream::Silent => future::pending().await,
                        Stream::Gone => Some((Ok(Frame::data(Bytes::from_static(GONE))), None)),
                        Stream::Garbage => Some((
                            Ok(Frame::data(Bytes::from_static(GARBAGE))),
                            Some((parts, happenings, open)),
                        )),
                        Stream::Cut => {
                            let why = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                            Some((Err(kube::Error::Service(Box::new(why))), None))
                        }
                    }
                }
                part = parts.next() => Some((part?, Some((parts, happenings, open)))),
            }
        });
        Self(parts.boxed())
    }
}

/// Nobody is left to make anything happen: the watch flows.
async fn changed(happenings: &mut watch::Receiver<Stream>) {
    if happenings.changed().await.is_err() {
        future::pending::<()>().await;
    }
}

fn parts(mut body: Body) -> BoxStream<'static, Part> {
    stream::poll_fn(move |context| Pin::new(&mut body).poll_frame(context)).boxed()
}

/// One open watch.
struct Open(Arc<Numbers>);

impl Open {
    fn new(numbers: &Arc<Numbers>) -> Self {
        numbers.open_watches.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(numbers))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open_watches.fetch_sub(1, Ordering::Relaxed);
    }
}
