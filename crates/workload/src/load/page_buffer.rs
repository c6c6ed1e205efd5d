//! Anonymous memory of a chosen kind of pages.

use memmap2::{Advice, MmapMut};

use crate::load::args::LoadError;

/// What the kernel is advised about a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageKind {
    /// nothing: `/sys/kernel/mm/transparent_hugepage/enabled` decides
    Default,
    /// MADV_NOHUGEPAGE
    Ordinary,
    /// MADV_HUGEPAGE
    Huge,
}

pub(crate) const PAGES: &[(&str, PageKind)] =
    &[("default", PageKind::Default), ("ordinary", PageKind::Ordinary), ("huge", PageKind::Huge)];

/// Fresh memory, not touched yet.
pub(crate) fn map_buffer(size: usize, pages: PageKind) -> Result<MmapMut, LoadError> {
    let map =
        MmapMut::map_anon(size).map_err(LoadError::system_error(format!("get {size} bytes of memory")))?;
    let advice = match pages {
        PageKind::Default => return Ok(map),
        PageKind::Ordinary => Advice::NoHugePage,
        PageKind::Huge => Advice::HugePage,
    };
    match map.advise(advice) {
        // A kernel without huge pages has only ordinary ones: what was asked for.
        Err(error) if pages == PageKind::Ordinary && error.kind() == std::io::ErrorKind::InvalidInput => {
            Ok(map)
        }
        Err(error) => Err(LoadError::system_error("ask for huge pages (CONFIG_TRANSPARENT_HUGEPAGE)")(error)),
        Ok(()) => Ok(map),
    }
}

/// The size of an ordinary page in bytes.
pub(crate) fn system_page_size() -> usize {
    rustix::param::page_size()
}
