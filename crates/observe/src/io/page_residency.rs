//! Which pages of a file are in memory, asked without touching them: `cachestat` counts them (Linux 6.5), `mincore`
//! names them.

#![expect(unsafe_code, reason = "cachestat and mincore have no safe wrappers")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use perflab_model::io_trace::PAGE;

const CACHESTAT: libc::c_long = 451;

#[repr(C)]
struct CachestatRange {
    offset: u64,
    length: u64,
}

#[repr(C)]
#[derive(Default)]
struct CachestatCounts {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Pages of `bytes` bytes from `offset` on that are in memory; all to the end where `bytes` is 0.
///
/// # Errors
/// The system's error: a file of another user, a file system without a page cache.
pub fn count_resident_pages(file: &File, offset: u64, bytes: u64) -> io::Result<u64> {
    let (range, mut counts) = (CachestatRange { offset, length: bytes }, CachestatCounts::default());
    // SAFETY: both structures are as the kernel declares them, and outlive the call.
    let done = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut counts, 0) };
    if done == 0 {
        return Ok(counts.cached);
    }
    let length = if bytes == 0 { file.metadata()?.len().saturating_sub(offset) } else { bytes };
    Ok(resident_page_map(file, offset, length)?.iter().filter(|resident| **resident).count() as u64)
}

/// Page by page, whether it is in memory; `offset` must be a page's beginning.
///
/// # Errors
/// As [`count_resident_pages`].
pub fn resident_page_map(file: &File, offset: u64, bytes: u64) -> io::Result<Vec<bool>> {
    let length = usize::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    if length == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: a new shared mapping of the file, never read or written; only asked about.
    let mapped = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_NONE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            offset as libc::off_t,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let mut pages = vec![0_u8; length.div_ceil(PAGE as usize)];
    // SAFETY: `mapped` is a mapping of `length` bytes, and `pages` has a byte for each page of it.
    let done = unsafe { libc::mincore(mapped, length, pages.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: the mapping that was just made; nothing refers to it any more.
    unsafe { libc::munmap(mapped, length) };
    if done < 0 { Err(error) } else { Ok(pages.iter().map(|page| page & 1 == 1).collect()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_was_just_written_is_in_memory() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 5 * PAGE as usize]).unwrap();
        assert_eq!(count_resident_pages(&file, 0, 0).unwrap(), 5);
        assert_eq!(count_resident_pages(&file, PAGE, 2 * PAGE).unwrap(), 2);
        assert_eq!(resident_page_map(&file, 0, 5 * PAGE).unwrap(), [true; 5]);
        assert!(resident_page_map(&file, 0, 0).unwrap().is_empty());
    }
}
