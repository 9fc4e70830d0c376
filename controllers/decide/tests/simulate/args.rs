//! What the simulator is asked for on its command line.

const USAGE: &str = "simulate [--histories N] [--seconds T] [--seed S] [--threads N]   play histories, the first of this seed, no longer than that
simulate --replay SEED [--whole]                    one history as a transcript; --whole: not made shorter
simulate --mutants [--histories N]                  break each rule in turn: histories until it is noticed
simulate --linear                                   time of one decision at 18, 100, 256 and 1,000 releases";

/// What to do, and how much of it.
pub(crate) struct Args {
    /// What to do.
    pub(crate) work: Work,
    /// How many histories, at most.
    pub(crate) histories: u64,
    /// The first one's seed.
    pub(crate) seed: u64,
    /// On how many threads.
    pub(crate) threads: u64,
    /// For how many seconds, at most.
    pub(crate) seconds: u64,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Histories,
    Replay { shrinks: bool },
    Mutants,
    Linear,
}

impl Args {
    /// Reads them.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = Self { work: Work::Histories, histories: 20_000, seed: 1, threads: 1, seconds: u64::MAX };
        while let Some(word) = words.next() {
            let mut number = || {
                let text = words.next().unwrap_or_default().replace('_', "");
                text.parse::<u64>().map_err(|_| format!("{word} takes a number\n{USAGE}"))
            };
            match word.as_str() {
                "--histories" => args.histories = number()?,
                "--seed" => args.seed = number()?,
                "--seconds" => args.seconds = number()?,
                "--threads" => args.threads = number()?.max(1),
                "--replay" => (args.work, args.seed) = (Work::Replay { shrinks: true }, number()?),
                "--whole" => args.work = Work::Replay { shrinks: false },
                "--mutants" => (args.work, args.histories) = (Work::Mutants, args.histories.max(100_000)),
                "--linear" => args.work = Work::Linear,
                // What cargo's own harness would take.
                "--nocapture" | "--quiet" | "--test-threads=1" => {}
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(args)
    }
}
