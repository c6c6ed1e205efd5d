//! Owns the picture of bytes by cache over time. It refuses more layers than there are colours.

use perflab_analyze::slab::Stack;
use perflab_model::Nanos;

use super::timeline::spans;
use crate::chart::{Layer, Scene, Stacked, Unit};

/// Slab bytes, stacked: the others at the bottom, the largest cache above them.
#[must_use]
pub fn figure(stack: &Stack) -> Scene {
    let begun = stack.at.first().copied().unwrap_or(Nanos(0));
    let layers = stack.layers.iter().enumerate().map(|(index, layer)| Layer {
        name: layer.name.clone(),
        values: layer.bytes.iter().map(|bytes| *bytes as f64).collect(),
        colour: crate::chart::PALETTE.get(index).copied(),
    });
    let others = Layer::others("others", stack.others.iter().map(|bytes| *bytes as f64).collect());
    Stacked {
        title: "Slab memory by cache".into(),
        note: "bytes of slabs, full or not; the caches with the largest peaks, and all others together"
            .into(),
        unit: Unit::Bytes,
        times: stack.at.iter().map(|at| at.since(begun).seconds()).collect(),
        layers: std::iter::once(others).chain(layers).collect(),
        spans: spans(&stack.phases, begun),
    }
    .scene()
}
