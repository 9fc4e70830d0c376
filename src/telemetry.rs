//! Logs: one JSON schema on stderr, a span's fields on each of its lines; or text.

use std::{fmt, io::Write as _, sync::Arc};

use serde_json::{Value, json};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    EnvFilter, Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use crate::args::{LogFormat, LogLevel};

/// Our own crates; what others log at `debug` and below may hold requests and their content.
const OURS: [&str; 6] = ["aicr_operator", "aicr_drive", "aicr_mirror", "aicr_read", "aicr_decide", "aicr_webhooks"];

/// Installs the logs of this process.
pub(crate) fn install(level: LogLevel, format: LogFormat) {
    let registry = tracing_subscriber::registry().with(EnvFilter::new(filter(level)));
    let installed = match format {
        LogFormat::Json => registry.with(JsonLines::new(stderr)).try_init(),
        LogFormat::Text => registry.with(tracing_subscriber::fmt::layer().with_writer(std::io::stderr)).try_init(),
    };
    if let Err(error) = installed {
        eprintln!("logs cannot be installed: {error}");
    }
}

fn filter(level: LogLevel) -> String {
    let others = match level {
        LogLevel::Error => "error",
        LogLevel::Warn | LogLevel::Info | LogLevel::Debug | LogLevel::Trace => "warn",
    };
    let ours = OURS.map(|name| format!("{name}={}", level.as_str()));
    format!("{others},{}", ours.join(","))
}

fn stderr(line: &str) {
    // There is nobody left to tell that stderr is closed.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Writes each event as one JSON object.
struct JsonLines {
    sink: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Fields in the order in which they were given.
#[derive(Clone, Default)]
struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn set(&mut self, name: &'static str, value: Value) {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value));
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field.name(), json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), json!(value));
    }
}

impl JsonLines {
    fn new(sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { sink: Arc::new(sink) }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for JsonLines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut all = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(tracing_subscriber::registry::Scope::from_root) {
            if let Some(fields) = span.extensions().get::<Fields>() {
                for (name, value) in &fields.0 {
                    all.set(name, value.clone());
                }
            }
        }
        event.record(&mut all);
        (self.sink)(&line(event, all));
    }
}

/// `time level target message`, then the fields.
fn line(event: &Event<'_>, fields: Fields) -> String {
    let (message, rest): (Vec<_>, Vec<_>) = fields.0.into_iter().partition(|(name, _)| *name == "message");
    let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
    let metadata = event.metadata();
    let head = [
        ("time", json!(time)),
        ("level", json!(metadata.level().as_str().to_lowercase())),
        ("target", json!(metadata.target())),
        ("message", message.into_iter().next().map_or(json!(""), |(_, value)| value)),
    ];
    let pairs = head.into_iter().chain(rest).map(|(name, value)| format!("{}:{value}", json!(name)));
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_line_is_one_object_that_carries_the_fields_of_its_spans() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let layer = JsonLines::new(move |line| kept.lock().unwrap().push(line.to_owned()));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let _outer = tracing::info_span!("reconcile", controller = "rollout", runtime = "cluster").entered();
            let _inner = tracing::info_span!("step", release = "a").entered();
            tracing::info!(release = "gpu \"operator\"", steps = 3, "the rollout goes on");
        });
        let line = lines.lock().unwrap().remove(0);
        assert!(line.starts_with("{\"time\":\""), "{line}");
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["level"], "info");
        assert_eq!(value["message"], "the rollout goes on");
        assert_eq!(value["controller"], "rollout");
        assert_eq!(value["runtime"], "cluster");
        assert_eq!(value["release"], "gpu \"operator\"");
        assert_eq!(value["steps"], 3);
        assert_eq!(line.matches("\"release\"").count(), 1, "{line}");
    }

    #[test]
    fn others_never_log_below_warn() {
        let filter = filter(LogLevel::Trace);
        assert!(filter.starts_with("warn,") && filter.contains("aicr_drive=trace"), "{filter}");
    }
}
