//! The notebook's figures against pandas, on an own recording (see the README beside it); and what the recording does
//! not hold, on made-up rows.

use std::path::{Path, PathBuf};

use perflab_analyze::slab::CacheOrder;
use perflab_analyze::slab::notebook::{self, NotebookDifference, NumpyHistogram};
use perflab_analyze::slab::{SlabError, SlabFacts, SlabInput};
use perflab_model::{CellRow, ColumnSpec, Nanos, TableCell};
use serde_json::Value;

use super::log;
use super::table::{four_kib_facts, int_columns, keyed_columns, make_series, make_slabinfo};

fn oracle_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/slab-fsmark")
}

fn read_oracle() -> Value {
    serde_json::from_str(&std::fs::read_to_string(oracle_folder().join("notebook.json")).unwrap()).unwrap()
}

fn assert_close(ours: f64, theirs: &Value) {
    let theirs = theirs.as_f64().unwrap();
    assert!((ours - theirs).abs() < 5e-7, "{ours} is not {theirs}");
}

fn assert_same_bins(ours: &NumpyHistogram, theirs: &Value) {
    let counts: Vec<u64> = ours.counts.iter().map(|count| *count as u64).collect();
    let expected: Vec<u64> = serde_json::from_value(theirs["counts"].clone()).unwrap();
    assert_eq!(counts, expected);
    assert_close(ours.edges[0], &theirs["low"]);
    assert_close(*ours.edges.last().unwrap(), &theirs["high"]);
}

#[test]
fn table_timelines_and_histograms_are_those_of_pandas() {
    let tool = log::read_tool_log(&oracle_folder().join("slabinfo_tool.gz"));
    let proc = log::read_slabinfo_log(&oracle_folder().join("slabinfo.gz"));
    let orders = log::read_orders_log(&oracle_folder().join("orders.gz"));
    let input = SlabInput {
        slabinfo: Some(&proc),
        tool: Some(&tool),
        caches: Some(&orders),
        system: four_kib_facts(),
        ..SlabInput::default()
    };
    let oracle = read_oracle();

    let table = notebook::notebook_table(&input, usize::MAX).unwrap();
    let expected = oracle["table"].as_array().unwrap();
    assert_eq!(table.rows.len(), expected.len());
    for (row, expected) in table.rows.iter().zip(expected) {
        assert_eq!(row.name, expected[0].as_str().unwrap());
        assert_close(row.percent_efficient, &expected[1]);
        assert_close(row.space_normalized_in_kb, &expected[2]);
    }

    let timeline = notebook::notebook_timeline(&input).unwrap();
    let (unweighted, weighted) =
        (oracle["unweighted"].as_array().unwrap(), oracle["weighted"].as_array().unwrap());
    assert_eq!(timeline.points.len(), unweighted.len());
    for (point, (mean, average)) in timeline.points.iter().zip(unweighted.iter().zip(weighted)) {
        assert_close(point.at.seconds(), &mean[0]);
        assert_close(point.unweighted, &mean[1]);
        assert_close(point.weighted.unwrap(), &average[1]);
    }

    let dentry = notebook::notebook_cache(&input, "dentry").unwrap();
    let expected = oracle["dentry"].as_array().unwrap();
    assert_eq!(dentry.points.len(), expected.len());
    for (point, expected) in dentry.points.iter().zip(expected) {
        assert_close(point.percent_efficient as f64, &expected[1]);
    }

    assert_same_bins(&notebook::notebook_tool_histogram(&input).unwrap().notebook, &oracle["tool_histogram"]);
    let found = notebook::notebook_proc_histogram(&input).unwrap();
    assert_same_bins(&found.notebook, &oracle["proc_histogram"]);
    assert_eq!(found.rows as u64, oracle["proc_rows"].as_u64().unwrap());
    assert_eq!((found.rows - found.counted) as u64, oracle["proc_empty"].as_u64().unwrap());
    let ours = found.ours.unwrap();
    assert!(ours.below > 0, "what is less full than the emptiest packing is counted, too");
    assert_eq!(ours.counts.iter().sum::<usize>() + ours.below + ours.above, found.counted);
    assert_eq!(found.moving, 0, "the notebook's number is a constant of each cache");
    assert_close(notebook::notebook_minutes(&input).unwrap(), &oracle["minutes"]);
}

#[test]
fn cut_to_a_whole_number_ours_is_what_the_tool_printed() {
    let tool = log::read_tool_log(&oracle_folder().join("slabinfo_tool.gz"));
    let input = SlabInput { tool: Some(&tool), system: four_kib_facts(), ..SlabInput::default() };
    for row in notebook::notebook_table(&input, usize::MAX).unwrap().rows {
        for point in notebook::notebook_cache(&input, &row.name).unwrap().points {
            let ours = point.overall.unwrap();
            let cut = (ours.part * 100).checked_div(ours.whole).unwrap_or(100);
            assert_eq!(cut, point.percent_efficient as u128, "{}", row.name);
        }
    }
}

/// `(second, name, objects, size, space, slabs, cpu, order, percent)`
type PrintedToolRow<'a> = (u64, &'a str, i64, i64, &'a str, i64, i64, i64, i64);

