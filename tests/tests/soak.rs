//! Rollouts one after the other against an engine that answers at once, and what the operator takes: `cargo xtask soak`.
#![allow(clippy::print_stdout, reason = "a report for people")]

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use aicr_crds::{RuntimeRollout, plan::Plan};
use aicr_lab::product::Product;
use aicr_tests::engine::audit::{Line, Mark};
use aicr_tests::engine::crashes::Side;
use aicr_tests::engine::figures::{covered, percentile, slope};
use aicr_tests::engine::plans::{self, Which};
use aicr_tests::engine::process::{Process, Taken};
use aicr_tests::engine::{ARGO_CD, BOUND, Engine, OPERATOR};
use jiff::Timestamp;

/// Releases of the rollout on which steps are measured.
const STEPS: usize = 18;
/// Rollouts of several steps each; those beyond have one step, so that ten thousand end on the same day.
const WHOLE: usize = 200;
/// Lines of the report.
const LINES: usize = 40;
/// KiB that memory may grow by in a thousand rollouts, over the second half of them: a page or two comes and goes.
const GROWTH: f64 = 1024.0;
/// What is compared with rest needs no longer look than this.
const MINUTE: Duration = Duration::from_mins(1);
/// Applications of others.
const FOREIGN: usize = 1000;

fn main() -> ExitCode {
    let (rollouts, idle) = (number("--rollouts", 200), number("--idle", 60));
    let product = Product::from_env().unwrap_or_else(|error| panic!("{error:?}"));
    let soak = Soak { engine: Engine::up(), product };
    if std::env::args().any(|word| word == "--crashes") {
        // What the engine floor leaves out: see there.
        soak.engine.crash_installs(Side::After);
        soak.engine.crash_upgrades(Side::Before);
    }
    // With none, what it takes at rest is all that is asked.
    let grown = if rollouts == 0 { 0.0 } else { soak.rolls(usize::try_from(rollouts).unwrap_or(usize::MAX)) };
    soak.idle(Duration::from_secs(idle));
    if grown > GROWTH {
        println!("memory grows: {grown:.0} KiB in a thousand rollouts, {GROWTH:.0} allowed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The number after this word on the command line.
fn number(word: &str, default: u64) -> u64 {
    let given = std::env::args().skip_while(|given| given != word).nth(1);
    given.and_then(|text| text.parse().ok()).unwrap_or(default)
}

struct Soak {
    engine: Engine,
    product: Product,
}

impl Soak {
    fn operator(&self) -> Process {
        let log = std::env::temp_dir().join("aicr-soak-operator.log");
        Process::start(&self.product, &self.engine.kubeconfig, &log)
    }

    /// Everything that rollouts take; by how many KiB memory grew in a thousand of them.
    fn rolls(&self, rollouts: usize) -> f64 {
        self.steps();
        let whole = rollouts.min(WHOLE);
        let between = [Which::A.plan(), Which::B.plan()];
        let grown = self.rollouts("an upgrade, a gate, an installation and a removal", &between, whole);
        let upgrades = [plans::row(1, "1.0.0"), plans::row(1, "1.1.0")];
        if rollouts > whole { self.rollouts("an upgrade", &upgrades, rollouts - whole) } else { grown }
    }

    /// Time and requests of each step, in rollouts of many releases.
    fn steps(&self) {
        let engine = &self.engine;
        engine.clear();
        let all = [plans::row(STEPS, "1.0.0"), plans::row(STEPS, "1.1.0"), plans::row(STEPS, "1.2.0")];
        engine.runtime(&all);
        let operator = self.operator();
        let (mut seconds, mut own, mark) = (Vec::new(), Vec::new(), engine.audit.mark());
        let mut requests = 0;
        for plan in &all {
            let before: u64 = operator.requests().values().sum();
            engine.pin(plan.digest());
            let (here, begun) = (engine.audit.mark(), Timestamp::now());
            engine.settle(plan, BOUND);
            let ended = Timestamp::now();
            seconds.push(ended.duration_since(begun).as_secs_f64());
            own.push(own_share(engine, here, (begun, ended)));
            requests += operator.requests().values().sum::<u64>() - before;
        }
        let (waits, writes) = (reactions(engine, mark, Next::Step), reactions(engine, mark, Next::Write));
        let steps = STEPS * all.len();
        println!(
            "steps: {steps} in rollouts of {STEPS}; from Argo CD's last write to the operator's next: p50 {:.1} ms, \
             p99 {:.1} ms, and to the next step's: p50 {:.1} ms, p99 {:.1} ms; {:.1} requests a step; a rollout {:.2} s, \
             {:.2} s of them outside the API server",
            percentile(&writes, 0.5),
            percentile(&writes, 0.99),
            percentile(&waits, 0.5),
            percentile(&waits, 0.99),
            ratio(requests, steps),
            percentile(&seconds, 0.5),
            percentile(&own, 0.5),
        );
    }

    /// Rollouts to and fro; by how many KiB memory grew in a thousand of them.
    fn rollouts(&self, what: &str, between: &[Plan; 2], count: usize) -> f64 {
        let engine = &self.engine;
        engine.clear();
        engine.runtime(between);
        let mut operator = self.operator();
        engine.settle(&between[0], BOUND);
        let (begun, mut readings) = (Instant::now(), Vec::new());
        for done in 1..=count {
            let target = &between[done % 2];
            engine.pin(target.digest());
            engine.settle(target, BOUND);
            engine.player.take();
            if done % (count / LINES).max(1) == 0 || done == count {
                assert!(operator.is_alive(), "the operator has ended");
                let taken = operator.taken();
                readings.push((done, taken));
                line(done, begun, &operator, taken);
            }
        }
        let second = &readings[readings.len() / 2..];
        let points: Vec<(f64, f64)> = second.iter().map(|(done, taken)| (float(*done), to_float(taken.rss))).collect();
        let grown = slope(&points) * 1000.0;
        println!("soak: {count} rollouts of {what}; memory grows {grown:.0} KiB in a thousand, over the second half");
        grown
    }

    /// What the operator takes with nothing to do; and with 1,000 Applications of others and all the rollouts it keeps.
    fn idle(&self, span: Duration) {
        let engine = &self.engine;
        engine.clear();
        engine.runtime(&[Which::A.plan(), Which::B.plan()]);
        {
            let operator = self.operator();
            engine.settle(&Which::A.plan(), BOUND);
            rest("at rest, 6 Applications", &operator, span);
        }
        self.peer();
        engine.foreign_applications(FOREIGN);
        engine.old_rollouts(50);
        let operator = self.operator();
        engine.until("the old rollouts are told of", BOUND, |sight| {
            let told = |rollout: &RuntimeRollout| rollout.status.as_ref().is_some_and(|status| status.phase.is_some());
            sight.rollouts().iter().all(|rollout| told(rollout)).then_some(())
        });
        rest("with 1,000 Applications of others and 50 old rollouts", &operator, span.min(MINUTE));
        drop(operator);
        self.peer();
    }

    /// What controller-runtime takes beside the same objects, with the same watches and nothing to do.
    fn peer(&self) {
        let Some(program) = std::env::var_os("AICR_PEER") else { return };
        let mut peer = Process::peer(Path::new(&program), &self.engine.kubeconfig);
        std::thread::sleep(MINUTE / 2);
        let before = peer.taken();
        std::thread::sleep(MINUTE / 2);
        assert!(peer.is_alive(), "the peer has ended");
        let after = peer.taken();
        let share = (after.cpu.saturating_sub(before.cpu)).as_secs_f64() / (MINUTE / 2).as_secs_f64() * 100.0;
        println!("  beside it controller-runtime, idle: {} KiB, {share:.2}% of a core", after.rss);
    }
}

/// What a reaction is measured to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Any write of the operator's.
    Write,
    /// Its next creation or apply of an Application.
    Step,
}

/// From each answer to Argo CD to the operator's next write, in milliseconds.
fn reactions(engine: &Engine, mark: Mark, next: Next) -> Vec<f64> {
    let ready = engine.audit.taken_since(mark, ARGO_CD);
    let ready = ready.iter().filter(|line| line.resource == "applications").map(|line| line.answered);
    let begins = |line: &&Line| line.resource == "applications" && line.body["spec"]["source"].is_object();
    let written = engine.audit.taken_since(mark, OPERATOR);
    let written: Vec<_> = written
        .iter()
        .filter(|line| next == Next::Write || begins(line))
        .filter(|line| line.resource != "leases")
        .map(|line| line.received)
        .collect();
    let after = |ready: Timestamp| written.iter().filter(|at| **at > ready).min().map(|at| at.duration_since(ready));
    ready.filter_map(after).map(|wait| wait.as_secs_f64() * 1000.0).filter(|wait| *wait < 1000.0).collect()
}

/// Seconds of this time in which the API server had nothing to answer to anybody.
fn own_share(engine: &Engine, mark: Mark, (begun, ended): (Timestamp, Timestamp)) -> f64 {
    let since = |at: Timestamp| at.duration_since(begun).as_secs_f64();
    let calls =
        engine.audit.calls_since(mark).into_iter().map(|(received, answered)| (since(received), since(answered)));
    let whole = since(ended);
    whole - covered(&calls.collect::<Vec<_>>(), 0.0, whole)
}

fn line(done: usize, begun: Instant, operator: &Process, taken: Taken) {
    let (requests, seconds) = (operator.requests(), begun.elapsed().as_secs_f64());
    let watches = requests.get("watch").copied().unwrap_or_default();
    let all: u64 = requests.values().sum();
    println!(
        "{done:>6} rollouts, {:.2} a second; {} KiB, {} sockets, {watches} watches begun; {:.0} requests and {:.0} ms of \
         processor a rollout",
        float(done) / seconds,
        taken.rss,
        taken.sockets,
        ratio(all, done),
        taken.cpu.as_secs_f64() * 1000.0 / float(done),
    );
}

/// What is taken over some time in which nothing happens.
fn rest(what: &str, operator: &Process, span: Duration) {
    let (before, asked) = (operator.taken(), operator.requests());
    std::thread::sleep(span);
    let (after, now) = (operator.taken(), operator.requests());
    let more: Vec<String> = now
        .iter()
        .map(|(verb, count)| (verb, count - asked.get(verb).copied().unwrap_or_default()))
        .filter(|(_, count)| *count > 0)
        .map(|(verb, count)| format!("{count} {verb}"))
        .collect();
    let share = (after.cpu.saturating_sub(before.cpu)).as_secs_f64() / span.as_secs_f64() * 100.0;
    println!(
        "{what}: {} KiB, {share:.2}% of a core, requests in {} s: {}",
        after.rss,
        span.as_secs(),
        if more.is_empty() { "none".to_owned() } else { more.join(", ") }
    );
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn float(number: usize) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "some millions")]
fn to_float(number: u64) -> f64 {
    number as f64
}

fn ratio(number: u64, of: usize) -> f64 {
    to_float(number) / float(of)
}
