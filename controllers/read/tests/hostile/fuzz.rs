//! Thousands of documents and archives made worse by a seed: no panic, and memory stays bounded.

use std::collections::BTreeMap;

use super::{
    archives,
    mutate::{Chance, worse},
    readers::{ALL, Outcome, last_words},
};

/// Documents a reader gets; each has a few kilobytes.
const CASES: usize = 4_000;
/// Archives and bundles a reader gets; each costs some ten times a document.
const ARCHIVES: usize = 1_500;
/// What reading a few kilobytes may take at once.
const MEMORY: u64 = 16 << 20;

#[test]
fn worse_documents_never_panic_nor_take_much_memory() {
    let corpus: Vec<&[u8]> = ALL.iter().map(|reader| reader.good.as_bytes()).collect();
    for (number, reader) in ALL.iter().enumerate() {
        let mut chance = Chance(number as u64);
        let mut seen: BTreeMap<Outcome, usize> = BTreeMap::new();
        for case in 0..CASES {
            let bytes = worse(&mut chance, reader.good.as_bytes(), &corpus);
            let mut outcome = Outcome::Taken;
            let used = allocation_counter::measure(|| outcome = (reader.read)(&bytes));
            assert!(used.bytes_max < MEMORY, "{} case {case}: {} bytes at once", reader.name, used.bytes_max);
            *seen.entry(outcome).or_default() += 1;
        }
        // A corpus that is always or never taken tries nothing.
        let taken = seen.get(&Outcome::Taken).copied().unwrap_or_default();
        assert!(taken > 20 && taken < CASES - 20, "{}: {seen:?}", reader.name);
    }
}

#[test]
fn worse_logs_never_panic_and_stay_short() {
    let log = include_bytes!("corpus/log.txt");
    let mut chance = Chance(77);
    for _ in 0..CASES {
        last_words(&worse(&mut chance, log, &[log]));
    }
}

#[test]
fn worse_bundles_never_panic_nor_take_much_memory() {
    let good = archives::bundle();
    let names: Vec<&String> = good.keys().collect();
    let pieces: Vec<&[u8]> = good.values().map(Vec::as_slice).collect();
    let mut chance = Chance(4711);
    let mut taken = 0;
    for case in 0..ARCHIVES {
        let mut files = good.clone();
        let name = names[chance.below(names.len())];
        let bytes = worse(&mut chance, &good[name], &pieces);
        files.insert(name.clone(), bytes);
        if chance.below(4) == 0 {
            files.insert(
                format!("002-tuning/{}", ["Chart.yaml", "values.yaml", "upstream.env"][chance.below(3)]),
                vec![],
            );
        }
        let files = archives::summed(files);
        let used = allocation_counter::measure(|| {
            taken += usize::from(aicr_read::bundle::read_files(&files).is_ok());
        });
        assert!(used.bytes_max < MEMORY, "case {case} ({name}): {} bytes at once", used.bytes_max);
    }
    assert!(taken > 20 && taken < ARCHIVES - 20, "{taken} taken");
}

#[test]
fn worse_archives_never_panic_nor_take_much_memory() {
    let tar = archives::tar(&archives::bundle());
    let chart = archives::tar(&archives::chart());
    let mut chance = Chance(99);
    for case in 0..ARCHIVES {
        let stream = if case % 2 == 0 { &tar } else { &chart };
        // Most of a tar archive is padding: changes go where the headers are as often as anywhere.
        let mut bytes = worse(&mut chance, stream, &[&tar, &chart]);
        let header = chance.below(bytes.len() / 512 + 1) * 512 + chance.below(512);
        if let Some(byte) = bytes.get_mut(header) {
            *byte = b"0123456789./LKxg\0\xff"[chance.below(18)];
        }
        let packed = archives::gzip(&bytes);
        let used = allocation_counter::measure(|| {
            let _ = aicr_read::bundle::read(&packed);
            let _ = aicr_read::chart::read(&packed);
            let _ = aicr_read::chart::default_values(&packed);
        });
        assert!(used.bytes_max < MEMORY, "case {case}: {} bytes at once", used.bytes_max);
    }
}
