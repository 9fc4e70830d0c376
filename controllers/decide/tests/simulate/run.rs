//! Plays many histories, one again, or each mutant until somebody notices.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    args::Args,
    history::{History, Starts},
    mutants::Mutant,
    promises::Broken,
};

/// How many broken histories are shown.
const SHOWN: usize = 5;

/// Histories that a thread takes at once.
const BATCH: u64 = 16_384;

/// What was counted over many histories.
#[derive(Default)]
struct Count {
    histories: AtomicU64,
    events: AtomicU64,
    nanoseconds: AtomicU64,
    broken: Mutex<Vec<(History, Broken)>>,
}

#[allow(clippy::disallowed_methods, reason = "the simulator tells how fast it is; nothing depends on it")]
fn clock() -> Instant {
    Instant::now()
}

/// Nanoseconds that this thread has had a core, 0 where the kernel does not say: others run on this machine too.
fn on_core() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0)
}

/// Plays them, and says what broke; whether nothing did.
pub(crate) fn histories(args: &Args) -> bool {
    let starts = Starts::new();
    let (count, next) = (Count::default(), AtomicU64::new(0));
    let begun = clock();
    thread::scope(|scope| {
        for _ in 0..args.threads {
            scope.spawn(|| {
                let since = on_core();
                let is_time = || begun.elapsed().as_secs() < args.seconds;
                while is_time() && count.broken.lock().is_ok_and(|broken| broken.len() < SHOWN) {
                    let number = next.fetch_add(BATCH, Ordering::Relaxed);
                    if number >= args.histories {
                        break;
                    }
                    for seed in seeds(&starts, args.seed + number, BATCH.min(args.histories - number)) {
                        plays(&starts, seed, &count);
                    }
                }
                count.nanoseconds.fetch_add(on_core().saturating_sub(since), Ordering::Relaxed);
            });
        }
    });
    let took = begun.elapsed();
    let core = Duration::from_nanos(count.nanoseconds.into_inner());
    let (histories, events) = (count.histories.into_inner(), count.events.into_inner());
    println!(
        "{histories} histories, {events} events, {:.1} s on {} threads: {} histories/s; {:.1} s of a core: {} histories/s",
        took.as_secs_f64(),
        args.threads,
        per_second(histories, took),
        core.as_secs_f64(),
        per_second(histories, core)
    );
    let broken = count.broken.into_inner().unwrap();
    for (history, broken) in &broken {
        println!("broken, seed {}: {broken}", history.seed);
    }
    match broken.first() {
        None => println!("no promise was broken"),
        Some((history, broken)) => shortened(&starts, history, broken),
    }
    broken.is_empty()
}

/// So many seeds from this one on, those that start at the same place together: what it refers to is still in the cache then.
fn seeds(starts: &Starts, first: u64, count: u64) -> Vec<u64> {
    let mut seeds: Vec<u64> = (first..first + count).collect();
    seeds.sort_by_key(|seed| starts.place(*seed));
    seeds
}

fn plays(starts: &Starts, seed: u64, count: &Count) {
    let (outcome, history) = starts.play(seed, Mutant::None);
    count.histories.fetch_add(1, Ordering::Relaxed);
    count.events.fetch_add(u64::try_from(outcome.events).unwrap_or(0), Ordering::Relaxed);
    if let Some(broken) = outcome.broken
        && let Ok(mut all) = count.broken.lock()
    {
        all.push((history, broken));
    }
}

fn per_second(histories: u64, took: Duration) -> u128 {
    u128::from(histories) * 1_000_000 / took.as_micros().max(1)
}

fn shortened(starts: &Starts, history: &History, broken: &Broken) {
    let short = starts.shrink(history, broken, Mutant::None);
    println!("\n{} of its {} events are enough:", short.events.len(), history.events.len());
    shows(starts, &short);
}

fn shows(starts: &Starts, history: &History) {
    let outcome = starts.replay(history, Mutant::None, true);
    println!("{}", outcome.transcript.join("\n"));
    match outcome.broken {
        Some(broken) => println!("{broken}"),
        None => println!("no promise was broken"),
    }
}

/// One history as a transcript; a broken one made shorter first.
pub(crate) fn replay(seed: u64, shrinks: bool) -> bool {
    let starts = Starts::new();
    let (outcome, history) = starts.play(seed, Mutant::None);
    match &outcome.broken {
        Some(broken) if shrinks => shortened(&starts, &history, broken),
        Some(_) | None => shows(&starts, &history),
    }
    outcome.broken.is_none()
}

/// Breaks each rule in turn; whether each was noticed.
pub(crate) fn mutants(args: &Args) -> bool {
    let starts = Starts::new();
    let mut unnoticed = 0;
    println!("{:<36} {:>10}  promise", "broken rule", "histories");
    for mutant in Mutant::all() {
        let found = (1..=args.histories).find_map(|number| {
            let (outcome, _) = starts.play(args.seed + number, mutant);
            Some((number, outcome.broken?))
        });
        let name = mutant.name();
        if let Some((number, broken)) = found {
            println!("{name:<36} {number:>10}  {}: {}", broken.promise, broken.how);
        } else {
            unnoticed += 1;
            println!("{name:<36} {:>10}", "never");
        }
    }
    Mutant::None.set();
    println!("{unnoticed} of {} were not noticed within {} histories", Mutant::all().len(), args.histories);
    unnoticed == 0
}
