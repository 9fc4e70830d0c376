//! The operator's own program as a process, and what it takes: memory, connections, processor, requests.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aicr_lab::product::Product;

use super::operator::{AICR_IMAGE, AICR_VERSION, REPOSITORY};

/// A process of the operator. It ends with its value.
pub struct Process {
    child: Child,
    metrics: SocketAddr,
}

/// Where it gets its registry credentials from.
#[derive(Clone, Copy, Debug)]
pub enum Registry {
    /// It needs none.
    Anonymous,
    /// ECR's token, asked for at this address.
    Ecr(SocketAddr),
}

/// What a process takes.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Resident memory in KiB.
    pub rss: u64,
    /// Open sockets.
    pub sockets: usize,
    /// Processor time since its start.
    pub cpu: Duration,
}

impl Process {
    /// Starts it; `log` is where it writes.
    pub fn start(product: &Product, kubeconfig: &Path, log: &Path) -> Self {
        Self::replica(product, kubeconfig, log, "aicr-operator-played", Registry::Anonymous)
    }

    /// Starts one of several, by a name of its own.
    pub fn replica(product: &Product, kubeconfig: &Path, log: &Path, name: &str, registry: Registry) -> Self {
        let program = product.binary("aicr-operator").unwrap_or_else(|error| panic!("{error:?}"));
        let log = std::fs::File::create(log).unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        let [metrics, webhooks] = [free_address(), free_address()];
        let child = Command::new(program)
            .args(["--aicr-version", AICR_VERSION, "--aicr-image", AICR_IMAGE, "--registry-repository", REPOSITORY])
            .args(["--metrics-address", &metrics.to_string(), "--webhook-address", &webhooks.to_string()])
            // Nobody calls its webhooks here, so that nobody needs to trust them.
            .args(["--certificates-provider", "cert-manager", "--namespace", super::operator::NAMESPACE])
            .args(registry.words())
            .envs(registry.variables())
            .env("KUBECONFIG", kubeconfig)
            .env("HOSTNAME", name)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("start the operator: {error}"));
        Self { child, metrics }
    }

    /// Starts what does nothing with the same watches, in Go.
    pub fn peer(program: &Path, kubeconfig: &Path) -> Self {
        let metrics = free_address();
        let child = Command::new(program)
            .env("KUBECONFIG", kubeconfig)
            .env("PEER_METRICS", metrics.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("start {}: {error}", program.display()));
        Self { child, metrics }
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What it takes now.
    pub fn taken(&self) -> Taken {
        let place = format!("/proc/{}", self.child.id());
        let read = |name: &str| std::fs::read_to_string(format!("{place}/{name}")).unwrap_or_default();
        let rss = read("status").lines().find_map(|line| line.strip_prefix("VmRSS:").and_then(number)).unwrap_or(0);
        let entries = std::fs::read_dir(format!("{place}/fd")).into_iter().flatten().flatten();
        let is_socket = |link: std::path::PathBuf| link.to_string_lossy().starts_with("socket:");
        let sockets = entries.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(is_socket)).count();
        // After the name in brackets: fields 14 and 15 of the whole, in hundredths of a second.
        let stat = read("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks: u64 = [11, 12].iter().filter_map(|place| fields.get(*place)?.parse::<u64>().ok()).sum();
        Taken { rss, sockets, cpu: Duration::from_millis(ticks * 10) }
    }

    /// Its requests so far, by verb.
    pub fn requests(&self) -> BTreeMap<String, u64> {
        let mut by_verb = BTreeMap::new();
        for line in self.metrics().lines().filter(|line| line.starts_with("aicr_operator_api_requests_total{")) {
            let verb = line.split("verb=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
            let count = line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok()).unwrap_or_default();
            *by_verb.entry(verb.to_owned()).or_default() += count;
        }
        by_verb
    }

    /// One of its series without labels; `None` while it has none of that name.
    pub fn metric(&self, series: &str) -> Option<f64> {
        let text = self.metrics();
        let value = |line: &str| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok();
        text.lines().find_map(value)
    }

    fn metrics(&self) -> String {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.metrics)?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        };
        ask().unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Registry {
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Anonymous => &[],
            Self::Ecr(_) => &["--registry-provider", "aws"],
        }
    }

    /// An identity that nobody checks.
    fn variables(self) -> Vec<(&'static str, String)> {
        match self {
            Self::Anonymous => Vec::new(),
            Self::Ecr(address) => [
                ("AWS_ENDPOINT_URL", format!("http://{address}")),
                ("AWS_REGION", "us-east-1".to_owned()),
                ("AWS_ACCESS_KEY_ID", "played".to_owned()),
                ("AWS_SECRET_ACCESS_KEY", "played".to_owned()),
                ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
            ]
            .into(),
        }
    }
}

fn number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// An address of this machine that nobody listens on.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.unwrap_or_else(|error| panic!("a free port: {error}"))
}
