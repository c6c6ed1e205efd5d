//! The USDT probes are in the binary, under their names.

use slablist::{BoundedReap, ListShape, SlabSet, Usdt};

#[test]
fn sites_are_in_the_binary() {
    let mut set = SlabSet::with_shape(ListShape::new(64, 4, 4), BoundedReap::default(), Usdt);
    (0..2_000_u64).for_each(|key| _ = set.insert(key * 7_919 % 2_003));
    while set.pop_first().is_some() {}
    let binary = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    for name in [
        "slab_made_begin",
        "slab_made",
        "slab_freed",
        "spilled_begin",
        "spilled",
        "shifted_begin",
        "shifted",
        "reaped_begin",
        "reaped",
        "node_made",
        "node_freed",
        "index_grown",
        "index_shrunk",
        "became_slabs",
        "became_small",
    ] {
        // As a note of SystemTap's kind has it: provider and name, each ended by a zero.
        let note = ["slablist", name, ""].join("\0").into_bytes();
        assert!(binary.windows(note.len()).any(|bytes| bytes == note), "no site {name}");
    }
}
