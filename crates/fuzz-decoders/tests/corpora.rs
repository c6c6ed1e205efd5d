//! Every decoder with its corpus, which the fuzzer grew: what once broke one breaks none any more, and what the decoder
//! can be made to do by foreign bytes is done by every `cargo test`.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use damage::{MutationRandom, damage_bytes};
use fuzz_decoders::{DECODERS, Decoder};

/// No input of a corpus takes longer, on a busy machine and without optimisation.
const SLOWEST: Duration = Duration::from_secs(10);

/// What all corpora may weigh in the repository.
const MOST_BYTES: u64 = 5 << 20;

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

fn list_inputs(name: &str) -> Vec<PathBuf> {
    let folder = corpora().join(name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a folder that can be read").path()).collect();
    inputs.sort();
    inputs
}

#[test]
fn every_input_of_every_corpus_is_decoded_or_refused() {
    for decoder in DECODERS {
        let inputs = list_inputs(decoder.name);
        assert!(!inputs.is_empty(), "{} has no corpus", decoder.name);
        for input in inputs {
            let (bytes, begun) = (fs::read(&input).unwrap(), Instant::now());
            let decoded = std::panic::catch_unwind(|| (decoder.decode)(&bytes));
            assert!(decoded.is_ok(), "{} panics on {}", decoder.name, input.display());
            assert!(begun.elapsed() < SLOWEST, "{} takes {:?}", input.display(), begun.elapsed());
        }
    }
}

/// How long each decoder is given damaged inputs: in CI, and by whoever runs the tests by hand.
fn fuzzing_time() -> Duration {
    Duration::from_secs(if std::env::var_os("CI").is_some() { 10 } else { 1 })
}

/// Decodes what chance makes of a corpus until the time is up; how many inputs that were, and the seed of that chance.
///
/// A corpus is its own seed: two runs of one commit try the same inputs, and a corpus that grew is damaged in another way.
/// What no seed of a commit has tried, `cargo xtask long fuzz` does.
fn decode_damaged_inputs(decoder: &Decoder) -> (usize, u64) {
    let inputs: Vec<Vec<u8>> = list_inputs(decoder.name)
        .iter()
        .map(|path| fs::read(path).expect("an input of the corpus"))
        .collect();
    let mut hasher = DefaultHasher::new();
    inputs.hash(&mut hasher);
    let seed = hasher.finish();
    let (mut random, begun, mut count) = (MutationRandom::from_seed(seed), Instant::now(), 0);
    while begun.elapsed() < fuzzing_time() {
        let bytes = damage_bytes(&inputs[random.next_below(inputs.len())], &mut random);
        let started = Instant::now();
        let decoded = std::panic::catch_unwind(|| (decoder.decode)(&bytes));
        let took = started.elapsed();
        if decoded.is_err() || took > SLOWEST {
            let kept = std::env::temp_dir().join(format!("{}-{seed}-{count}", decoder.name));
            fs::write(&kept, &bytes).expect("the folder of temporary files");
            panic!(
                "{} took {took:?} or panicked; to fuzz/corpus/{} with {}",
                decoder.name,
                decoder.name,
                kept.display()
            );
        }
        count += 1;
    }
    (count, seed)
}

#[test]
fn what_chance_makes_of_every_corpus_is_decoded_or_refused() {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let work = || {
            while let Some(decoder) = DECODERS.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (count, seed) = decode_damaged_inputs(decoder);
                println!("{}: {count} damaged inputs, seed {seed}", decoder.name);
                assert!(count > 0, "{} decodes nothing", decoder.name);
            }
        };
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        started.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

#[test]
fn corpora_belong_to_decoders_and_are_small() {
    let mut bytes = 0;
    for entry in fs::read_dir(corpora()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // Data structures, whose inputs are operations, are tested in crates of their own.
        let is_decoder = fuzz_decoders::find_decoder(&name).is_some();
        assert!(is_decoder || name.starts_with("slab_") || name == "trace_file", "{name}");
        bytes += list_inputs(&name).iter().map(|input| input.metadata().unwrap().len()).sum::<u64>();
    }
    assert!(bytes <= MOST_BYTES, "corpora weigh {bytes} bytes");
}
