//! From pages to texts. Owns the encodings; refuses what contradicts itself.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use perflab_model::SharedStr;

/// Indices that are packed together where they do not repeat.
const PACKED: usize = 8;
/// The widest index in bits.
const WIDEST: usize = 32;

/// Hands over all texts of a column chunk in order, each with how often it follows itself.
pub(in crate::table) fn read_text_runs(
    pages: &mut dyn PageReader,
    take: &mut dyn FnMut(&SharedStr, usize),
) -> Result<(), ParquetError> {
    let mut dictionary = Vec::new();
    while let Some(page) = pages.get_next_page()? {
        let rows = page.num_values() as usize;
        match (&page, page.encoding()) {
            (Page::DictionaryPage { buf, .. }, _) => dictionary = parse_dictionary(buf, rows)?,
            (_, Encoding::PLAIN) => {
                parse_dictionary(page_values(&page)?, rows)?.iter().for_each(|text| take(text, 1))
            }
            (_, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY) => {
                let read = DictionaryIndices::parse(page_values(&page)?)
                    .and_then(|read| read.expand(rows, &dictionary, take));
                read.ok_or_else(|| broken_page_error("its indices"))?;
            }
            (_, encoding) => return Err(broken_page_error(&format!("its encoding {encoding}"))),
        }
    }
    Ok(())
}

fn broken_page_error(what: &str) -> ParquetError {
    ParquetError::General(format!("{what} cannot be read"))
}

/// What a data page holds behind its levels; a column without missing cells has none in the first version of pages.
fn page_values(page: &Page) -> Result<&[u8], ParquetError> {
    let levels = match page {
        Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
            (*def_levels_byte_len as usize).saturating_add(*rep_levels_byte_len as usize)
        }
        _ => 0,
    };
    page.buffer().get(levels..).ok_or_else(|| broken_page_error("a page that is shorter than its levels"))
}

/// Texts one after the other, each behind its length.
fn parse_dictionary(mut bytes: &[u8], count: usize) -> Result<Vec<SharedStr>, ParquetError> {
    let mut next = || {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        bytes = rest;
        str::from_utf8(text).ok().map(SharedStr::from)
    };
    let read: Vec<SharedStr> = (0..count).map_while(|_| next()).collect();
    if read.len() == count { Ok(read) } else { Err(broken_page_error("a text that is cut off or no UTF-8")) }
}

/// Indices into a dictionary, run by run.
struct DictionaryIndices<'a> {
    /// Of each index, in bits.
    width: usize,
    bytes: &'a [u8],
}

impl<'a> DictionaryIndices<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (width, bytes) = bytes.split_first()?;
        Some(DictionaryIndices { width: usize::from(*width), bytes })
            .filter(|indices| indices.width <= WIDEST)
    }

    /// Each run begins with a number: how many, and in its lowest bit, whether they are one index or packed.
    fn expand(
        mut self,
        mut rows: usize,
        known: &[SharedStr],
        take: &mut dyn FnMut(&SharedStr, usize),
    ) -> Option<()> {
        while rows > 0 {
            let head = self.read_varint()?;
            let count = usize::try_from(head >> 1).ok()?;
            let read = match head & 1 {
                0 => self.expand_repeated(count.min(rows), known, take)?,
                _ => self.expand_packed(count, rows, known, take)?,
            };
            rows = rows.checked_sub(read).filter(|_| read > 0)?;
        }
        Some(())
    }

    /// One index that is repeated.
    fn expand_repeated(
        &mut self,
        times: usize,
        known: &[SharedStr],
        take: &mut dyn FnMut(&SharedStr, usize),
    ) -> Option<usize> {
        let index = self.split_bytes(self.width.div_ceil(8))?;
        let index = index.iter().rev().fold(0, |index, byte| index << 8 | usize::from(*byte));
        take(known.get(index)?, times);
        Some(times)
    }

    /// So many times eight indices, the first in the lowest bits.
    fn expand_packed(
        &mut self,
        count: usize,
        rows: usize,
        known: &[SharedStr],
        take: &mut dyn FnMut(&SharedStr, usize),
    ) -> Option<usize> {
        let (width, packed) = (self.width, self.split_bytes(count.checked_mul(self.width)?)?);
        let times = count.checked_mul(PACKED)?.min(rows);
        let bit = |at: usize| packed.get(at / 8).map_or(0, |byte| usize::from(byte >> (at % 8) & 1));
        for at in 0..times {
            let index = (0..width).rev().fold(0, |index, place| index << 1 | bit(at * width + place));
            take(known.get(index)?, 1);
        }
        Some(times)
    }

    /// A number in groups of seven bits, the lowest first.
    fn read_varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let byte = *self.split_bytes(1)?.first()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn split_bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(first)
    }
}
