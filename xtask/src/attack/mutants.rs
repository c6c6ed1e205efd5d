//! Damaged files: bits, numbers, truncation and splices, by chance.

use std::fs::File;
use std::io::Read;

use anyhow::Result;

/// A file with a few changes of one kind, most of them where sizes and counts are: near its ends.
pub fn mutated(original: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = original.to_vec();
    let changes = [1, 1, 1, 2, 4, 16][chance.below(6)];
    let kind = chance.below(6);
    for _ in 0..changes {
        let length = bytes.len().max(1);
        let at = match chance.below(3) {
            0 => chance.below(length.min(400)),
            1 => length - 1 - chance.below(length.min(9000)),
            _ => chance.below(length),
        };
        match kind {
            0 => overwrite(&mut bytes, at, |old| vec![old ^ 1 << chance.below(8)]),
            1 => overwrite(&mut bytes, at, |_| vec![chance.next() as u8]),
            2 => {
                let numbers = [0, 1, 1 << 31, 1 << 40, 1 << 63, u64::MAX, length as u64, chance.next()];
                let number = numbers[chance.below(numbers.len())];
                overwrite(&mut bytes, at & !7, |_| number.to_le_bytes().to_vec());
            }
            3 => {
                let numbers = [0, 1, 1 << 31, u32::MAX, 65_535, chance.next() as u32];
                let number = numbers[chance.below(numbers.len())];
                overwrite(&mut bytes, at & !3, |_| number.to_le_bytes().to_vec());
            }
            4 => bytes.truncate(at),
            _ => {
                let (from, most) = (chance.below(length), 1 + chance.below(4096));
                let piece = bytes.iter().skip(from).take(most).copied().collect();
                overwrite(&mut bytes, at, |_| piece);
            }
        }
    }
    bytes
}

fn overwrite(bytes: &mut [u8], at: usize, new: impl FnOnce(u8) -> Vec<u8>) {
    let Some(old) = bytes.get(at).copied() else { return };
    for (to, new) in bytes.iter_mut().skip(at).zip(new(old)) {
        *to = new;
    }
}

/// Chance, by xorshift: fast, and begun by the kernel's.
pub struct Chance(u64);

impl Chance {
    pub fn new() -> Result<Self> {
        let mut bytes = [0; 8];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Chance(u64::from_le_bytes(bytes) | 1))
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}
