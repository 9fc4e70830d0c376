//! The way from 127.0.0.1 of the machine to the API server inside the namespace.

use std::net::TcpListener;
use std::time::Duration;

use crate::addresses::{API_PORT, NODE_ADDRESS};
use crate::error::LabError;
use crate::lab::Lab;
use crate::preflight::PreflightError;
use crate::process::{Place, Spec};

/// The port that `$AICR_LAB_PORT` names, else one of 127.0.0.1 that nobody listens on.
pub(crate) fn free_port() -> Result<u16, LabError> {
    let port = std::env::var("AICR_LAB_PORT").unwrap_or_else(|_| "0".to_owned());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).and_then(|listener| listener.local_addr());
    Ok(listener.map_err(|_| PreflightError::PortTaken { port })?.port())
}

/// A relay passes on piece by piece: without this, the second small piece of an answer waits 40 ms for the first one's receipt.
const AT_ONCE: &str = "nodelay";

/// Two relays that meet at a socket file: a file is seen from both sides of a network namespace, an address is not.
pub(crate) fn start(lab: &Lab) -> Result<(), LabError> {
    let socket = lab.layout.text("api.sock");
    let port = lab.runner.state().api_port;
    let inside =
        [format!("UNIX-LISTEN:{socket},fork,unlink-early"), format!("TCP:{NODE_ADDRESS}:{API_PORT},{AT_ONCE}")];
    lab.runner.start(Spec::new("forward-inside", Place::Network, "socat").args(inside))?;
    let outside =
        [format!("TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr,{AT_ONCE}"), format!("UNIX-CONNECT:{socket}")];
    lab.runner.start(Spec::new("forward-outside", Place::Outside, "socat").args(outside))?;
    let what = format!("an answer at 127.0.0.1:{port}");
    lab.runner.wait_for("forward-outside", &what, Duration::from_secs(30), || {
        lab.kubectl(&["get", "--raw", "/readyz"]).map(drop).map_err(|error| error.to_string())
    })
}
