//! Owns what becomes of more points than there are pixels. It refuses means: of each pixel, the first, the lowest, the
//! highest and the last point stay, so that a spike of one tick is drawn as high as it was.

use super::scene::ScenePoint;

/// The points that matter, in their order; ascending in `x`.
pub(super) fn keep_pixel_extremes(points: &[ScenePoint]) -> Vec<ScenePoint> {
    let mut kept = Vec::new();
    for pixel in points.chunk_by(|a, b| a.x.floor() == b.x.floor()) {
        if pixel.len() <= 4 {
            kept.extend_from_slice(pixel);
            continue;
        }
        let by_height = |(_, a): &(usize, &ScenePoint), (_, b): &(usize, &ScenePoint)| a.y.total_cmp(&b.y);
        let highest = pixel.iter().enumerate().min_by(by_height).map_or(0, |(index, _)| index);
        let lowest = pixel.iter().enumerate().max_by(by_height).map_or(0, |(index, _)| index);
        let mut indices = [0, highest.min(lowest), highest.max(lowest), pixel.len() - 1].to_vec();
        indices.dedup();
        kept.extend(indices.into_iter().filter_map(|index| pixel.get(index)));
    }
    kept
}
