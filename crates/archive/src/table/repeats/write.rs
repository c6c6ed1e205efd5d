//! From texts to pages: one of the dictionary, one of the indices. Owns the encodings; refuses texts that hardly repeat, which
//! the crate's own writer packs better.

use std::io::Write;

use bytes::Bytes;
use indexmap::IndexSet;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// Cells a run on average, from which on runs are what is written.
const LONG: usize = 16;

/// Whether so many runs are few for so many rows.
pub(in crate::table) fn is_worth_runs(runs: usize, rows: usize) -> bool {
    runs.saturating_mul(LONG) <= rows
}

/// Writes the next column of a row group: texts, each as often as it follows itself.
pub(in crate::table) fn write_text_runs<'a, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: ColumnDescPtr,
    runs: impl Iterator<Item = (&'a str, usize)>,
) -> Result<(), ParquetError> {
    let (chunk, data, rows) = dictionary_pages(runs)?;
    let length = i64::try_from(chunk.len())?;
    let metadata = ColumnChunkMetaData::builder(column)
        .set_compression(Compression::UNCOMPRESSED)
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
        .set_total_compressed_size(length)
        .set_total_uncompressed_size(length)
        .set_num_values(i64::from(rows))
        .set_dictionary_page_offset(Some(0))
        .set_data_page_offset(i64::try_from(data)?)
        .build()?;
    let close = ColumnCloseResult {
        bytes_written: chunk.len() as u64,
        rows_written: u64::from(rows),
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    group.append_column(&chunk, close)
}

/// Both pages, where the second begins, and how many cells it holds.
fn dictionary_pages<'a>(
    runs: impl Iterator<Item = (&'a str, usize)>,
) -> Result<(Bytes, u64, u32), ParquetError> {
    let (known, runs, rows) = index_texts(runs);
    let num_values = u32::try_from(rows)?;
    let mut chunk = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut chunk);
    let (buf, size) = with_length(encode_dictionary(&known)?);
    let (texts, encoding) = (u32::try_from(known.len())?, Encoding::PLAIN);
    let page = Page::DictionaryPage { buf, num_values: texts, encoding, is_sorted: false };
    pages.write_page(CompressedPage::new(page, size))?;
    let (buf, size) = with_length(encode_indices(known.len(), &runs));
    let (encoding, levels) = (Encoding::RLE_DICTIONARY, Encoding::RLE);
    let page = Page::DataPage {
        buf,
        num_values,
        encoding,
        def_level_encoding: levels,
        rep_level_encoding: levels,
        statistics: None,
    };
    let data = pages.write_page(CompressedPage::new(page, size))?.offset;
    Ok((chunk.into_inner()?.into(), data, num_values))
}

fn with_length(bytes: Vec<u8>) -> (Bytes, usize) {
    let size = bytes.len();
    (bytes.into(), size)
}

/// The texts, each once, the runs by their places, and how many cells they are.
fn index_texts<'a>(
    runs: impl Iterator<Item = (&'a str, usize)>,
) -> (IndexSet<&'a str>, Vec<(usize, usize)>, usize) {
    let (mut known, mut rows) = (IndexSet::new(), 0);
    let mut index = |(text, times)| {
        rows += times;
        (known.insert_full(text).0, times)
    };
    let runs = runs.map(&mut index).collect();
    (known, runs, rows)
}

fn encode_dictionary(known: &IndexSet<&str>) -> Result<Vec<u8>, ParquetError> {
    let mut bytes = Vec::new();
    for text in known {
        bytes.extend(u32::try_from(text.len())?.to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    Ok(bytes)
}

/// The width of an index in bits (some readers take none for a mistake), then each run: twice how often, and its index.
fn encode_indices(known: usize, runs: &[(usize, usize)]) -> Vec<u8> {
    let width = known.saturating_sub(1).checked_ilog2().unwrap_or(0) + 1;
    let bytes_each = width.div_ceil(8) as usize;
    let mut bytes = vec![width as u8];
    for (index, times) in runs {
        append_varint(&mut bytes, *times << 1);
        bytes.extend(index.to_le_bytes().iter().take(bytes_each));
    }
    bytes
}

/// In groups of seven bits, the lowest first.
fn append_varint(bytes: &mut Vec<u8>, mut number: usize) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
