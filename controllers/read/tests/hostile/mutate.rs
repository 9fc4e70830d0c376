//! Documents made worse, by a seed: the same seed is the same document.

/// Splitmix64: small, and good enough to be unfair.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below this one; 0 for 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound.max(1) as u64)).unwrap()
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = self.below(64).min(length - start);
        start..start + most
    }
}

/// What YAML, JSON, shells and logs make much of.
const WORDS: [&[u8]; 34] = [
    b"---\n",
    b"...\n",
    b"&a ",
    b"*a",
    b"<<: *a\n",
    b"!!binary ",
    b"!x ",
    b"[",
    b"]",
    b"{",
    b"}",
    b"- ",
    b": ",
    b"? ",
    b"|\n",
    b">-\n",
    b"\"",
    b"'",
    b"# ",
    b"\t",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xf0\x9f\x98\x80",
    b"null",
    b"~",
    b".inf",
    b"012",
    b"1e999",
    b"18446744073709551616",
    b"\\u0000",
    b"\\ud800",
    b"../",
    b"\r\n",
];

/// One to eight changes of a document; other documents are quarried for pieces.
pub(crate) fn worse(chance: &mut Chance, good: &[u8], others: &[&[u8]]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=chance.below(8) {
        let at = chance.range(bytes.len());
        match chance.below(8) {
            0 => {
                if let Some(byte) = bytes.get_mut(at.start) {
                    *byte ^= 1 << chance.below(8);
                }
            }
            1 => insert(&mut bytes, at.start, WORDS[chance.below(WORDS.len())]),
            2 => drop(bytes.drain(at)),
            3 => {
                let piece = bytes[at.clone()].to_vec();
                let again = piece.repeat(1 + chance.below(40));
                insert(&mut bytes, at.end, &again);
            }
            4 => bytes.truncate(at.start),
            5 => {
                let word = WORDS[chance.below(WORDS.len())].repeat(1 + chance.below(400));
                insert(&mut bytes, at.start, &word);
            }
            6 => {
                let other = others[chance.below(others.len())];
                let piece = chance.range(other.len());
                insert(&mut bytes, at.start, &other[piece]);
            }
            _ => line(chance, &mut bytes),
        }
    }
    bytes
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}

/// One whole line elsewhere: keys given twice, children under other parents.
fn line(chance: &mut Chance, bytes: &mut Vec<u8>) {
    let lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return;
    }
    let mut order: Vec<usize> = (0..lines.len()).collect();
    let (from, to) = (chance.below(lines.len()), chance.below(lines.len()));
    if chance.below(2) == 0 {
        order.swap(from, to);
    } else {
        order.insert(to, from);
    }
    *bytes = order.into_iter().flat_map(|index| lines[index].clone()).collect();
}
