//! Damaged files: bits, numbers, truncation and splices, by chance.

use std::fs::File;
use std::io::Read;

use anyhow::Result;

/// A file with a few changes of one kind, most of them where sizes and counts are: near its ends.
pub fn mutate_bytes(original: &[u8], chance: &mut MutationRandom) -> Vec<u8> {
    let mut bytes = original.to_vec();
    let changes = [1, 1, 1, 2, 4, 16][chance.next_below(6)];
    let kind = chance.next_below(6);
    for _ in 0..changes {
        let length = bytes.len().max(1);
        let at = match chance.next_below(3) {
            0 => chance.next_below(length.min(400)),
            1 => length - 1 - chance.next_below(length.min(9000)),
            _ => chance.next_below(length),
        };
        match kind {
            0 => overwrite_at(&mut bytes, at, |old| vec![old ^ 1 << chance.next_below(8)]),
            1 => overwrite_at(&mut bytes, at, |_| vec![chance.next() as u8]),
            2 => {
                let numbers = [0, 1, 1 << 31, 1 << 40, 1 << 63, u64::MAX, length as u64, chance.next()];
                let number = numbers[chance.next_below(numbers.len())];
                overwrite_at(&mut bytes, at & !7, |_| number.to_le_bytes().to_vec());
            }
            3 => {
                let numbers = [0, 1, 1 << 31, u32::MAX, 65_535, chance.next() as u32];
                let number = numbers[chance.next_below(numbers.len())];
                overwrite_at(&mut bytes, at & !3, |_| number.to_le_bytes().to_vec());
            }
            4 => bytes.truncate(at),
            _ => {
                let (from, most) = (chance.next_below(length), 1 + chance.next_below(4096));
                let piece = bytes.iter().skip(from).take(most).copied().collect();
                overwrite_at(&mut bytes, at, |_| piece);
            }
        }
    }
    bytes
}

fn overwrite_at(bytes: &mut [u8], at: usize, new: impl FnOnce(u8) -> Vec<u8>) {
    let Some(old) = bytes.get(at).copied() else { return };
    for (to, new) in bytes.iter_mut().skip(at).zip(new(old)) {
        *to = new;
    }
}

/// Chance, by xorshift: fast, and begun by the kernel's.
pub struct MutationRandom(u64);

impl MutationRandom {
    pub fn new() -> Result<Self> {
        let mut bytes = [0; 8];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(MutationRandom(u64::from_le_bytes(bytes) | 1))
    }

    /// The same chance each time.
    pub fn from_seed(seed: u64) -> Self {
        // Small seeds are alike in most of their bits, and zero would stay zero.
        let mut random = MutationRandom(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.next();
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn next_below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}
