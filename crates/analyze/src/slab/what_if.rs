//! How many bytes caches would take at another order or another object size.
//!
//! What the kernel would do to partial slabs is not guessed: the answer holds for slabs as full as now, and beside it
//! for full ones.

use serde::Serialize;

use crate::slab::recording::{SlabError, SlabRow};

/// The layout of a cache's slabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SlabLayout {
    /// Bytes asked for; null where unknown.
    pub object_size: Option<u64>,
    /// Padded bytes of a slot.
    pub slab_size: u64,
    /// log2 of the pages of a slab.
    pub order: u32,
    /// Slots of a slab: floor((page_size << order) / slab_size).
    pub objs_per_slab: u64,
    /// Bytes of a slab: page_size << order.
    pub bytes_per_slab: u64,
}

/// A change of layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayoutChange {
    /// Another order.
    pub order: Option<u32>,
    /// Another object size, bytes; the padding of a slot keeps its bytes, rounded up to `align`.
    pub object_size: Option<u64>,
    /// Alignment of slots in bytes; 8 where unknown.
    pub align: Option<u64>,
}

/// What would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LayoutWhatIf {
    /// As it is.
    pub now: SlabLayout,
    /// As it would be.
    pub then: SlabLayout,
    /// S now, bytes.
    pub bytes_now: u64,
    /// Whole slabs for as many slots as now, bytes: ceil(total_objects / objs_per_slab) * bytes_per_slab.
    pub bytes_then: u64,
    /// Whole slabs for the objects in use only, were every slab full, now: bytes.
    pub packed_now: u64,
    /// The same with the other layout, bytes.
    pub packed_then: u64,
}

/// Bytes of one cache at one tick with another layout.
///
/// # Errors
/// An order above 15, an object size of 0, an object that does not fit into one slab, a row that says nothing of its
/// slots.
pub fn what_if_layout(
    row: &SlabRow,
    page_size: u64,
    change: &LayoutChange,
) -> Result<LayoutWhatIf, SlabError> {
    let now = layout_of_row(row, page_size)?;
    let order = change.order.unwrap_or(now.order);
    let slab_size =
        change.object_size.map_or(Ok(now.slab_size), |size| padded_size(&now, size, change.align))?;
    let object_size = change.object_size.or(now.object_size);
    let then = derive_layout(object_size, slab_size, order, page_size)?;
    // The kernel may have given fewer slots than would fit; the present layout is what it says.
    Ok(LayoutWhatIf {
        now,
        then,
        bytes_now: row.slabs.saturating_mul(row.bytes_per_slab),
        bytes_then: slabs_for_objects(row.total_objects, &then),
        packed_now: slabs_for_objects(row.objects, &now),
        packed_then: slabs_for_objects(row.objects, &then),
    })
}

fn layout_error(what: String) -> SlabError {
    SlabError::Layout { what }
}

fn layout_of_row(row: &SlabRow, page_size: u64) -> Result<SlabLayout, SlabError> {
    let pages = row.bytes_per_slab.checked_div(page_size).filter(|pages| *pages > 0);
    let pages = pages.ok_or_else(|| layout_error("the row says nothing of its slabs' size".into()))?;
    if row.objs_per_slab == 0 || row.slab_size == 0 {
        return Err(layout_error("the row says nothing of its slots".into()));
    }
    Ok(SlabLayout {
        object_size: row.object_size,
        slab_size: row.slab_size,
        order: pages.ilog2(),
        objs_per_slab: row.objs_per_slab,
        bytes_per_slab: row.bytes_per_slab,
    })
}

fn derive_layout(
    object_size: Option<u64>,
    slab_size: u64,
    order: u32,
    page_size: u64,
) -> Result<SlabLayout, SlabError> {
    let bytes_per_slab = if order > 15 { None } else { page_size.checked_mul(1 << order) };
    let bytes_per_slab = bytes_per_slab.ok_or_else(|| layout_error(format!("order {order} is above 15")))?;
    let objs_per_slab = bytes_per_slab.checked_div(slab_size).unwrap_or(0);
    if objs_per_slab == 0 {
        let what =
            format!("{slab_size} bytes a slot do not fit into {bytes_per_slab} bytes of order {order}");
        return Err(layout_error(what));
    }
    Ok(SlabLayout { object_size, slab_size, order, objs_per_slab, bytes_per_slab })
}

/// The slot of another object size: what the allocator adds stays, then rounded up to the alignment.
fn padded_size(now: &SlabLayout, size: u64, align: Option<u64>) -> Result<u64, SlabError> {
    if size == 0 {
        return Err(layout_error("an object of 0 bytes is none".into()));
    }
    let align = align.filter(|align| *align > 0).unwrap_or(8);
    // Only what is not itself rounding is the allocator's own: red zones, a free pointer outside the object.
    let asked = now.object_size.unwrap_or(now.slab_size);
    let own = now.slab_size.saturating_sub(asked.checked_next_multiple_of(align).unwrap_or(asked));
    let slot = size.checked_add(own).and_then(|size| size.checked_next_multiple_of(align));
    slot.ok_or_else(|| layout_error(format!("{size} bytes are no object")))
}

fn slabs_for_objects(objects: u64, layout: &SlabLayout) -> u64 {
    objects.div_ceil(layout.objs_per_slab.max(1)).saturating_mul(layout.bytes_per_slab)
}