fn make_tool_series(rows: &[PrintedToolRow]) -> perflab_model::series::Series {
    let mut columns = keyed_columns(&["objects", "object_size"]);
    columns.push(ColumnSpec::key("space"));
    columns.extend(int_columns(&["slabs", "cpu", "order", "efficiency_percent"]));
    let row = |(second, name, objects, size, space, slabs, cpu, order, percent): &PrintedToolRow| -> (Nanos, CellRow) {
        let mut row = vec![TableCell::Text((*name).into()), TableCell::Int(*objects), TableCell::Int(*size)];
        row.push(TableCell::Text((*space).into()));
        row.extend([slabs, cpu, order, percent].map(|number| TableCell::Int(*number)));
        (Nanos(second * 1_000_000_000), row)
    };
    make_series("slabinfo-tool", columns, rows.iter().map(row).collect())
}

#[test]
fn torn_rows_are_left_out_there_and_not_here() {
    // The seed's own: 10,368 objects of 256 bytes in (600 + 25) * 16 slots, which the tool printed as 103 %.
    let rows = make_tool_series(&[
        (0, "filp", 10_000, 256, "2.5M", 600, 25, 0, 100),
        (1, "filp", 10_368, 256, "2.5M", 600, 25, 0, 103),
        (1, ":a-0000104", 39, 104, "4.0K", 1, 0, 0, 99),
    ]);
    let input = SlabInput { tool: Some(&rows), system: four_kib_facts(), ..SlabInput::default() };
    let table = notebook::notebook_table(&input, 30).unwrap();
    assert_eq!(table.rows[1].rows, 1);
    let first = |order, top| {
        let rows = notebook::notebook_table(&input, usize::MAX).unwrap().sort_and_truncate(order, top).rows;
        rows.into_iter().map(|row| row.name).collect::<Vec<_>>()
    };
    assert_eq!(first(CacheOrder::Unweighted, 9), [":a-0000104", "filp"]);
    assert_eq!(first(CacheOrder::Bytes, 9), ["filp", ":a-0000104"]);
    assert_eq!(first(CacheOrder::Efficiency, 1), [":a-0000104"]);
    assert_eq!(first(CacheOrder::Name, 1), [":a-0000104"]);
    let ours = table.rows[1].overall.unwrap();
    assert_eq!((ours.part, ours.whole), (20_368 * 256 * 1_000_000_000, 2 * 625 * 4096 * 1_000_000_000));
    let codes: Vec<&str> = table.reasons.iter().map(NotebookDifference::code).collect();
    let expected = [
        "above-hundred-dropped",
        "floored-percentages",
        "truncated-space",
        "decimal-mega-times-1024",
        "ticks-alike",
        "absent-ticks",
        "merged-names",
        "ties-unordered",
    ];
    assert_eq!(codes, expected);
    assert_eq!(table.reasons[0], NotebookDifference::AboveHundredDropped { rows: 1 });
    let timeline = notebook::notebook_timeline(&input).unwrap();
    assert_eq!(timeline.points.len(), 2);
    assert_eq!((timeline.points[1].unweighted, timeline.points[1].weighted), (99.0, Some(99.0)));
}

#[test]
fn mega_is_a_thousand_kilo_times_1024() {
    let rows = make_tool_series(&[(0, "a", 1, 1, "96.9M", 1, 0, 0, 85), (0, "b", 1, 1, "3.1G", 1, 0, 0, 85)]);
    let input = SlabInput { tool: Some(&rows), ..SlabInput::default() };
    let table = notebook::notebook_table(&input, 30).unwrap();
    assert_eq!(table.rows.len(), 1);
    assert!((table.rows[0].space_normalized_in_kb - 99_225.6).abs() < 1e-9);
    assert!(table.rows[0].overall.is_none(), "without a page size there are no bytes");
    assert!(table.reasons.contains(&NotebookDifference::OtherUnits { rows: 1 }));
}

#[test]
fn an_order_that_is_missing_is_0_there() {
    // task_struct with order 0 instead of 3: the notebook's 718.75 %.
    let proc = make_slabinfo(&[(0, "task_struct", 5, 5, 5888, 5, 8, 1), (0, "gone", 0, 0, 64, 64, 1, 0)]);
    let orders = make_series(
        "slab-caches",
        keyed_columns(&["order"]),
        vec![(Nanos(0), vec![text_cell("gone"), TableCell::Int(0)])],
    );
    let system = SlabFacts { page_size: Some(65_536), ..SlabFacts::default() };
    let input = SlabInput { slabinfo: Some(&proc), caches: Some(&orders), system, ..SlabInput::default() };
    let found = notebook::notebook_proc_histogram(&input).unwrap();
    assert_eq!(found.notebook.edges[0], 718.75 - 0.5);
    let codes: Vec<&str> = found.reasons.iter().map(NotebookDifference::code).collect();
    let expected = [
        "capacity-as-use",
        "padded-size",
        "empty-dropped",
        "page-size-assumed",
        "order-assumed",
        "caches-alike",
    ];
    assert_eq!(codes, expected);
}

fn text_cell(text: &str) -> TableCell {
    TableCell::Text(text.into())
}

#[test]
fn without_rows_or_with_a_strange_name_there_is_an_error_that_helps() {
    let nothing = SlabInput::default();
    assert!(matches!(
        notebook::notebook_table(&nothing, 30),
        Err(SlabError::NoRows { monitor: "slabinfo-tool", .. })
    ));
    assert!(matches!(
        notebook::notebook_proc_histogram(&nothing),
        Err(SlabError::NoRows { monitor: "slabinfo", .. })
    ));
    let rows = make_tool_series(&[(0, "dentry", 1, 1, "4.0K", 1, 0, 0, 85)]);
    let input = SlabInput { tool: Some(&rows), ..SlabInput::default() };
    let error = notebook::notebook_cache(&input, "dentri").unwrap_err();
    assert_eq!(error.to_string(), "no cache `dentri`; did you mean dentry?");
}
