use super::*;

#[test]
fn rows_come_back_as_columns_across_row_groups() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let columns = [
        StoredColumn::new("n", StorageType::Int64, "bytes", "counter", "grows"),
        StoredColumn::new("x", StorageType::Double, "s", "gauge", "wobbles").optional(),
        StoredColumn::new("key", StorageType::Text, "1", "key", "names").optional(),
    ];
    let mut table = ParquetWriter::create(&path, &columns, &[("perflab.monitor", "m".into())]).unwrap();
    let rows = 200_000_i64;
    for n in 0..rows {
        let x = if n % 3 == 0 { StoredCell::Missing } else { StoredCell::Float(n as f64) };
        table
            .push_row([StoredCell::Int(n), x, StoredCell::Text(if n % 2 == 0 { "even" } else { "odd" })])
            .unwrap();
    }
    table.close().unwrap();
    let table = ParquetReader::open(directory.path(), "t.parquet").unwrap();
    assert_eq!(table.columns().unwrap(), columns);
    assert_eq!(table.metadata("perflab.monitor"), Some("m"));
    assert!(table.int64("n").unwrap().into_iter().eq(0..rows));
    assert_eq!(table.optional_double("x").unwrap()[..4], [None, Some(1.0), Some(2.0), None]);
    assert_eq!(table.optional_text("key").unwrap()[199_999].as_deref(), Some("odd"));
}

#[test]
fn a_wrong_type_or_name_is_an_error_that_names_the_column() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let columns = [StoredColumn::new("n", StorageType::Int64, "1", "value", "")];
    ParquetWriter::create(&path, &columns, &[]).unwrap().close().unwrap();
    let table = ParquetReader::open(directory.path(), "t.parquet").unwrap();
    assert!(table.int32("n").unwrap_err().to_string().contains("column `n` is stored as INT64"));
    assert!(table.int64("m").unwrap_err().to_string().contains("column `m` is not there"));
}

/// A row of docs/format.md.
fn document_column(column: &StoredColumn) -> String {
    let optional = if column.optional { ", optional" } else { "" };
    let stored = format!("{:?}", column.stored).to_lowercase();
    format!("| `{}` | {stored}{optional} | {} | {} |", column.name, column.unit, column.meaning)
}

#[test]
fn the_format_page_has_every_column_as_it_is() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format.md");
    let page = std::fs::read_to_string(page).unwrap();
    let factors = indexmap::IndexMap::from([("NAME".to_owned(), Vec::new())]);
    let plan = perflab_model::RunPlan { factors, ..perflab_model::RunPlan::default() };
    let tables = [
        ("samples", crate::samples::sample_columns(&plan, true)),
        ("iterations", crate::iterations::iteration_columns(&plan, true)),
        ("stacks/frames", crate::stacks::frame_columns()),
        ("stacks/tree", crate::stacks::tree_columns()),
        ("stacks/CASE", crate::stacks::stack_sample_columns()),
        ("events/io", crate::io::io_columns()),
        ("events/TRACER", crate::traces::documented_operation_columns()),
    ];
    for (table, columns) in tables {
        let section = page.split(&format!("## `{table}.parquet`")).nth(1).unwrap();
        let written: Vec<&str> = section.split("\n## ").next().unwrap().lines().collect();
        let written: Vec<&str> = written.into_iter().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(written, columns.iter().map(document_column).collect::<Vec<_>>(), "{table}");
    }
}
