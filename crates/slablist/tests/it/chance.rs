//! The fuzz targets' operations, of chance: some hundred sequences in each test run, and any number by hand:
//! `SLABLIST_SEQUENCES=1000000 cargo test --release -p slablist --test it chance`. What fails names its seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{fuzz, random_numbers, scale_for_miri};

fn run_random_sequences(work: fn(&[u8]) -> Option<()>) {
    let wanted = std::env::var("SLABLIST_SEQUENCES").ok().and_then(|count| count.parse().ok());
    let seed = std::env::var("SLABLIST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(2012);
    for seed in seed..seed + wanted.unwrap_or(scale_for_miri(100) as u64) {
        let length = scale_for_miri(200 + (seed % 7) as usize * 500);
        let bytes: Vec<u8> = random_numbers(seed).map(|word| word as u8).take(length).collect();
        let done = catch_unwind(AssertUnwindSafe(|| work(&bytes)));
        assert!(done.is_ok(), "again with SLABLIST_SEED={seed} SLABLIST_SEQUENCES=1");
    }
}

#[test]
fn sequences_of_chance_on_a_set() {
    run_random_sequences(fuzz::fuzz_set);
}

#[test]
fn sequences_of_chance_on_a_list() {
    run_random_sequences(fuzz::fuzz_list);
}
