//! Random numbers and single-cycle orders that are the same for the same seed.

/// Marsaglia's xorshift64 (J. Stat. Software 8:14, 2003), triple (13, 7, 17): plenty for an order that
/// a prefetcher cannot guess, and nothing else is asked of it.
pub(crate) struct Xorshift64(u64);

impl Xorshift64 {
    pub(crate) fn new(seed: u64) -> Self {
        // Zero is the one state that it never leaves; the constant is the golden ratio in 64 bits.
        Xorshift64(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).max(1))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, by Lemire's multiplication; its bias is below 2^-32 for all uses here.
    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}

/// A permutation that is one single cycle (Sattolo 1986): following it visits every index once
/// before the first one comes again.
pub(crate) fn single_cycle_order(length: usize, seed: u64) -> Vec<u32> {
    let mut random = Xorshift64::new(seed);
    let mut order: Vec<u32> = (0..length as u32).collect();
    for last in (1..length).rev() {
        order.swap(last, random.below(last));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_visits_every_place_once() {
        for length in [1, 2, 3, 1000] {
            let next = single_cycle_order(length, 7);
            let mut seen = vec![false; length];
            let mut position = 0;
            for _ in 0..length {
                assert!(!seen[position]);
                seen[position] = true;
                position = next[position] as usize;
            }
            assert_eq!(position, 0);
        }
        assert_eq!(single_cycle_order(100, 1), single_cycle_order(100, 1));
        assert_ne!(single_cycle_order(100, 1), single_cycle_order(100, 2));
    }
}
