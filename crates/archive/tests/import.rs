//! Other tools' results become ordinary runs.

use std::fs;

use perflab_archive::{Archive, Kind, Options, import_foreign};
use perflab_model::Nanos;

const HEAD: &str = "slabinfo - version: 2.1\n# name <active_objs> <num_objs>\n";

#[test]
fn two_dumps_with_times_become_two_ticks() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let row = "dentry 10 42 192 21 1 : tunables 0 0 0 : slabdata 2 2 0\n";
    fs::write(&log, format!("time: 100\n{HEAD}{row}{row}time: 103\n{HEAD}{row}")).unwrap();
    let archive = Archive::open(&directory.path().join("archive")).unwrap();
    let options = Options { label: Some("old".into()), ..Options::default() };
    let imported = import_foreign(&archive, &log, &options).unwrap();
    assert_eq!(imported.kind, Kind::Dump);
    assert_eq!(imported.took[0].counts(), "3 rows read, 3 used, 0 flagged, 0 unusable");
    assert_eq!(imported.run.series("slabinfo").unwrap().at, [0, 0, 3].map(|s| Nanos(s * 1_000_000_000)));
}
