//! The page size of the machine that a `/proc` is of: AT_PAGESZ of the auxiliary vector (getauxval(3)), which a recorded
//! tree holds as the machine itself does. Refuses to guess: 4096 is wrong on many.

use crate::Root;

/// The key of the page size (include/uapi/linux/auxvec.h).
const AT_PAGESZ: u64 = 6;

/// In bytes; nothing where the tree does not tell.
pub(crate) fn read_page_size(root: &Root) -> Option<u64> {
    if root.is_host() {
        return u64::try_from(rustix::param::page_size()).ok();
    }
    find_auxv_page_size(&std::fs::read(root.path("/proc/self/auxv")).ok()?)
}

/// Pairs of key and value, as 64-bit words of this machine's byte order.
fn find_auxv_page_size(vector: &[u8]) -> Option<u64> {
    let (words, _) = vector.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let pair = pairs.iter().find(|[key, _]| u64::from_ne_bytes(*key) == AT_PAGESZ)?;
    Some(u64::from_ne_bytes(pair[1])).filter(|size| size.is_power_of_two())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_vector_tells_what_the_machine_does() {
        let own = std::fs::read("/proc/self/auxv").unwrap();
        assert_eq!(find_auxv_page_size(&own), u64::try_from(rustix::param::page_size()).ok());
        assert_eq!(find_auxv_page_size(&own[..24]), None);
        assert_eq!(find_auxv_page_size(b"6"), None);
    }
}
