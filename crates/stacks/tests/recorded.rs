//! Profiles that perf recorded in every way that it has: what is read of them is what `perf script` prints of them.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use perflab_model::{NodeId, StackSample};
use perflab_stacks::{ImportedProfile, SymbolOptions, read_profile_file};

fn data_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Reads a recording with the kernel's symbols of then, and without any program's.
fn read_recording(path: &Path, event: Option<&str>) -> Result<ImportedProfile, String> {
    let nothing = tempfile::tempdir().unwrap();
    let options = SymbolOptions {
        event: event.map(str::to_owned),
        kallsyms: Some(data_path("kallsyms")),
        symfs: Some(nothing.path().to_owned()),
        anchors: vec!["kfree".into(), "do_syscall_64".into()],
        ..SymbolOptions::default()
    };
    read_profile_file(path, None, &options).map_err(|error| error.to_string())
}

/// Samples and the sum of their weights.
fn totals(profile: &ImportedProfile) -> (usize, u64) {
    (profile.batch.samples.len(), profile.batch.samples.iter().map(|sample| sample.weight).sum())
}

/// `perf script -F event,period`: how many samples of each event, and the sum of their periods.
#[test]
fn samples_and_periods_are_those_that_perf_script_prints() {
    let expected = [
        ("cpu.data", None, (51, 256_281_375)),
        ("dwarf.data", None, (8, 163_265_304)),
        ("compressed.data", None, (40, 201_005_000)),
        ("pipe.data", None, (43, 216_080_375)),
        ("group.data", Some("cpu-clock"), (20, 100_502_500)),
        ("events.data", Some("cpu-clock"), (42, 211_055_250)),
        ("events.data", Some("page-faults"), (5, 426)),
        ("system.data", None, (58, 585_858_580)),
    ];
    for (name, event, expected) in expected {
        assert_eq!(totals(&read_recording(&data_path(name), event).unwrap()), expected, "{name} {event:?}");
    }
}

/// Frames of a sample, the outermost first.
fn folded_stack(profile: &ImportedProfile, sample: &StackSample) -> String {
    let node = |id: NodeId| profile.batch.nodes[id.0 as usize];
    let chain = std::iter::successors(sample.leaf, |leaf| node(*leaf).parent);
    let mut names: Vec<String> =
        chain.map(|id| profile.batch.frames[node(id).frame.0 as usize].name.clone()).collect();
    names.push(profile.batch.comms[sample.comm.0 as usize].clone());
    names.reverse();
    names.join(";")
}

/// All that is known of a profile.
fn describe_profile(profile: &ImportedProfile) -> String {
    let mut text = String::new();
    let about = &profile.about;
    let _ = writeln!(
        text,
        "{} {} at {:?} Hz in {}, {} lost, {} unreadable, hides {:?}",
        about.source, about.event, about.frequency, about.unit.0, about.lost, about.unreadable, about.hides
    );
    let _ = writeln!(text, "begun {:?}, {:?}", profile.begun, profile.sample_parts());
    for anchor in &about.anchors {
        let _ = writeln!(text, "anchor {} {}", anchor.name, anchor.start);
    }
    for (key, fact) in profile.facts.clone() {
        let _ = writeln!(text, "{key} = {fact:?}");
    }
    for note in &profile.notes {
        let _ = writeln!(text, "note: {}; {}", note.message, note.advice);
    }
    for remark in &profile.remarks {
        let _ = writeln!(text, "remark: {}: {}", remark.place, remark.reason);
    }
    let mut stacks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for sample in &profile.batch.samples {
        let at = sample.at.map_or("-".into(), |at| (at.0 / 1_000).to_string());
        let (cpu, task) = (sample.cpu.map_or("-".into(), |cpu| cpu.to_string()), sample.pid == sample.tid);
        let line = format!("{at}/{cpu}/{}{}", sample.weight, if task { "" } else { "/thread" });
        stacks.entry(folded_stack(profile, sample)).or_default().push(line);
    }
    for (stack, samples) in stacks {
        let _ = writeln!(text, "{stack} {}", samples.join(" "));
    }
    text
}

#[test]
fn what_is_read_of_each_way_to_record_stays_as_it_is() {
    for name in ["cpu", "dwarf", "compressed", "pipe", "group", "events", "system"] {
        let profile = read_recording(&data_path(&format!("{name}.data")), None).unwrap();
        insta::assert_snapshot!(format!("recorded_{name}"), describe_profile(&profile));
    }
    let leader = read_recording(&data_path("group.data"), Some("page-faults")).unwrap();
    insta::assert_snapshot!("recorded_group_member", describe_profile(&leader));
    let unknown = read_recording(&data_path("events.data"), Some("cycles")).unwrap_err();
    insta::assert_snapshot!("recorded_unknown_event", unknown.rsplit('/').next().unwrap());
}

/// A file that is cut anywhere gives the samples before the cut, or says why there are none; it never gives more.
#[test]
fn a_cut_file_gives_what_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.data");
    for name in ["cpu.data", "pipe.data", "compressed.data"] {
        let whole = std::fs::read(data_path(name)).unwrap();
        let all = totals(&read_recording(&data_path(name), None).unwrap());
        let mut last = 0;
        for share in 1..40 {
            std::fs::write(&path, &whole[..whole.len() * share / 40]).unwrap();
            let Ok(profile) = read_recording(&path, None) else {
                assert_eq!(last, 0, "{name}: more of it is less");
                continue;
            };
            let (found, _) = totals(&profile);
            assert!(last <= found && found <= all.0, "{name}: {last}, then {found} of {}", all.0);
            // A pipe that ends with a record may have ended there; behind the records, parts of the description are missed.
            let is_told = !profile.remarks.is_empty();
            assert!(is_told || name == "pipe.data", "{name}, {share} of 40: {:?}", profile.notes);
            last = found;
        }
        assert!(last > all.0 / 2, "{name}: {last} of {}", all.0);
    }
}
