//! Pages of texts, decoded run by run: a text and how often it follows itself is how Parquet stores them.
//!
//! The crate `parquet` makes a value of each cell. Names of metrics and units, the same in hundreds of thousands of rows, were
//! half of the cost of reading a run that way. Pages that contradict themselves are refused.
//!
//! Source: the Parquet format's description of the encodings PLAIN and RLE.

use std::sync::Arc;

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{DictionaryArray, StringArray};
use indexmap::IndexSet;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;

/// Indices that are packed together where they do not repeat.
const PACKED: usize = 8;

/// The widest index in bits.
const WIDEST: usize = 32;

/// All texts of a column chunk of so many rows.
pub(crate) fn read_text_column(
    pages: &mut dyn PageReader,
    optional: bool,
    rows: usize,
) -> Result<DictionaryArray<Int32Type>, ParquetError> {
    let mut column = TextColumn::default();
    let (mut dictionary, mut left) = (Vec::new(), rows);
    while let Some(page) = pages.get_next_page()? {
        let cells = page.num_values() as usize;
        if let Page::DictionaryPage { buf, .. } = &page {
            dictionary = column.intern_texts(buf, cells)?;
            continue;
        }
        left = left.checked_sub(cells).ok_or_else(|| broken_page_error("more rows than there are"))?;
        let (levels, values) = split_page(&page, optional)?;
        let levels = levels.map(|levels| read_levels(levels, cells)).transpose()?;
        let present =
            levels.as_ref().map_or(cells, |runs| runs.iter().map(|(is_there, times)| is_there * times).sum());
        let keys = match page.encoding() {
            Encoding::PLAIN => column.intern_texts(values, present)?,
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                read_indices(values, present, &dictionary).ok_or_else(|| broken_page_error("its indices"))?
            }
            encoding => return Err(broken_page_error(&format!("its encoding {encoding}"))),
        };
        column.append(&keys, levels.as_deref());
    }
    column.finish()
}

/// A column that is being read: each text once, and the number of each row's.
#[derive(Default)]
struct TextColumn {
    texts: IndexSet<Box<str>>,
    keys: PrimitiveBuilder<Int32Type>,
}

impl TextColumn {
    /// The numbers of texts that stand one after the other, each behind its length.
    fn intern_texts(&mut self, mut bytes: &[u8], count: usize) -> Result<Vec<i32>, ParquetError> {
        let mut next = || {
            let (length, rest) = bytes.split_first_chunk::<4>()?;
            let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            bytes = rest;
            let text = str::from_utf8(text).ok()?;
            let known = self.texts.get_index_of(text);
            let number = known.unwrap_or_else(|| self.texts.insert_full(text.into()).0);
            i32::try_from(number).ok()
        };
        let read: Vec<i32> = (0..count).map_while(|_| next()).collect();
        if read.len() == count {
            Ok(read)
        } else {
            Err(broken_page_error("a text that is cut off or no UTF-8"))
        }
    }

    /// Takes the texts of a page, and which of its rows have one; without `levels` all have.
    fn append(&mut self, keys: &[i32], levels: Option<&[(usize, usize)]>) {
        let Some(levels) = levels else { return self.keys.append_slice(keys) };
        let mut left = keys;
        for (is_there, times) in levels {
            match left.split_at_checked(*times) {
                Some((next, rest)) if *is_there > 0 => {
                    self.keys.append_slice(next);
                    left = rest;
                }
                _ => self.keys.append_nulls(*times),
            }
        }
    }

    fn finish(mut self) -> Result<DictionaryArray<Int32Type>, ParquetError> {
        let texts = StringArray::from_iter_values(&self.texts);
        let made = DictionaryArray::try_new(self.keys.finish(), Arc::new(texts));
        made.map_err(|error| ParquetError::General(error.to_string()))
    }
}

/// Of so many rows, runs of those that have a value (1) and those that have none (0).
fn read_levels(bytes: &[u8], rows: usize) -> Result<Vec<(usize, usize)>, ParquetError> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let read = HybridRuns { width: 1, bytes }.expand(rows, &mut |level, times| {
        match runs.last_mut().filter(|(last, _)| *last == level) {
            Some((_, before)) => *before += times,
            None => runs.push((level, times)),
        }
        Some(())
    });
    read.map(|()| runs).ok_or_else(|| broken_page_error("which of its cells are missing"))
}

/// The width of the indices, then so many of them, as numbers of texts.
fn read_indices(bytes: &[u8], count: usize, dictionary: &[i32]) -> Option<Vec<i32>> {
    let (width, bytes) = bytes.split_first()?;
    let runs = HybridRuns { width: usize::from(*width), bytes };
    let mut keys = Vec::new();
    let mut take = |index: usize, times| {
        keys.extend(std::iter::repeat_n(*dictionary.get(index)?, times));
        Some(())
    };
    (runs.width <= WIDEST).then(|| runs.expand(count, &mut take)).flatten().map(|()| keys)
}

/// The two pages of a text column by themselves: a dictionary of so many texts, and indices of so many rows; gives the rows
/// that were read.
#[cfg(feature = "fuzzing")]
pub fn decode_text_pages(dictionary: &[u8], texts: usize, indices: &[u8], rows: usize) -> Option<usize> {
    let known = TextColumn::default().intern_texts(dictionary, texts).ok()?;
    read_indices(indices, rows, &known).map(|keys| keys.len())
}

