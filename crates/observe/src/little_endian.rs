//! Little-endian integers in foreign bytes, as on every machine that perflab is built for, read without going
//! beyond the end.

macro_rules! word {
    ($name:ident, $word:ty) => {
        /// The number that begins at this byte; none where there is not so much.
        pub(crate) fn $name(bytes: &[u8], at: usize) -> Option<$word> {
            Some(<$word>::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
        }
    };
}

word!(read_u16_at, u16);

word!(read_u32_at, u32);

word!(read_u64_at, u64);

/// The number of so many bytes, at most 8, that begins at this one.
pub(crate) fn read_uint_at(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut word = [0; 8];
    word.get_mut(..size)?.copy_from_slice(bytes.get(at..)?.get(..size)?);
    Some(u64::from_le_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_beyond_the_end() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(read_u16_at(&bytes, 7), Some(0x0908));
        assert_eq!((read_u32_at(&bytes, 5), read_u32_at(&bytes, 6)), (Some(0x0908_0706), None));
        assert_eq!((read_u64_at(&bytes, 1), read_u64_at(&bytes, 2)), (Some(0x0908_0706_0504_0302), None));
        assert_eq!((read_uint_at(&bytes, 6, 3), read_uint_at(&bytes, 7, 3)), (Some(0x09_0807), None));
        assert_eq!((read_uint_at(&bytes, 0, 9), read_uint_at(&bytes, usize::MAX, 2)), (None, None));
    }
}
