//! Every monitor on recorded trees.

use perflab_model::series::ColumnKind;
use perflab_model::{CellRow, TableCell};
use proptest::prelude::*;

use super::*;
use crate::monitor::text_format::{self, MalformedLine};
use crate::monitor::{kvm_stats, slabinfo};
use crate::{ObserveError, Root};

type TextRowParser = fn(&str, &mut Vec<CellRow>) -> Result<(), MalformedLine>;

const PARSERS: &[(&str, TextRowParser)] = &[
    ("slabinfo", slabinfo::parse_slabinfo),
    ("slab-caches", |text, rows| {
        slab_caches::parse_slab_caches_row(text, rows);
        Ok(())
    }),
    ("slab-exact", |text, rows| {
        slab_exact::parse_slab_exact_rows(text, rows);
        Ok(())
    }),
    ("stat", stat::parse_stat),
    ("diskstats", diskstats::parse_diskstats),
    ("pressure", |text, rows| pressure::parse_pressure("cpu", text, rows)),
    ("loadavg", loadavg::parse_loadavg),
    ("net-dev", net_dev::parse_net_dev),
    ("schedstat", schedstat::parse_schedstat),
    ("kvm", |text, rows| {
        rows.push(vec![kvm_stats::parse_count_cell(text)]);
        Ok(())
    }),
    ("vmstat", |text, rows| {
        text_format::parse_name_value_row(
            text,
            &text_format::discover_columns(text, vmstat::discover_vmstat_column)?,
        )
        .map(|row| rows.push(row))
    }),
    ("meminfo", |text, rows| {
        text_format::parse_name_value_row(
            text,
            &text_format::discover_columns(text, meminfo::discover_meminfo_column)?,
        )
        .map(|row| rows.push(row))
    }),
];

/// Texts that look like the kernel's: its words, numbers of all sizes, its separators, in any order.
fn any_kernel_like_text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("slabinfo - version: 2.1\n".to_owned()),
        Just("version 15\n".to_owned()),
        Just("Inter-|\n face\n".to_owned()),
        Just("cpu".to_owned()),
        Just("some avg10=".to_owned()),
        Just(" : tunables 0 0 0 : slabdata".to_owned()),
        "[ \n:/=.#-]{1,3}",
        "[a-z0-9_()]{1,12}",
        Just(" N0=".to_owned()),
        any::<u64>().prop_map(|number| format!(" {number}")),
        "\\PC{0,8}",
    ];
    proptest::collection::vec(word, 0..60).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic_and_rows_have_their_shape(text in any_kernel_like_text()) {
        for (name, parse) in PARSERS {
            let mut rows = Vec::new();
            let parsed = parse(&text, &mut rows);
            let declared = find_monitor(name).unwrap().columns.len();
            let shape = if declared == 0 { rows.first().map_or(0, Vec::len) } else { declared };
            prop_assert!(parsed.is_err() || rows.iter().all(|row| row.len() == shape), "{name}: {rows:?}");
        }
    }

    #[test]
    fn arbitrary_text_is_never_a_panic(text in any::<String>()) {
        for (_, parse) in PARSERS {
            parse(&text, &mut Vec::new()).ok();
        }
    }

    #[test]
    fn a_cache_survives_being_written_and_read(name in "[a-zA-Z:][a-zA-Z0-9_ :()-]{0,20}[a-z0-9)]", numbers in any::<[u32; 7]>()) {
        let [a, b, c, d, e, f, g] = numbers;
        let line = format!("{name} {a} {b} {c} {d} {e} : tunables 0 0 0 : slabdata {f} {g} 0");
        let mut rows = Vec::new();
        prop_assert_eq!(slabinfo::parse_slabinfo(&format!("slabinfo - version: 2.1\n# name\n{line}\n"), &mut rows), Ok(()));
        let mut expected = vec![TableCell::Text(name), TableCell::Int(0)];
        expected.extend(numbers.map(|number| TableCell::Int(i64::from(number))));
        expected.push(TableCell::Text(String::new()));
        prop_assert_eq!(rows, vec![expected]);
    }
}

