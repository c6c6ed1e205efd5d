use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use perflab_model::SharedStr;
use proptest::prelude::*;

use crate::table::{ParquetReader, ParquetWriter, StorageType, StoredCell, StoredCells, StoredColumn};

/// Writes texts as runs, or cell by cell.
fn write_text_table(runs: &[(String, usize)], at_once: bool) -> (tempfile::TempDir, ParquetReader) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let columns = [StoredColumn::new("text", StorageType::Text, "1", "key", "names")];
    let mut writer = ParquetWriter::create(&path, &columns, &[]).unwrap();
    for (text, times) in runs {
        match at_once {
            true => writer.extend_columns(*times, [StoredCells::Same(StoredCell::Text(text))]).unwrap(),
            false => (0..*times).for_each(|_| writer.push_row([StoredCell::Text(text)]).unwrap()),
        }
    }
    writer.close().unwrap();
    let reader = ParquetReader::open(directory.path(), "t.parquet").unwrap();
    (directory, reader)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Long runs go past the crate's writer, short ones through it; all are read past its reader and by it.
    #[test]
    fn what_is_written_is_read(runs in prop::collection::vec(("[a-cé]{0,2}", 1_usize..400), 0..40), at_once: bool) {
        let (_directory, reader) = write_text_table(&runs, at_once);
        let cells: Vec<&str> =
            runs.iter().flat_map(|(text, times)| std::iter::repeat_n(text.as_str(), *times)).collect();
        let ours: Vec<SharedStr> = reader.name_column("text").unwrap().collect();
        prop_assert_eq!(ours.iter().map(SharedStr::as_str).collect::<Vec<_>>(), &cells[..]);
        let theirs = reader.dense_column::<parquet::data_type::ByteArrayType>("text", 0..reader.row_groups().count());
        let theirs: Vec<String> =
            theirs.unwrap().iter().map(|cell| cell.as_utf8().unwrap().to_owned()).collect();
        prop_assert_eq!(theirs, cells);
    }

    /// Pages of any bytes are refused or read, and never more than the rows that they claim.
    #[test]
    fn damaged_pages_are_no_more_than_refused(
        dictionary in prop::collection::vec(any::<u8>(), 0..40),
        indices in prop::collection::vec(any::<u8>(), 0..40),
        texts in 0_u32..6,
        rows in 0_u32..2000,
    ) {
        let mut pages = InMemoryPages::with_dictionary(dictionary, texts, indices, rows);
        let mut read = 0;
        let _ = super::read_text_runs(&mut pages, &mut |_, times| read += times);
        prop_assert!(read <= rows as usize);
    }
}

#[test]
fn hundreds_of_texts_need_wider_indices() {
    let runs: Vec<(String, usize)> = (0..700).map(|n| (format!("text {}", n % 600), 20 + n % 3)).collect();
    let (_directory, reader) = write_text_table(&runs, true);
    let cells = runs.iter().flat_map(|(text, times)| std::iter::repeat_n(text.as_str(), *times));
    assert!(reader.name_column("text").unwrap().map(String::from).eq(cells));
}

/// Pages that are in memory.
struct InMemoryPages(std::vec::IntoIter<Page>);

impl InMemoryPages {
    fn with_dictionary(dictionary: Vec<u8>, texts: u32, indices: Vec<u8>, rows: u32) -> Self {
        use parquet::basic::Encoding::{PLAIN, RLE, RLE_DICTIONARY};
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
