//! The way between the operator and the API server: every request is noted, and can be kept from its way or its answer.

mod body;
mod trouble;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::FutureExt as _;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::sync::watch;

use body::Streamed;
pub use trouble::{Refuse, Stream, Trouble};

/// Where the operator dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// Nowhere.
    Never,
    /// This write, counted from 1, is not sent any more.
    Before(usize),
    /// This write was answered, and the answer is the last thing that is heard.
    After(usize),
}

/// What is kept of the requests that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Every write with its body.
    Writes,
    /// Numbers alone, for runs that have no end.
    Numbers,
}

/// One write.
#[derive(Clone, Debug)]
pub struct Write {
    /// When it was sent.
    pub at: Instant,
    /// Method.
    pub method: Method,
    /// Path without query.
    pub path: String,
    /// Body, where it is JSON.
    pub body: Value,
    /// HTTP status; `None` where no answer came.
    pub code: Option<u16>,
}

impl Write {
    /// Whether the API server took it.
    pub fn was_taken(&self) -> bool {
        self.code.is_some_and(|code| code < 300)
    }
}

/// Counts of what passed.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Reads: gets and lists.
    pub reads: AtomicUsize,
    /// Watches begun.
    pub watches: AtomicUsize,
    /// Writes sent.
    pub writes: AtomicUsize,
    /// Watches that are open.
    pub open_watches: AtomicUsize,
}

impl Numbers {
    /// All requests.
    pub fn requests(&self) -> usize {
        [&self.reads, &self.watches, &self.writes].iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

/// The way.
pub struct Wire {
    crash: Crash,
    keep: Keep,
    dead: watch::Sender<bool>,
    is_dead: AtomicBool,
    writes: Mutex<Vec<Write>>,
    /// What passed.
    pub numbers: Arc<Numbers>,
    trouble: Trouble,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A get or list.
    Read,
    /// A watch.
    Watch,
    /// Anything that changes something; questions about rights, which are POSTs, change nothing.
    Write,
}

impl Kind {
    fn of(request: &Request<Body>) -> Self {
        let asks = request.uri().path().starts_with("/apis/authorization.k8s.io/");
        let query = request.uri().query().unwrap_or_default();
        match *request.method() {
            Method::GET if query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1")) => Self::Watch,
            Method::POST | Method::PUT | Method::PATCH | Method::DELETE if !asks => Self::Write,
            _ => Self::Read,
        }
    }
}

impl Wire {
    /// A way on which the operator dies once, or not.
    pub fn new(crash: Crash) -> Arc<Self> {
        Self::with(crash, Keep::Writes, Trouble::none())
    }

    /// A way with troubles of its own.
    pub fn with(crash: Crash, keep: Keep, trouble: Trouble) -> Arc<Self> {
        Arc::new(Self {
            crash,
            keep,
            dead: watch::Sender::new(false),
            is_dead: AtomicBool::new(false),
            writes: Mutex::default(),
            numbers: Arc::default(),
            trouble,
        })
    }

    /// A client that goes this way; `real` knows the API server.
    pub fn client(self: &Arc<Self>, real: Client) -> Client {
        let wire = Arc::clone(self);
        let service = tower::service_fn(move |request| {
            let (wire, real) = (Arc::clone(&wire), real.clone());
            async move { wire.pass(&real, request).await }.boxed()
        });
        Client::new(service, "default")
    }

    /// Says when the operator has died.
    pub fn death(&self) -> watch::Receiver<bool> {
        self.dead.subscribe()
    }

    /// Whether the operator has died.
    pub fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Acquire)
    }

    /// The writes so far.
    pub fn writes(&self) -> Vec<Write> {
        self.lock().clone()
    }

    /// The troubles, to be changed while it runs.
    pub fn trouble(&self) -> &Trouble {
        &self.trouble
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Write>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pass(&self, real: &Client, request: Request<Body>) -> Result<Response<Streamed>, kube::Error> {
        if self.is_dead() {
            return std::future::pending().await;
        }
        let path = request.uri().path().to_owned();
        match Kind::of(&request) {
            Kind::Read => {
                self.numbers.reads.fetch_add(1, Ordering::Relaxed);
                let answer = self.trouble.around((Kind::Read, &path), real.send(request)).await?;
                Ok(answer.map(Streamed::plain))
            }
            Kind::Watch => {
                self.numbers.watches.fetch_add(1, Ordering::Relaxed);
                let answer = self.trouble.around((Kind::Watch, &path), real.send(request)).await?;
                Ok(answer.map(|body| Streamed::watch(body, &self.trouble, &self.numbers)))
            }
            Kind::Write => self.write(real, request).await,
        }
    }

    async fn write(&self, real: &Client, request: Request<Body>) -> Result<Response<Streamed>, kube::Error> {
        let number = self.numbers.writes.fetch_add(1, Ordering::Relaxed) + 1;
        if self.crash == Crash::Before(number) {
            return self.die().await;
        }
        let (parts, body) = request.into_parts();
        let bytes = body.collect_bytes().await?;
        let (place, path) = (self.note(&parts, &bytes), parts.uri.path().to_owned());
        let request = Request::from_parts(parts, Body::from(bytes));
        let answer = self.trouble.around((Kind::Write, &path), real.send(request)).await;
        if self.crash == Crash::After(number) {
            return self.die().await;
        }
        if let (Some(place), Ok(answer)) = (place, &answer) {
            self.lock()[place].code = Some(answer.status().as_u16());
        }
        Ok(answer?.map(Streamed::plain))
    }

    /// Keeps a write; where it is kept.
    fn note(&self, parts: &http::request::Parts, bytes: &[u8]) -> Option<usize> {
        match self.keep {
            Keep::Numbers => None,
            Keep::Writes => {
                let mut writes = self.lock();
                writes.push(Write {
                    at: Instant::now(),
                    method: parts.method.clone(),
                    path: parts.uri.path().to_owned(),
                    body: serde_json::from_slice(bytes).unwrap_or_default(),
                    code: None,
                });
                Some(writes.len() - 1)
            }
        }
    }

    /// Nothing is heard or said any more.
    async fn die<T>(&self) -> T {
        self.is_dead.store(true, Ordering::Release);
        self.dead.send_replace(true);
        std::future::pending().await
    }
}
