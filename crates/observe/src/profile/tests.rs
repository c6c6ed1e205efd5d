use std::fs;
use std::time::{Duration, Instant};

use perflab_model::Nanos;
use perflab_model::profile::FrameKind;
use perflab_stacks::LiveProfile;

use super::*;
use crate::Root;

/// This very process.
fn own_process_scope() -> SamplingScope {
    SamplingScope::Process(std::process::id().try_into().unwrap())
}

/// Enters the kernel over and over for a while.
fn keep_kernel_busy() {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(300) {
        let _ = fs::read("/proc/self/stat");
    }
}

/// The same in a child, which is ended.
fn run_busy_child() {
    let command = "timeout 0.3 sh -c 'while :; do :; done'";
    std::process::Command::new("sh").args(["-c", command]).status().unwrap();
}

#[test]
fn own_work_is_seen_with_its_time_in_the_kernel() {
    let root = Root::host();
    let chosen = match check_stack_sampling(&root, own_process_scope(), 999) {
        Ok(chosen) => chosen,
        Err(error) => {
            assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{error}");
            eprintln!("SKIP own_work_is_seen: {error}");
            return;
        }
    };
    let recorder = StackSampler::start(&root, own_process_scope(), 999).unwrap();
    assert_eq!(recorder.event(), chosen);
    keep_kernel_busy();
    let (recording, cost) = recorder.stop().unwrap();
    let mut live = LiveProfile::new(&[]).unwrap();
    let (batch, about) = live.convert(&recording, 0);
    assert!(about.lost == 0 && cost < Nanos(300_000_000), "{about:?} {cost}");
    let own = i32::try_from(std::process::id()).unwrap();
    // Threads of other tests are this process's, too, and so are their children.
    let of_own = batch.samples.iter().filter(|one| one.pid == Some(own)).count();
    assert!(of_own > 20, "{of_own} of {}", batch.samples.len());
    let kinds: Vec<FrameKind> = batch.frames.iter().map(|frame| frame.kind).collect();
    assert!(kinds.contains(&FrameKind::Kernel) && kinds.contains(&FrameKind::User));
    assert!(batch.frames.iter().any(|frame| frame.name == "vfs_read"), "{:?}", batch.frames);
    assert!(batch.samples.is_sorted_by_key(|one| one.at));
}

#[test]
fn who_records_is_not_among_its_children() {
    let root = Root::host();
    if let Err(error) = check_stack_sampling(&root, SamplingScope::Children, 999) {
        assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{error}");
        eprintln!("SKIP who_records_is_not_among_its_children: {error}");
        return;
    }
    let recorder = StackSampler::start(&root, SamplingScope::Children, 999).unwrap();
    keep_kernel_busy();
    run_busy_child();
    keep_kernel_busy();
    let (recording, _) = recorder.stop().unwrap();
    let (batch, _) = LiveProfile::new(&[]).unwrap().convert(&recording, 0);
    assert!(batch.samples.len() > 20, "{}", batch.samples.len());
    let comms: std::collections::BTreeSet<&str> =
        batch.samples.iter().map(|one| batch.comms[one.comm.0 as usize].as_str()).collect();
    assert!(comms.iter().all(|comm| ["sh", "timeout"].contains(comm)), "{comms:?}");
}

#[test]
fn what_there_is_no_room_for_is_counted() {
    let root = Root::host();
    if let Err(error) = check_stack_sampling(&root, SamplingScope::Children, 4999) {
        assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{error}");
        eprintln!("SKIP what_there_is_no_room_for: {error}");
        return;
    }
    const ROOM: usize = 10_000;
    let recorder = StackSampler::start_with_limit(&root, SamplingScope::Children, 4999, ROOM).unwrap();
    run_busy_child();
    run_busy_child();
    let (recording, _) = recorder.stop().unwrap();
    let kept: usize = recording.buffers.iter().map(Vec::len).sum();
    assert!(kept <= ROOM && recording.lost > 0, "{kept} bytes, {} lost", recording.lost);
    let (batch, about) = LiveProfile::new(&[]).unwrap().convert(&recording, 0);
    assert!(about.lost >= recording.lost);
    // 4999 a second of CPU, of 0.6 s at most.
    let all = batch.samples.len() as u64 + about.lost;
    assert!((20..4999).contains(&all), "{} kept, {} lost", batch.samples.len(), about.lost);
}

#[test]
fn a_process_that_is_not_there_is_named() {
    let error = StackSampler::start(&Root::host(), SamplingScope::Process(i32::MAX - 1), 99).map(drop);
    let Err(error) = error else { panic!("there is no such process") };
    let text = error.to_string();
    assert!(text.contains("there is no process 2147483646") || text.contains("refuses to sample"), "{text}");
}

#[test]
fn online_cpus_are_ranges() {
    let tree = tempfile::tempdir().unwrap();
    let folder = tree.path().join("sys/devices/system/cpu");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("online"), "0-2,5\n").unwrap();
    assert_eq!(event::online_cpus(&Root(tree.path().into())), [0, 1, 2, 5]);
}

#[test]
fn hidden_names_are_refused_with_the_setting() {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir_all(tree.path().join("proc")).unwrap();
    fs::write(tree.path().join("proc/kallsyms"), "0000000000000000 T _stext\n").unwrap();
    let error = recorder::read_kernel_symbols(&Root(tree.path().into())).unwrap_err().to_string();
    assert!(error.contains("kernel.kptr_restrict"), "{error}");
}
