//! Traps that each reader of a document meets: cut, doubled, deep, endless, huge, or something else altogether.

use rstest::rstest;

use super::readers::{ALL, Outcome};

/// What reading may take at once, whatever comes: the largest document, parsed.
const MEMORY: u64 = 24 << 20;

fn measured(read: fn(&[u8]) -> Outcome, bytes: &[u8]) -> (Outcome, u64) {
    let mut outcome = Outcome::Taken;
    let used = allocation_counter::measure(|| outcome = read(bytes));
    (outcome, used.bytes_max)
}

fn bomb() -> String {
    let row = |level| vec![format!("*a{level}"); 9].join(", ");
    let levels: Vec<String> = (1..20).map(|level| format!("a{level}: &a{level} [{}]\n", row(level - 1))).collect();
    format!("a0: &a0 [x, x, x, x, x, x, x, x, x]\n{}", levels.concat())
}

#[test]
fn each_reader_takes_its_own_document_and_no_other() {
    for reader in &ALL {
        for other in &ALL {
            let outcome = (reader.read)(other.good.as_bytes());
            // Values and the metadata of a chart are any map.
            let any_map = matches!(reader.name, "values" | "chart") && reader.name != other.name;
            let expected = reader.name == other.name;
            assert!(
                any_map || (outcome == Outcome::Taken) == expected,
                "{} reads {}: {outcome:?}",
                reader.name,
                other.name
            );
        }
    }
}

#[rstest]
#[case::deep_flow("a: ".to_owned() + &"[".repeat(100_000))]
#[case::deep_flow_closed("a: ".to_owned() + &"{b: ".repeat(5_000) + &"}".repeat(5_000))]
#[case::deep_block((0..2_000).map(|level| " ".repeat(level % 500) + "a:\n").collect())]
#[case::deep_sequence("a:\n".to_owned() + &"- ".repeat(30_000) + "b\n")]
#[case::aliases_without_end(bomb())]
#[case::alias_of_itself("a: &a [*a, *a]\n".to_owned())]
#[case::unknown_alias("a: *b\n".to_owned())]
#[case::tab("a:\n\tb: 1\n".to_owned())]
#[case::control("a: \u{0}\u{1}\n".to_owned())]
#[case::scalar("exit status 3".to_owned())]
#[case::list("- a\n- b\n".to_owned())]
#[case::page("<!DOCTYPE html><html></html>".to_owned())]
#[case::key_twice("apiVersion: a\napiVersion: a\n".to_owned())]
fn a_trap_is_refused_by_every_reader(#[case] trap: String) {
    for reader in &ALL {
        for text in [trap.clone(), format!("{}{trap}", reader.good)] {
            let (outcome, memory) = measured(reader.read, text.as_bytes());
            assert_ne!(outcome, Outcome::Taken, "{}: {}", reader.name, &text[text.len().saturating_sub(60)..]);
            assert!(memory < MEMORY, "{}: {memory} bytes at once", reader.name);
        }
    }
}

#[test]
fn an_empty_a_cut_and_a_doubled_document_are_refused() {
    for reader in &ALL {
        let good = reader.good.as_bytes();
        if reader.name != "values" {
            for blank in [b"".as_slice(), b"\n\n", b"---\n", b"# only a comment\n"] {
                assert_eq!((reader.read)(blank), Outcome::Damaged, "{}", reader.name);
            }
        }
        let joint = if good.starts_with(b"{") { b"\n".as_slice() } else { b"---\n" };
        assert_eq!((reader.read)(&[good, joint, good].concat()), Outcome::Damaged, "{} twice", reader.name);
        assert_ne!((reader.read)(&[good, b"\xff"].concat()), Outcome::Taken, "{} is no text", reader.name);
    }
    // Cut at any byte within the last third; what is cut at a line's end may be whole again.
    for reader in ALL.iter().filter(|reader| matches!(reader.name, "recipe" | "report")) {
        let good = reader.good.trim_end().as_bytes();
        for end in 1..good.len() - 8 {
            assert_ne!((reader.read)(&good[..end]), Outcome::Taken, "{} cut at {end}", reader.name);
        }
    }
}

#[test]
fn a_hundred_mebibytes_are_refused_before_they_are_read() {
    for reader in &ALL {
        for filling in [b' ', b'#', b'a', b'\n', b'-'] {
            let mut bytes = reader.good.as_bytes().to_vec();
            bytes.resize(100 << 20, filling);
            let (outcome, memory) = measured(reader.read, &bytes);
            // The metadata of a local chart is within a bundle that is bounded already; the copy is the test's own.
            let own = if reader.name == "chart" { bytes.len() as u64 } else { 0 };
            assert_eq!(outcome, Outcome::TooLarge, "{}", reader.name);
            assert!(memory - own < 1 << 20, "{}: {memory} bytes at once", reader.name);
        }
    }
}

/// The largest documents that are parsed at all.
#[test]
fn the_largest_document_costs_what_it_may() {
    for reader in ALL.iter().filter(|reader| reader.name != "index" && reader.name != "values") {
        for filler in ["x, ", "[], ", "{}, ", "\"\", "] {
            let head = reader.good.trim_end();
            let filling = filler.repeat((1 << 20) / filler.len() - 4000);
            let text = match head.strip_suffix('}') {
                Some(open) if head.starts_with('{') => format!("{open}, \"filler\": [{filling}1]}}"),
                Some(_) | None => format!("{head}\nfiller: [{filling}1]\n"),
            };
            assert!(text.len() < 1 << 20 && text.len() > 900_000, "{}", text.len());
            let (outcome, memory) = measured(reader.read, text.as_bytes());
            assert!(memory < 64 << 20, "{} ({outcome:?}, {filler}): {memory} bytes at once", reader.name);
        }
    }
}

#[rstest]
#[case("snapshot", "kind: Snapshot", "kind: RecipeResult")]
#[case("snapshot", "aicr.run/v1", "aicr.run/v1alpha2")]
#[case("snapshot", "aicr.run/v1", "aicr.run/v9")]
#[case("recipe", "kind: RecipeResult", "kind: Snapshot")]
#[case("recipe", "aicr.run/v1", "aicr.nvidia.com/v1alpha1")]
#[case("recipe", "aicr.run/v1", "aicr.run/v1beta1")]
#[case("index", "apiVersion: v1", "apiVersion: v2")]
fn another_kind_or_version_is_unsupported(#[case] name: &str, #[case] from: &str, #[case] to: &str) {
    let reader = ALL.iter().find(|reader| reader.name == name).unwrap();
    let text = reader.good.replacen(from, to, 1);
    assert_ne!(text, reader.good);
    assert_eq!((reader.read)(text.as_bytes()), Outcome::Unsupported);
}
