//! What chance does to bytes and to texts.

use std::fs::File;
use std::io::{self, Read};

/// Bytes with a few changes of one kind, most of them where sizes and counts are: near its ends.
#[must_use]
pub fn mutate_bytes(original: &[u8], random: &mut MutationRandom) -> Vec<u8> {
    let mut bytes = original.to_vec();
    let changes = [1, 1, 1, 2, 4, 16][random.next_below(6)];
    let kind = random.next_below(6);
    for _ in 0..changes {
        let length = bytes.len().max(1);
        let at = match random.next_below(3) {
            0 => random.next_below(length.min(400)),
            1 => length - 1 - random.next_below(length.min(9000)),
            _ => random.next_below(length),
        };
        match kind {
            0 => overwrite_at(&mut bytes, at, |old| vec![old ^ 1 << random.next_below(8)]),
            1 => overwrite_at(&mut bytes, at, |_| vec![random.next() as u8]),
            2 => {
                let numbers = [0, 1, 1 << 31, 1 << 40, 1 << 63, u64::MAX, length as u64, random.next()];
                let number = numbers[random.next_below(numbers.len())];
                overwrite_at(&mut bytes, at & !7, |_| number.to_le_bytes().to_vec());
            }
            3 => {
                let numbers = [0, 1, 1 << 31, u32::MAX, 65_535, random.next() as u32];
                let number = numbers[random.next_below(numbers.len())];
                overwrite_at(&mut bytes, at & !3, |_| number.to_le_bytes().to_vec());
            }
            4 => bytes.truncate(at),
            _ => {
                let (from, most) = (random.next_below(length), 1 + random.next_below(4096));
                let piece = bytes.iter().skip(from).take(most).copied().collect();
                overwrite_at(&mut bytes, at, |_| piece);
            }
        }
    }
    bytes
}

/// Bytes as they may be damaged, or, of a text, a value in it.
#[must_use]
pub fn damage_bytes(bytes: &[u8], random: &mut MutationRandom) -> Vec<u8> {
    const VALUES: [&str; 12] = [
        "null",
        "-1",
        "1e999",
        "[]",
        "{}",
        "\"\"",
        "18446744073709551616",
        "true",
        "NaN",
        "\u{1b}[2J",
        "\u{202e}",
        "\u{9b}5m",
    ];
    let text = std::str::from_utf8(bytes).ok().filter(|_| random.next_below(2) == 0);
    let Some(text) = text else { return mutate_bytes(bytes, random) };
    // A number or a word of it becomes another value.
    let is_value = |letter: char| letter.is_ascii_alphanumeric() || ".-+".contains(letter);
    let starts: Vec<usize> =
        text.char_indices().filter(|(_, letter)| is_value(*letter)).map(|(at, _)| at).collect();
    let Some(at) = starts.get(random.next_below(starts.len())) else { return mutate_bytes(bytes, random) };
    let (before, after) = text.split_at(*at);
    let before = before.trim_end_matches(is_value);
    let after = after.trim_start_matches(is_value);
    format!("{before}{}{after}", VALUES[random.next_below(VALUES.len())]).into_bytes()
}

fn overwrite_at(bytes: &mut [u8], at: usize, new: impl FnOnce(u8) -> Vec<u8>) {
    let Some(old) = bytes.get(at).copied() else { return };
    for (to, new) in bytes.iter_mut().skip(at).zip(new(old)) {
        *to = new;
    }
}

/// Chance, by xorshift: fast, and the same for the same seed.
#[derive(Debug, Clone)]
pub struct MutationRandom(u64);

impl MutationRandom {
    /// Begun by the kernel's random.
    ///
    /// # Errors
    /// `/dev/urandom` cannot be read.
    pub fn new() -> io::Result<Self> {
        let mut bytes = [0; 8];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(MutationRandom(u64::from_le_bytes(bytes) | 1))
    }

    /// The same chance each time.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        // Small seeds are alike in most of their bits, and zero would stay zero.
        let mut random = MutationRandom(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.next();
        random
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from 0 to below `end`; 0 where that is 0.
    pub fn next_below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_damages_the_same_way_each_time_and_mostly_damages() {
        let text = b"fio-3.36 {\"jobs\": [1, 2.5]}".as_slice();
        let damage_often = |seed| {
            let mut random = MutationRandom::from_seed(seed);
            (0..200).map(|_| damage_bytes(text, &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(damage_often(7), damage_often(7));
        assert_ne!(damage_often(7), damage_often(8));
        let same = damage_often(7).iter().filter(|bytes| bytes.as_slice() == text).count();
        assert!(same < 20, "{same} of 200 are as they were");
    }

    #[test]
    fn nothing_is_too_short_to_damage() {
        let mut random = MutationRandom::from_seed(1);
        for length in 0..9 {
            for _ in 0..200 {
                let _ = damage_bytes(&vec![b'x'; length], &mut random);
            }
        }
    }
}