#[test]
fn every_monitor_has_a_parser_that_was_fed_rubbish() {
    let tested: Vec<&str> = PARSERS.iter().map(|(name, _)| *name).collect();
    assert!(all_monitors().iter().all(|kind| tested.contains(&kind.name)));
}

#[test]
fn what_does_not_fit_is_missing_rather_than_wrong() {
    let mut rows = Vec::new();
    let text = format!("cpu  {} 1 2 3\nctxt 5\n", u64::MAX);
    stat::parse_stat(&text, &mut rows).unwrap();
    assert_eq!(rows[0][1..4], [TableCell::Missing, TableCell::Int(10_000_000), TableCell::Int(20_000_000)]);
    assert_eq!(rows[0][12], TableCell::Int(5));
}

#[test]
fn rules_of_vmstat() {
    let kind = |name: &str| {
        let found = vmstat::discover_vmstat_column(name, "");
        (found.column.kind, found.column.unit.0, found.scale)
    };
    assert_eq!(kind("nr_free_pages"), (ColumnKind::Gauge, "pages".into(), 1));
    assert_eq!(kind("nr_dirtied"), (ColumnKind::Counter, "pages".into(), 1));
    assert_eq!(kind("nr_kernel_stack"), (ColumnKind::Gauge, "bytes".into(), 1024));
    assert_eq!(kind("pgpgin"), (ColumnKind::Counter, "bytes".into(), 1024));
    assert_eq!(kind("pgmajfault"), (ColumnKind::Counter, "1".into(), 1));
    assert_eq!(kind("thp_fault_alloc"), (ColumnKind::Counter, "1".into(), 1));
}

#[test]
fn a_wide_file_may_change_its_order_and_its_names() {
    let found = text_format::discover_columns("a 1\nb 2\n", vmstat::discover_vmstat_column).unwrap();
    assert_eq!(
        text_format::parse_name_value_row("b 3\nnew 4\na 5\n", &found),
        Ok(vec![TableCell::Int(5), TableCell::Int(3)])
    );
    assert_eq!(
        text_format::parse_name_value_row("b 3\n", &found),
        Ok(vec![TableCell::Missing, TableCell::Int(3)])
    );
    assert!(text_format::parse_name_value_row("", &found).is_err());
    let error = text_format::parse_name_value_row("a x\n", &found).unwrap_err();
    assert_eq!((error.line, error.description.as_str()), (1, "a number was expected for a, found `x`"));
}

#[test]
fn a_strange_name_gets_the_nearest_one() {
    let error = find_monitor("slabinf").unwrap_err();
    assert_eq!(error.to_string(), "`slabinf` is no monitor; did you mean `slabinfo`?");
}

#[test]
fn files_longer_than_the_buffer_and_bytes_that_are_no_text() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("proc")).unwrap();
    let mut text = b"cpu 1 2 3\nname\xff\xfe 1\n".to_vec();
    text.extend("cpu0 1\n".repeat(20_000).bytes());
    std::fs::write(root.path().join("proc/stat"), text).unwrap();
    let kind = find_monitor("stat").unwrap();
    let mut monitor = open_monitor(kind, &Root(root.path().into()), perflab_model::Nanos(1)).unwrap();
    let mut rows = Vec::new();
    monitor.read_rows(&mut rows).unwrap();
    assert_eq!(rows.len(), 20_001);
}

#[test]
fn a_text_that_is_not_understood_names_file_and_line() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("proc")).unwrap();
    std::fs::write(root.path().join("proc/loadavg"), "0.1 0.2 oops 1/2 3\n").unwrap();
    let mut monitor =
        open_monitor(find_monitor("loadavg").unwrap(), &Root(root.path().into()), perflab_model::Nanos(1))
            .unwrap();
    let error: ObserveError = monitor.read_rows(&mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "/proc/loadavg, line 1: a number was expected for load_15, found `oops`");
}
