//! Stretches of the disk, in the order in which a program needs them: a compromise between one sweep, in which what is
//! needed at once comes last as often as first, and the order of need, in which the arm seeks for every page. Where the
//! arm has to move anyway it may as well move to what is needed next.

use perflab_model::io::PAGE;

use super::PlannedExtent;

/// Bytes that pass below the head in the time of a seek: what lies nearer than that belongs to the same stretch.
pub(crate) const MAX_NEAR_BYTES: u64 = 256 << 10;
/// Bytes of a stretch at most, so that the beginning of a large library does not bring all of it before anything else. At
/// 60 MB/s a tenth of a second.
const MAX_RANGE_BYTES: u64 = 8 << 20;

/// Pieces by stretches: within each as they lie, the one with what is needed first first.
pub(super) fn order_ranges_by_need(mut pieces: Vec<PlannedExtent<'_>>) -> Vec<PlannedExtent<'_>> {
    pieces.sort_by_key(PlannedExtent::disk_order);
    let mut stretches: Vec<SweepRange<'_>> = Vec::new();
    for piece in pieces {
        match stretches.last_mut() {
            Some(last) if last.is_continued_by(&piece) => last.add(piece),
            _ => stretches.push(SweepRange::from_extent(piece)),
        }
    }
    stretches.sort_by_key(|stretch| stretch.turn);
    stretches.into_iter().flat_map(|stretch| stretch.pieces).collect()
}

struct SweepRange<'a> {
    pieces: Vec<PlannedExtent<'a>>,
    /// when the first of them is needed
    turn: u32,
    /// where they begin and end on the disk; what has no known place is a stretch of its own
    place: Option<(u64, u64)>,
}

impl<'a> SweepRange<'a> {
    fn from_extent(piece: PlannedExtent<'a>) -> Self {
        let place = piece.mark.place.map(|place| (place, place + piece.count * PAGE));
        SweepRange { pieces: vec![piece], turn: piece.mark.turn, place }
    }

    fn is_continued_by(&self, piece: &PlannedExtent<'_>) -> bool {
        let Some(((begin, end), place)) = self.place.zip(piece.mark.place) else { return false };
        let same = self.pieces.last().is_some_and(|last| last.file.system == piece.file.system);
        same && place.saturating_sub(end) <= MAX_NEAR_BYTES
            && place + piece.count * PAGE - begin <= MAX_RANGE_BYTES
    }

    fn add(&mut self, piece: PlannedExtent<'a>) {
        let end = piece.mark.place.map(|place| place + piece.count * PAGE);
        self.place = self.place.zip(end).map(|((begin, old), end)| (begin, old.max(end)));
        self.turn = self.turn.min(piece.mark.turn);
        self.pieces.push(piece);
    }
}
