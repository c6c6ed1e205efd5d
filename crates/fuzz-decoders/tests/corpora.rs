//! Every decoder with its corpus, which the fuzzer grew: what once broke one breaks none any more, and what the decoder
//! can be made to do by foreign bytes is done by every `cargo test`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fuzz_decoders::DECODERS;

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
