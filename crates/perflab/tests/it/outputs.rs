//! Files for people: whole or not at all, on standard output where they are called so.

use std::fs;

use crate::laboratory::Sandbox;

#[test]
fn a_file_goes_to_stdout_where_it_is_called_so() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("one", 100);
    laboratory.run_echo("two", 100);
    let report = laboratory.run_successfully(&["report", "one", "-o", "-"]).out;
    assert!(report.starts_with("<!doctype html>") && report.trim_end().ends_with("</html>"), "{report:.80}");
    let plot = laboratory.run_successfully(&["history", "--label", "one", "-o", "-"]);
    assert!(plot.out.starts_with("<svg") && plot.out.trim_end().ends_with("</svg>"), "{:.80}", plot.out);
    assert!(!plot.err.is_empty(), "the table is talk then");
    let packed = laboratory.command(&["export", "one", "-o", "-"]).output().unwrap();
    fs::write(laboratory.path("one.perflab"), &packed.stdout).unwrap();
    assert!(laboratory.shown_metrics("one.perflab").contains("speed"));
    assert!(!laboratory.path("-").exists());
}

#[test]
fn a_folder_that_is_not_there_is_told_before_any_work() {
    let laboratory = Sandbox::new();
    let errors = [
        &["report", "none", "-o", "nowhere/r.html"][..],
        &["history", "-o", "nowhere/h.svg"],
        &["slab", "record", "-o", "nowhere/s.svg", "--", "touch", "done"],
        &["export", "none", "nowhere/e.perflab"],
        &["study", "new", "nowhere/s.toml"],
    ]
    .map(|words| {
        let told = laboratory.run(words);
        assert_eq!(told.code, Some(2), "{words:?}: {}", told.err);
        told.err.lines().next().unwrap().to_owned()
    });
    insta::assert_snapshot!(errors.join("\n"), @"
    error: invalid value 'nowhere/r.html' for '--output <FILE>': there is no folder nowhere; make it first: mkdir -p nowhere
    error: invalid value 'nowhere/h.svg' for '--output <FILE>': there is no folder nowhere; make it first: mkdir -p nowhere
    error: invalid value 'nowhere/s.svg' for '--output <FILE>': there is no folder nowhere; make it first: mkdir -p nowhere
    error: invalid value 'nowhere/e.perflab' for '[FILE]': there is no folder nowhere; make it first: mkdir -p nowhere
    error: invalid value 'nowhere/s.toml' for '<FILE>': there is no folder nowhere; make it first: mkdir -p nowhere
    ");
    assert!(!laboratory.path("done").exists());
}

/// A report that cannot be written leaves the one before, and nothing else.
#[test]
fn a_report_is_written_whole_or_not_at_all() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("one", 100);
    let report = laboratory.path("r.html");
    fs::write(&report, "the one before").unwrap();
    let mut command = laboratory.command(&["report", "one", "-o", report.to_str().unwrap()]);
    let limited = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(laboratory.home.path())
        .output()
        .unwrap();
    assert!(!limited.status.success());
    assert_eq!(fs::read_to_string(&report).unwrap(), "the one before");
    let rest = fs::read_dir(laboratory.home.path()).unwrap().flatten();
    assert_eq!(rest.filter(|entry| entry.file_name().to_string_lossy().ends_with(".tmp")).count(), 0);
    assert!(command.status().unwrap().success());
    assert!(fs::metadata(&report).unwrap().len() > 8 * 1024);
}
