//! Where the runtime is, on one page for the person on call, and as a document; pure.

mod advice;
mod conditions;
pub(crate) mod logins;
mod plans;
mod rollout;
mod seen;
mod todo;
mod waits;

use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) use self::seen::Seen;
use self::{todo::Todo, waits::Wait};
use crate::{
    page::Page,
    text::{Tone, count},
};

/// Who is to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nobody: Ready, and nothing is asked for.
    Ready,
    /// The operator, or what it waits for.
    Working,
    /// A person.
    NeedsPerson,
}

impl State {
    /// What `status --exit-code` ends with.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Ready => 0,
            Self::Working => 3,
            Self::NeedsPerson => 4,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Working => "Working",
            Self::NeedsPerson => "NeedsPerson",
        }
    }
}

/// Who is to act, by what there is to do and the Ready condition.
pub(crate) fn state(seen: &Seen, namespace: &str, now: Timestamp) -> State {
    let ready = seen.runtime.as_ref().is_some_and(|runtime| runtime.is("Ready"));
    match (todo::all(seen, namespace, now).is_empty(), ready) {
        (false, _) => State::NeedsPerson,
        (true, true) => State::Ready,
        (true, false) => State::Working,
    }
}

/// Everything that `status` prints.
pub(crate) fn render(seen: &Seen, namespace: &str, now: Timestamp) -> String {
    let mut page = Page::default();
    match &seen.runtime {
        None => page.field("Runtime", Tone::Waiting, "none: there is no ClusterRuntime named cluster"),
        Some(runtime) => {
            plans::write(&mut page, runtime, now);
            conditions::write(&mut page, runtime, namespace, now);
        }
    }
    rollout::write(&mut page, seen, now);
    warn(&mut page, &seen.warnings);
    next(&mut page, &todo::all(seen, namespace, now));
    page.finish()
}

/// What `status -o json` prints: the objects as they are, who is to act, and what the page says beyond them.
pub(crate) fn document(seen: &Seen, namespace: &str, now: Timestamp) -> Value {
    let waits: Vec<_> = seen.unfinished().map(|rollout| Wait::of(rollout, seen, now).document(rollout)).collect();
    let todo: Vec<_> = todo::all(seen, namespace, now).iter().map(Todo::document).collect();
    json!({
        "state": state(seen, namespace, now).word(),
        "runtime": seen.stored,
        "rollouts": seen.unfinished().collect::<Vec<_>>(),
        "waits": waits,
        "warnings": seen.warnings,
        "toDo": todo,
    })
}

/// What nobody has to act on, and somebody would want to know.
fn warn(page: &mut Page, warnings: &[String]) {
    if warnings.is_empty() {
        return;
    }
    page.heading("Warnings");
    for warning in warnings {
        page.text(2, "- ", Tone::Waiting, warning);
    }
}

fn next(page: &mut Page, all: &[Todo]) {
    if all.is_empty() {
        page.heading("To do: nothing");
        return;
    }
    page.heading(&format!("To do ({})", count(all.len(), "thing")));
    for (index, todo) in all.iter().enumerate() {
        page.text(2, &format!("{}. ", index + 1), Tone::Waiting, &todo.why);
        for command in &todo.commands {
            page.text(5, "", Tone::Plain, command);
        }
    }
}

#[cfg(test)]
mod tests;
