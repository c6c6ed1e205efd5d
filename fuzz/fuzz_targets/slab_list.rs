//! Operations on a slab list beside its model, as the tests of slablist do them.
#![no_main]

#[expect(dead_code, reason = "the set's part")]
#[path = "../../crates/slablist/tests/it/fuzz.rs"]
mod fuzz;
#[path = "../../crates/slablist/tests/it/list_ops.rs"]
mod list_ops;
#[path = "../../crates/slablist/tests/it/set_ops.rs"]
mod set_ops;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz::fuzz_list(bytes);
});