fn broken_page_error(what: &str) -> ParquetError {
    ParquetError::General(format!("{what} cannot be read"))
}

/// The levels of a data page, and its values. In the first version of pages, levels stand behind their length.
fn split_page(page: &Page, optional: bool) -> Result<(Option<&[u8]>, &[u8]), ParquetError> {
    let short = || broken_page_error("a page that is shorter than its levels");
    let bytes: &[u8] = page.buffer();
    let (levels, values) = match page {
        Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
            let (_, bytes) = bytes.split_at_checked(*rep_levels_byte_len as usize).ok_or_else(short)?;
            bytes.split_at_checked(*def_levels_byte_len as usize).ok_or_else(short)?
        }
        _ if optional => {
            let (length, bytes) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
            bytes.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(short)?
        }
        _ => (&[][..], bytes),
    };
    Ok((optional.then_some(levels), values))
}

/// Small numbers, run by run.
struct HybridRuns<'a> {
    /// Of each number, in bits.
    width: usize,
    bytes: &'a [u8],
}

impl<'a> HybridRuns<'a> {
    /// Each run begins with a number: how many, and in its lowest bit, whether they are one number or packed.
    fn expand(mut self, mut count: usize, take: &mut dyn FnMut(usize, usize) -> Option<()>) -> Option<()> {
        while count > 0 {
            let head = self.read_varint()?;
            let times = usize::try_from(head >> 1).ok()?;
            let read = match head & 1 {
                0 => self.expand_repeated(times.min(count), take)?,
                _ => self.expand_packed(times, count, take)?,
            };
            count = count.checked_sub(read).filter(|_| read > 0)?;
        }
        Some(())
    }

    /// One number that is repeated.
    fn expand_repeated(
        &mut self,
        times: usize,
        take: &mut dyn FnMut(usize, usize) -> Option<()>,
    ) -> Option<usize> {
        let number = self.split_bytes(self.width.div_ceil(8))?;
        let number = number.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte));
        take(number, times)?;
        Some(times)
    }

    /// So many times eight numbers, the first in the lowest bits.
    fn expand_packed(
        &mut self,
        count: usize,
        left: usize,
        take: &mut dyn FnMut(usize, usize) -> Option<()>,
    ) -> Option<usize> {
        let (width, packed) = (self.width, self.split_bytes(count.checked_mul(self.width)?)?);
        let times = count.checked_mul(PACKED)?.min(left);
        let bit = |at: usize| packed.get(at / 8).map_or(0, |byte| usize::from(byte >> (at % 8) & 1));
        for at in 0..times {
            let number = (0..width).rev().fold(0, |number, place| number << 1 | bit(at * width + place));
            take(number, 1)?;
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pages that are in memory.
    struct InMemoryPages(std::vec::IntoIter<Page>);

    impl InMemoryPages {
        fn with_dictionary(dictionary: Vec<u8>, texts: u32, indices: Vec<u8>, rows: u32) -> Self {
            use Encoding::{PLAIN, RLE, RLE_DICTIONARY};
            let first = Page::DictionaryPage {
                buf: dictionary.into(),
                num_values: texts,
                encoding: PLAIN,
                is_sorted: false,
            };
            let second = Page::DataPage {
                buf: indices.into(),
                num_values: rows,
                encoding: RLE_DICTIONARY,
                def_level_encoding: RLE,
                rep_level_encoding: RLE,
                statistics: None,
            };
            InMemoryPages(vec![first, second].into_iter())
        }
    }

    impl Iterator for InMemoryPages {
        type Item = Result<Page, ParquetError>;

        fn next(&mut self) -> Option<Self::Item> {
            self.get_next_page().transpose()
        }
    }

    impl PageReader for InMemoryPages {
        fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
            Ok(self.0.next())
        }

        fn peek_next_page(&mut self) -> Result<Option<parquet::column::page::PageMetadata>, ParquetError> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<(), ParquetError> {
            Ok(())
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// Pages of any bytes are refused or read, and never more than the rows that they claim.
        #[test]
        fn damaged_pages_are_no_more_than_refused(
            dictionary in prop::collection::vec(any::<u8>(), 0..40),
            indices in prop::collection::vec(any::<u8>(), 0..40),
            texts in 0_u32..6,
            rows in 0_u32..2000,
            optional: bool,
        ) {
            let mut pages = InMemoryPages::with_dictionary(dictionary, texts, indices, rows);
            if let Ok(read) = read_text_column(&mut pages, optional, rows as usize) {
                prop_assert_eq!(read.len(), rows as usize);
            }
        }
    }

    #[test]
    fn texts_of_pages_come_run_by_run_with_the_missing_ones() {
        let dictionary = b"\x03\0\0\0one\x03\0\0\0two".to_vec();
        // Levels: four present, two missing, one present; indices: three of the second, then two of the first.
        let levels = [8, 1, 4, 0, 2, 1];
        let page = [&[6, 0, 0, 0][..], &levels, &[1, 6, 1, 4, 0]].concat();
        let mut pages = InMemoryPages::with_dictionary(dictionary, 2, page, 7);
        let read = read_text_column(&mut pages, true, 7).unwrap();
        let cells: Vec<Option<&str>> = read.downcast_dict::<StringArray>().unwrap().into_iter().collect();
        assert_eq!(cells, [Some("two"), Some("two"), Some("two"), Some("one"), None, None, Some("one")]);
    }
}
