//! An API server of canned answers on a port of its own, which remembers what it was asked.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// One answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer(String);

impl Answer {
    /// This status and this object.
    pub(crate) fn json(code: u16, object: &Value) -> Self {
        let body = object.to_string();
        let head = format!("HTTP/1.1 {code} Answer\r\nContent-Type: application/json\r\nConnection: close\r\n");
        Self(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()))
    }

    /// With one more header line.
    pub(crate) fn with(self, header: &str) -> Self {
        Self(self.0.replacen("Connection: close\r\n", &format!("Connection: close\r\n{header}\r\n"), 1))
    }
}

/// A failure Status, as the API server writes it.
pub(crate) fn refusal(code: u16, message: &str, causes: &[&str]) -> Value {
    let causes: Vec<_> = causes.iter().map(|text| json!({ "message": text, "field": "spec" })).collect();
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Refused", "code": code,
        "message": message, "details": { "name": "r", "kind": "runtimerollouts", "causes": causes },
    })
}

struct Rule {
    method: &'static str,
    path: &'static str,
    answer: Answer,
    again: bool,
}

#[derive(Default)]
struct Script {
    rules: VecDeque<Rule>,
    asked: Vec<(String, String)>,
}

/// The server; its thread ends with the test's process.
pub(crate) struct Server {
    script: Arc<Mutex<Script>>,
    folder: TempDir,
    port: u16,
}

impl Server {
    /// Starts it, with no answers: everything is a plain 404.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = Arc::new(Mutex::new(Script::default()));
        let shared = Arc::clone(&script);
        thread::spawn(move || listener.incoming().for_each(|stream| answer(stream.unwrap(), &shared)));
        Self { script, folder: tempfile::tempdir().unwrap(), port }
    }

    /// A kubeconfig for a port where nobody listens.
    pub(crate) fn nobody() -> String {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap().keep();
        write(&folder, port)
    }

    /// Answers so, once the rules before are used up.
    pub(crate) fn always(&self, method: &'static str, path: &'static str, answer: Answer) {
        self.script.lock().unwrap().rules.push_back(Rule { method, path, answer, again: true });
    }

    /// Answers so once.
    pub(crate) fn once(&self, method: &'static str, path: &'static str, answer: Answer) {
        self.script.lock().unwrap().rules.push_back(Rule { method, path, answer, again: false });
    }

    /// The path of a kubeconfig for it.
    pub(crate) fn kubeconfig(&self) -> String {
        write(self.folder.path(), self.port)
    }

    /// How often this method was asked for.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.queries(method).len()
    }

    /// The queries of the requests with this method.
    pub(crate) fn queries(&self, method: &str) -> Vec<String> {
        let script = self.script.lock().unwrap();
        let these = script.asked.iter().filter(|(asked, _)| asked == method);
        these.map(|(_, target)| target.split_once('?').map(|(_, query)| query).unwrap_or_default().to_owned()).collect()
    }
}

fn write(folder: &Path, port: u16) -> String {
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
         clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}], users: [{{name: u, user: {{}}}}]}}"
    );
    let path = folder.join("kubeconfig");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn answer(stream: TcpStream, script: &Mutex<Script>) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    let mut words = first.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let text = chosen(&mut script.lock().unwrap(), method, &target);
    reader.into_inner().write_all(text.as_bytes()).unwrap();
}

fn chosen(script: &mut Script, method: String, target: &str) -> String {
    let path = target.split('?').next().unwrap_or_default();
    let found = script.rules.iter().position(|rule| rule.method == method && rule.path == path);
    script.asked.push((method, target.to_owned()));
    match found {
        None => "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 19\r\n\r\n404 page not found\n".into(),
        Some(index) if script.rules[index].again => script.rules[index].answer.0.clone(),
        Some(index) => script.rules.remove(index).map(|rule| rule.answer.0).unwrap_or_default(),
    }
}
