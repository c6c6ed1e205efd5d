//! How big things are: the bytes of a slab, the children of an index node, the size up to which a list stays small.

/// The sizes of a list. They are fixed when the list is made.
///
/// ```
/// use slablist::ListShape;
/// assert_eq!(ListShape::DEFAULT.capacity::<u64>(), 191);
/// assert_eq!(ListShape::ORIGINAL_2012.capacity::<u64>(), 119);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListShape {
    slab_bytes: usize,
    fanout: usize,
    small: usize,
}

impl ListShape {
    /// Slabs of 1,528 bytes (1,536 with the allocator's word), index nodes of 256 children, small up to 64 elements.
    pub const DEFAULT: Self = Self { slab_bytes: 1528, fanout: 256, small: 64 };

    /// The sizes of the library of 2012, for repeating its study: 119 eight-byte elements a slab, 119 children an
    /// index node, small up to 60 elements.
    pub const ORIGINAL_2012: Self = Self { slab_bytes: 952, fanout: 119, small: 60 };

    /// A shape of `slab_bytes` bytes a slab (at least four elements are always held), `fanout` children an index
    /// node (at least 4) and up to `small` elements without slabs or index (0 turns the small mode off).
    #[must_use]
    pub const fn new(slab_bytes: usize, fanout: usize, small: usize) -> Self {
        Self { slab_bytes, fanout: if fanout < 4 { 4 } else { fanout }, small }
    }

    /// Elements of type `T` that one slab holds.
    #[must_use]
    pub const fn capacity<T>(&self) -> usize {
        let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
        let fits = self.slab_bytes / size;
        if fits < 4 { 4 } else { fits }
    }

    /// Children of one index node.
    #[must_use]
    pub const fn fanout(&self) -> usize {
        self.fanout
    }

    /// Elements of type `T` up to which a list is one growing vector: never more than a slab holds.
    #[must_use]
    pub const fn small_limit<T>(&self) -> usize {
        let capacity = self.capacity::<T>();
        if self.small < capacity { self.small } else { capacity }
    }
}

impl Default for ListShape {
    fn default() -> Self {
        Self::DEFAULT
    }
}
