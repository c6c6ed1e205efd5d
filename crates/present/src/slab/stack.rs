//! Owns the picture of bytes by cache over time. It refuses more layers than there are colours.

use perflab_analyze::slab::CacheStack;
use perflab_model::Nanos;

use super::timeline::phase_bands;
use crate::chart::{AxisUnit, ChartLayer, Scene, StackedChart};

/// Slab bytes, stacked: the others at the bottom, the largest cache above them.
#[must_use]
pub fn slab_bytes_chart(stack: &CacheStack) -> Scene {
    let begun = stack.at.first().copied().unwrap_or(Nanos(0));
    let layers = stack.layers.iter().enumerate().map(|(index, layer)| ChartLayer {
        name: layer.name.clone(),
        values: layer.bytes.iter().map(|bytes| *bytes as f64).collect(),
        colour: crate::chart::PALETTE.get(index).copied(),
    });
    let others = ChartLayer::others("others", stack.others.iter().map(|bytes| *bytes as f64).collect());
    StackedChart {
        title: "Slab memory by cache".into(),
        note: "bytes of slabs, full or not; the caches with the largest peaks, and all others together"
            .into(),
        unit: AxisUnit::Bytes,
        times: stack.at.iter().map(|at| at.since(begun).seconds()).collect(),
        layers: std::iter::once(others).chain(layers).collect(),
        bands: phase_bands(&stack.phases, begun),
    }
    .render()
}
