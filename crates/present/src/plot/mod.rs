//! Pictures of metrics and of what monitors recorded, as `perflab plot` draws them: one file a kind.
//!
//! Which samples belong to which line was decided by `perflab-analyze`; here they become charts with titles, units and a note that
//! says what every mark is.

mod distribution;
mod heat_map;
mod histogram;
mod intervals;
mod panel;
mod scaling;
mod strip;
#[cfg(test)]
mod tests;
mod timeline;

pub use distribution::distribution_scene;
pub use heat_map::heat_map_scene;
pub use histogram::histogram_scene;
pub use intervals::intervals_scene;
pub use panel::{MOST_PANELS, PlotLook};
pub use scaling::scaling_scene;
pub use strip::strip_scene;
pub use timeline::timeline_scene;
