//! Anonymous memory of a chosen kind of pages.

use memmap2::{Advice, MmapMut};

use super::LoadError;

/// What the kernel is told about a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pages {
    /// nothing: `/sys/kernel/mm/transparent_hugepage/enabled` decides
    Default,
    /// MADV_NOHUGEPAGE
    Ordinary,
    /// MADV_HUGEPAGE
    Huge,
}

pub(super) const PAGES: &[(&str, Pages)] =
    &[("default", Pages::Default), ("ordinary", Pages::Ordinary), ("huge", Pages::Huge)];

/// Fresh memory, not touched yet.
pub(super) fn buffer(size: usize, pages: Pages) -> Result<MmapMut, LoadError> {
    let map = MmapMut::map_anon(size).map_err(LoadError::refused(format!("get {size} bytes of memory")))?;
    let advice = match pages {
        Pages::Default => return Ok(map),
        Pages::Ordinary => Advice::NoHugePage,
        Pages::Huge => Advice::HugePage,
    };
    match map.advise(advice) {
        // A kernel without huge pages has only ordinary ones: what was asked for.
        Err(error) if pages == Pages::Ordinary && error.kind() == std::io::ErrorKind::InvalidInput => Ok(map),
        Err(error) => Err(LoadError::refused("ask for huge pages (CONFIG_TRANSPARENT_HUGEPAGE)")(error)),
        Ok(()) => Ok(map),
    }
}

/// The size of an ordinary page in bytes.
pub(super) fn page_size() -> usize {
    rustix::param::page_size()
}
