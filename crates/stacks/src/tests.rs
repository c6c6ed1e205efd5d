use std::io::Read;
use std::process::Command;

use perflab_model::profile::{Profile, ProfileSummary, StackTreeBuilder};
use perflab_model::{FrameKind, Nanos, StackFrame, StackSample, Unit};

use crate::*;

/// Two commands, kernel and user functions, a sample without a stack.
fn make_profile() -> Profile {
    let mut weaver = StackTreeBuilder::default();
    let frame = |raw: &str, kind| StackFrame::new(raw, kind);
    let (kernel, user) = (FrameKind::Kernel, FrameKind::User);
    let main =
        weaver.intern_frame(StackFrame { module: Some("/usr/bin/hackbench".into()), ..frame("main", user) });
    let write = weaver.intern_frame(frame("ksys_write", kernel));
    let alloc = weaver.intern_frame(frame("kmem_cache_alloc_node_noprof", kernel));
    let outer = weaver.intern_node(None, main);
    let middle = weaver.intern_node(Some(outer), write);
    let inner = weaver.intern_node(Some(middle), alloc);
    let (hackbench, idle) = (weaver.intern_comm("hackbench"), weaver.intern_comm("swapper/0"));
    let sample = |at: u64, comm, pid, leaf, count: u64| StackSample {
        at: Some(Nanos(1_000_000_000 + at * 2_000_000)),
        cpu: Some(0),
        pid: Some(pid),
        tid: Some(pid),
        comm,
        leaf,
        count,
        weight: count * 2_000_000,
    };
    let samples = vec![
        sample(0, hackbench, 7, Some(inner), 1),
        sample(1, hackbench, 7, Some(middle), 1),
        sample(2, idle, 0, None, 1),
        sample(3, hackbench, 8, Some(inner), 1),
    ];
    let mut profile = Profile::default();
    profile.add_batch(weaver.take_batch(0, samples));
    let (source, event) = ("perf.data".into(), "cpu-clock".into());
    profile.add_summary(ProfileSummary {
        source,
        event,
        frequency: Some(499),
        unit: Unit::new("ns"),
        ..ProfileSummary::default()
    });
    profile
}

fn select_all(profile: &Profile) -> ProfileSelection<'_> {
    ProfileSelection { name: "a run", profile, slots: None }
}

#[test]
fn folded_text_comes_back_through_our_own_import() {
    let written = write_folded(select_all(&make_profile()));
    insta::assert_snapshot!(written);
    let read = crate::folded::read_folded(written.as_bytes());
    assert_eq!((read.samples.len(), read.about.unreadable), (3, 0));
    let mut again = Profile::default();
    let imported = read.finish();
    again.add_batch(imported.batch);
    assert_eq!(write_folded(select_all(&again)), written, "names keep what compilers added");
}

#[test]
fn slots_that_were_not_chosen_are_not_written() {
    let profile = make_profile();
    assert_eq!(write_folded(ProfileSelection { slots: Some(&[1]), ..select_all(&profile) }), "");
    assert_eq!(
        write_folded(ProfileSelection { slots: Some(&[0]), ..select_all(&profile) }),
        write_folded(select_all(&profile))
    );
}

#[test]
fn speedscope_is_told_every_sample() {
    let value: serde_json::Value =
        serde_json::from_str(&write_speedscope(select_all(&make_profile()))).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&value).unwrap());
}

#[test]
fn the_firefox_profiler_is_told_threads_and_times() {
    let value: serde_json::Value =
        serde_json::from_str(&write_firefox(select_all(&make_profile())).unwrap()).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&value).unwrap());
}

#[test]
fn go_reads_pprof() {
    let bytes = write_pprof(select_all(&make_profile())).unwrap();
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain).unwrap();
    assert!(plain.windows(11).any(|window| window == b"nanoseconds"));
    let Some(go) = find_go_tool() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pb.gz");
    std::fs::write(&file, bytes).unwrap();
    let top = |type_: &str| {
        let index = format!("-sample_index={type_}");
        let run =
            Command::new(&go).args(["tool", "pprof", "-top", "-nodecount=9", &index]).arg(&file).output();
        let run = run.unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).unwrap()
    };
    let counted = top("samples");
    for requested in ["of 4 total", "kmem_cache_alloc_node", "[no stack]", "ksys_write"] {
        assert!(counted.contains(requested), "{requested} is not in:\n{counted}");
    }
    let inclusive = counted.lines().find(|line| line.ends_with("ksys_write")).unwrap();
    let numbers: Vec<&str> = inclusive.split_whitespace().collect();
    assert_eq!((numbers[0], numbers[3]), ("1", "3"), "self and inclusive: {inclusive}");
    let weighed = top("cpu");
    assert!(weighed.contains("of 8ms total"), "{weighed}");
}

/// The Go tool, which reads pprof; a missing one is an error where everything is required.
fn find_go_tool() -> Option<std::path::PathBuf> {
    let places = ["/usr/local/go/bin/go", "/usr/bin/go"].map(std::path::PathBuf::from);
    let found = places.into_iter().find(|place| place.exists());
    if found.is_none() {
        let required = std::env::var_os("PERFLAB_REQUIRE_ALL").is_some_and(|value| value == "1");
        assert!(!required, "go is missing: apt install golang-go");
        eprintln!("SKIP go_reads_pprof: go is missing (apt install golang-go)");
    }
    found
}
