//! What it costs to read the facts of this machine and its documents, and how long they are.
//!
//! `cargo bench -p perflab-observe --bench facts [-- ROUNDS]`

use std::time::{Duration, Instant};

use perflab_observe::{ObserveError, Root, collect_fact_documents, collect_facts};

fn main() -> Result<(), ObserveError> {
    let rounds = std::env::args().filter_map(|word| word.parse::<usize>().ok()).next().unwrap_or(50).max(1);
    let root = Root::host();
    let (mut facts, mut documents) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    for _ in 0..rounds {
        let start = Instant::now();
        std::hint::black_box(collect_facts(&root, None)?);
        facts.push(start.elapsed());
        let start = Instant::now();
        std::hint::black_box(collect_fact_documents(&root, None)?);
        documents.push(start.elapsed());
    }
    print_times(&format!("{} facts", collect_facts(&root, None)?.iter().count()), facts);
    print_times("documents", documents);
    for one in collect_fact_documents(&root, None)? {
        println!(
            "{}: {} bytes in {} lines from {}",
            one.name,
            one.text.len(),
            one.text.lines().count(),
            one.source
        );
    }
    Ok(())
}

fn print_times(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    let (first, middle, last) = (at(0), at(times.len() / 2), at(times.len() - 1));
    println!(
        "{what}: least, median and most of {} rounds: {first:.1?}, {middle:.1?}, {last:.1?}",
        times.len()
    );
}
