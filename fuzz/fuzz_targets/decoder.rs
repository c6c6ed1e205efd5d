//! Any bytes for one decoder of foreign bytes, named by `PERFLAB_FUZZ_DECODER`. One program for all of them: it is linked
//! once.
#![no_main]

use std::sync::LazyLock;

use fuzz_decoders::{DECODERS, Decoder, find_decoder};

static DECODER: LazyLock<&'static Decoder> = LazyLock::new(|| {
    let name = std::env::var("PERFLAB_FUZZ_DECODER").unwrap_or_default();
    find_decoder(&name).unwrap_or_else(|| {
        let names: Vec<&str> = DECODERS.iter().map(|decoder| decoder.name).collect();
        panic!("PERFLAB_FUZZ_DECODER={name} is no decoder; there are: {}", names.join(", "))
    })
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (DECODER.decode)(bytes));
