//! `perflab prefetch`, on a file system of the test's own that is forgotten between the steps: what is judged are pages and
//! requests, never time.

use std::path::Path;

use perflab_prefetch::{TraceStore, TracedFileSystem};
use serde_json::Value;

use crate::caches::CachesLock;
use crate::image::MountedImage;
use crate::laboratory::{CommandOutput, Sandbox, is_root, skip_test};
use crate::taken::EvictedPages;

const MODES: [&str; 3] = ["sync", "async", "staged"];

/// A program on the image, which reads files there: one whole, the beginning and the end of another, many small ones.
fn write_image_program(image: &MountedImage) -> String {
    let (whole, large) = (image.write_pages("lib/whole", 300), image.write_pages("lib/large", 2000));
    (0..40).for_each(|file| drop(image.write_pages(&format!("lib/small/{file}"), 2 + file % 3)));
    let path = image.mount_point().join("start");
    let (tail, small) = (image.write_pages("lib/tail", 900), image.mount_point().join("lib/small"));
    let script = format!(
        "#!/bin/sh\ncat {} {}/* >/dev/null\nhead -c 50000 {} >/dev/null\ntail -c 50000 {} >/dev/null\n",
        whole.display(),
        small.display(),
        large.display(),
        tail.display()
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn run_prefetch(laboratory: &Sandbox, arguments: &[&str]) -> CommandOutput {
    let store = laboratory.path("store").display().to_string();
    laboratory.run(&[&["prefetch", "--store", &store], arguments].concat())
}

/// Bytes below the image that a start read, and bytes of its own blocks.
fn measure_reads(laboratory: &Sandbox, image: &MountedImage, program: &str) -> (u64, u64) {
    laboratory.run_successfully(&["io", "record", "--", program]);
    let files = laboratory.run_successfully(&["io", "show", "--top", "100000", "--format", "json"]).out;
    let files: Vec<Value> = serde_json::from_str(&files).unwrap();
    let place = image.mount_point().display().to_string();
    let sum = |begin: &str| {
        let of = |row: &&Value| row["file"].as_str().unwrap().starts_with(begin);
        files.iter().filter(of).map(|row| row["read"].as_u64().unwrap()).sum()
    };
    (sum(&place), sum("/dev/loop"))
}

#[test]
fn what_was_learnt_is_in_memory_before_the_program_starts() {
    let Some(image) = MountedImage::new("what_was_learnt_is_in_memory_before_the_program_starts") else {
        return;
    };
    let laboratory = Sandbox::new();
    let program = write_image_program(&image);
    image.evict_files();
    let cold = measure_reads(&laboratory, &image, &program);
    assert!(cold.0 > 400 << 12 && cold.1 > 0, "{cold:?}");
    image.evict_files();
    let said = run_prefetch(&laboratory, &["--format", "json", "learn", "--", &program]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let learnt: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(learnt["source"], "traced");
    let shown = run_prefetch(&laboratory, &["show", &program, "--format", "json"]).out;
    let shown: Vec<Value> = serde_json::from_str(&shown).unwrap();
    let learnt: u64 = shown.iter().map(|row| row["data"].as_u64().unwrap()).sum();
    assert!(learnt >= cold.0, "{learnt} of {cold:?}");
    for mode in MODES {
        for order in ["need", "block", "inode", "access"] {
            image.evict_files();
            let taken = EvictedPages::on_file_system(&image.mount_point());
            let said = run_prefetch(
                &laboratory,
                &["replay", "--mode", mode, "--order", order, "--no-start", "--", &program],
            );
            assert_eq!(said.code, Some(0), "{}", said.err);
            let (data, metadata) = measure_reads(&laboratory, &image, &program);
            let left = || laboratory.run(&["io", "show"]).out;
            assert!(
                data + metadata <= taken.readable_again_bytes(),
                "{mode} in {order} order left that to be read: {}{}",
                said.err,
                left()
            );
        }
    }
}

/// Who looks something up between the dropping of caches and the start reads its folders in the program's place.
#[test]
fn the_folders_that_a_program_lies_in_are_learnt() {
    let Some(image) = MountedImage::new("the_folders_that_a_program_lies_in_are_learnt") else { return };
    let laboratory = Sandbox::new();
    image.write_pages("one/two/three/data", 1);
    let program = image.write_script("one/two/three/start", "true");
    let metadata = |store: &str, arguments: &[&str]| {
        image.evict_files();
        laboratory.run_successfully(&[arguments, &["--", &program]].concat());
        let known = TraceStore::locate(Some(Path::new(store))).read_trace(Path::new(&program)).unwrap();
        let here = |system: &&TracedFileSystem| Path::new(&system.place) == image.mount_point();
        known.starts[0].systems.iter().find(here).map_or(0, |system| system.metadata.page_count())
    };
    let stores = ["one", "two"].map(|name| laboratory.path(name).display().to_string());
    let learnt = metadata(&stores[0], &["prefetch", "--store", &stores[0], "learn", "--cold"]);
    let start =
        ["start-once", "--caches", "3", "--prefetch", "sync", "--ready-when", "exit", "--limit", "60s"];
    let started = metadata(&stores[1], &[&start[..], &["--learn", "--store", &stores[1]]].concat());
    assert!(learnt >= 4 && started >= 4, "{learnt} and {started} pages of folders and inodes");
}

#[test]
fn coverage_says_what_a_trace_lacks_and_its_classes_sum() {
    let Some(image) = MountedImage::new("coverage_says_what_a_trace_lacks_and_its_classes_sum") else {
        return;
    };
    let laboratory = Sandbox::new();
    let program = write_image_program(&image);
    image.evict_files();
    assert_eq!(run_prefetch(&laboratory, &["learn", "--", &program]).code, Some(0));
    let store = std::fs::read_dir(laboratory.path("store")).unwrap().next().unwrap().unwrap().path();
    let other = image.write_pages("lib/other", 50);
    image.evict_files();
    let both = format!("{program}; cat {} > /dev/null", other.display());
    laboratory.run_successfully(&["io", "record", "--", "sh", "-c", &both]);
    let trace = store.display().to_string();
    let lines =
        laboratory.run_successfully(&["io", "coverage", "--trace", &trace, "--blocks", "--format", "json"]);
    let lines: Vec<Value> = serde_json::from_str(&lines.out).unwrap();
    let of = |path: &Path, status: &str| -> u64 {
        let wanted = |row: &&Value| row["path"] == path.to_str().unwrap() && row["status"] == status;
        lines.iter().filter(wanted).map(|row| row["blocks"].as_u64().unwrap()).sum()
    };
    assert_eq!(of(&other, "missing"), 50);
    let whole = image.mount_point().join("lib/whole");
    assert_eq!((of(&whole, "found"), of(&whole, "missing")), (300, 0));
    let said = laboratory.run_successfully(&["io", "coverage", "--trace", &trace, "--format", "json"]);
    let rows: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let bytes =
        |name: &str| rows.iter().find(|row| row["status"] == name).unwrap()["bytes"].as_u64().unwrap();
    let names = ["found", "missing", "read around", "metadata", "before", "unknown"];
    assert_eq!(names.map(bytes).iter().sum::<u64>(), bytes("sum"));
}

#[test]
fn files_that_changed_are_left_alone_and_the_program_runs() {
    let Some(image) = MountedImage::new("files_that_changed_are_left_alone_and_the_program_runs") else {
        return;
    };
    let laboratory = Sandbox::new();
    let program = write_image_program(&image);
    image.evict_files();
    assert_eq!(run_prefetch(&laboratory, &["learn", "--", &program]).code, Some(0));
    image.write_pages("lib/whole", 3);
    std::fs::remove_file(image.mount_point().join("lib/small/7")).unwrap();
    let tail = image.mount_point().join("lib/tail");
    std::fs::rename(&tail, image.mount_point().join("lib/moved")).unwrap();
    std::os::unix::fs::symlink("/etc/shadow", &tail).unwrap();
    image.evict_files();
    let said = run_prefetch(&laboratory, &["--format", "json", "replay", "--mode", "sync", "--", &program]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let replayed: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(replayed["read"]["skipped"], 3, "{}", said.err);
    let shown = run_prefetch(&laboratory, &["show", &program, "--format", "json"]).out;
    let shown: Vec<Value> = serde_json::from_str(&shown).unwrap();
    let state_of = |name: &str| {
        let row = shown.iter().find(|row| row["file"].as_str().unwrap().ends_with(name)).unwrap();
        row["is now"].as_str().unwrap()
    };
    insta::assert_debug_snapshot!(["lib/whole", "lib/small/7", "lib/tail"].map(state_of), @r#"
    [
        "changed",
        "gone",
        "another",
    ]
    "#);
}

#[test]
fn two_scripts_behind_one_interpreter_have_a_trace_each() {
    let Some(image) = MountedImage::new("two_scripts_behind_one_interpreter_have_a_trace_each") else {
        return;
    };
    let laboratory = Sandbox::new();
    let script = |name: &str| {
        let data = image.write_pages(&format!("lib/{name}"), 50);
        image.write_script(name, &format!("cat {} > /dev/null", data.display()))
    };
    let [one, other] = ["one", "other"].map(script);
    image.evict_files();
    let inline = format!("cat {}/lib/one > /dev/null", image.mount_point().display());
    for arguments in [
        &["--", "sh", &one][..],
        &["--", "sh", "-e", &other],
        &["--name", "inline", "--", "sh", "-c", &inline],
    ] {
        image.evict_files();
        let said = run_prefetch(&laboratory, &[&["learn"], arguments].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    let json = |arguments: &[&str]| -> Vec<Value> {
        let said = run_prefetch(&laboratory, &[arguments, &["--format", "json"]].concat());
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}{}", said.out, said.err))
    };
    let mut names: Vec<Value> = json(&["show"]).iter().map(|row| row["program"].clone()).collect();
    names.sort_by_key(Value::to_string);
    let place = image.mount_point().canonicalize().unwrap();
    assert_eq!(names, [place.join("one").to_str().unwrap(), place.join("other").to_str().unwrap(), "inline"]);
    let reads = |name: &str, file: &str| {
        json(&["show", name]).iter().any(|row| row["file"].as_str().unwrap().ends_with(file))
    };
    assert!(reads(&one, "lib/one") && !reads(&one, "lib/other"));
    assert!(reads(&other, "lib/other") && !reads(&other, "lib/one"));
    assert!(reads("inline", "lib/one"));
    image.evict_files();
    let said = run_prefetch(
        &laboratory,
        &[
            "--format",
            "json",
            "replay",
            "--mode",
            "sync",
            "--no-start",
            "--name",
            "inline",
            "--",
            "sh",
            "-c",
            "true",
        ],
    );
    let replayed: Value = serde_json::from_str(&said.out).unwrap();
    assert!(said.code == Some(0) && replayed["read"]["data"].as_u64() >= Some(50 << 12), "{replayed}");
    assert_eq!(json(&["forget", "inline", &one, "nothing"]).len(), 3);
    assert_eq!(json(&["show"]).len(), 1);
}

#[test]
fn bad_traces_are_named_and_stop_no_program() {
    let laboratory = Sandbox::new();
    let file = laboratory.path("data");
    std::fs::write(&file, vec![1; 300_000]).unwrap();
    let script = laboratory.path("script");
    std::fs::write(
        &script,
        format!("#!/bin/sh\ncat {} > /dev/null; sleep 0.2; exit ${{1:-0}}\n", file.display()),
    )
    .unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = script.display().to_string();

    let said = run_prefetch(&laboratory, &["show", &program]);
    assert!(said.code == Some(2) && said.err.contains(&program), "{}", said.err);
    let said = run_prefetch(&laboratory, &["replay", "--", &program, "7"]);
    assert_eq!(said.code, Some(7), "the program's code: {}", said.err);
    // The file's name depends on the program's whole path.
    let err = said.stable_err();
    insta::assert_snapshot!(err.split("script-").next().unwrap(), @"warning: nothing is read ahead: nothing has been learnt for /tmp/.TMP/script yet: run `perflab prefetch learn` first (there is no /tmp/.TMP/store/");
    let said = run_prefetch(&laboratory, &["learn", "--", &program, "5"]);
    assert_eq!(said.code, Some(5), "{}", said.err);
    insta::assert_snapshot!("bad_traces_are_named_and_stop_no_program_3", said.stable_err());
    let said = run_prefetch(&laboratory, &["learn", "--", "/no/such/program"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!("bad_traces_are_named_and_stop_no_program_4", said.stable_err());

    let known = perflab_prefetch::ProgramTraces::new(program.clone(), rustix::process::geteuid().as_raw());
    let store = perflab_prefetch::TraceStore::locate(Some(&laboratory.path("store")));
    std::fs::create_dir_all(laboratory.path("store")).unwrap();
    let path = store.trace_path(&script.canonicalize().unwrap());
    perflab_prefetch::trace_store::write_trace_file(&path, &known).unwrap();
    let good = std::fs::read(&path).unwrap();
    let mut damaged = good.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let newer = [&good[..8], &9_u32.to_le_bytes(), &good[12..]].concat();
    let reasons = [&damaged[..], &good[..20], b"something else", &newer[..]].map(|bytes| {
        std::fs::write(&path, bytes).unwrap();
        let shown = run_prefetch(&laboratory, &["show", &program]);
        assert_eq!(shown.code, Some(2), "{}", shown.err);
        let replayed = run_prefetch(&laboratory, &["replay", "--", &program]);
        assert_eq!(replayed.code, Some(0), "{}", replayed.err);
        // The file's name has a hash of its place.
        let reason = |said: &CommandOutput| {
            said.err.lines().next().unwrap().split_once(".prefetch ").unwrap().1.to_owned()
        };
        assert_eq!(reason(&shown), reason(&replayed));
        reason(&shown)
    });
    insta::assert_snapshot!(reasons.join("\n"), @"
    is damaged: its checksum is another one; `perflab prefetch learn` makes it anew
    is damaged: it ends within its head; `perflab prefetch learn` makes it anew
    is no prefetch trace of perflab: it does not begin with PLPREFET
    is of format 9, and this perflab reads up to 1: update perflab, or learn anew
    ");
    assert_eq!(run_prefetch(&laboratory, &["forget", &program]).code, Some(0));
    assert!(!path.exists());
}

#[test]
fn nobody_learns_their_own_files_by_residency() {
    let name = "nobody_learns_their_own_files_by_residency";
    if !is_root() {
        return skip_test(name, "becoming nobody needs root");
    }
    // What is learnt is what stays in memory.
    let _caches = CachesLock::acquire();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let here = |name: &str| home.path().join(name);
    std::fs::write(here("data"), vec![1; 300_000]).unwrap();
    std::fs::write(
        here("script"),
        format!("#!/bin/sh\nexec 3<{}; cat <&3 >/dev/null; sleep 0.5\n", here("data").display()),
    )
    .unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_perflab"), here("perflab")).unwrap();
    for name in ["", "data", "script", "perflab"] {
        std::os::unix::fs::chown(here(name), Some(65534), Some(65534)).unwrap();
        std::fs::set_permissions(here(name), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let perflab = |arguments: &[&str]| {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(here("perflab"));
        command.args(["prefetch", "--store"]).arg(here("store")).args(arguments).current_dir(home.path());
        crate::laboratory::to_command_output(command.output().unwrap())
    };
    let script = here("script").display().to_string();
    let said = perflab(&["--format", "json", "learn", "--", &script]);
    if said.code == Some(1) {
        return skip_test(name, "nobody cannot reach the folder of the build");
    }
    assert_eq!(said.code, Some(0), "{}", said.err);
    let learnt: Value = serde_json::from_str(&said.out).unwrap();
    insta::assert_snapshot!(learnt["source"].as_str().unwrap(), @"residency");
    let shown: Value = serde_json::from_str(&perflab(&["show", &script, "--format", "json"]).out).unwrap();
    let own = shown.as_array().unwrap().iter().find(|row| row["file"] == here("data").to_str().unwrap());
    assert_eq!(own.unwrap()["data"], 74 * 4096, "{shown}");
    let said = perflab(&["replay", "--", &script]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    insta::assert_snapshot!("nobody_learns_their_own_files_by_residency_2", said.stable_err());
    for name in ["data", "script"] {
        let file = std::fs::File::open(here(name)).unwrap();
        rustix::fs::fsync(&file).unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    }
    let said = perflab(&["--format", "json", "replay", "--", &script]);
    let replayed: Value = serde_json::from_str(&said.out).unwrap();
    assert!(said.code == Some(0) && replayed["read"]["data"].as_u64() > Some(0), "{replayed} {}", said.err);
}

/// Whatever the program prints itself.
#[test]
fn learning_and_reading_ahead_print_one_document_of_json() {
    let Some(image) = MountedImage::new("learning_and_reading_ahead_print_one_document_of_json") else {
        return;
    };
    let laboratory = Sandbox::new();
    let data = image.write_pages("data", 50);
    let program =
        image.write_script("start", &format!("cat {} > /dev/null; echo own words; exit $1", data.display()));
    let name = Path::new(&program).canonicalize().unwrap();
    let document = |code: i32, arguments: &[&str]| -> Value {
        image.evict_files();
        let said = run_prefetch(&laboratory, &[&["--format", "json"], arguments].concat());
        assert_eq!(said.code, Some(code), "{arguments:?}: {}", said.err);
        let has_words = said.err.lines().any(|line| line == "own words");
        assert_eq!(has_words, !arguments.contains(&"--no-start"), "{arguments:?}: {}", said.err);
        let document: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(document["program"], name.to_str().unwrap());
        document
    };
    let failed = document(3, &["learn", "--", &program, "3"]);
    assert_eq!((&failed["exit"], &failed["trace"]), (&3.into(), &Value::Null));
    let unknown = document(0, &["replay", "--", &program, "0"]);
    assert_eq!((&unknown["exit"], &unknown["read"]), (&0.into(), &Value::Null));
    let learnt = document(0, &["learn", "--", &program, "0"]);
    assert!(learnt["data"].as_u64() >= Some(50 << 12) && learnt["source"] == "traced", "{learnt}");
    assert!(Path::new(learnt["trace"].as_str().unwrap()).is_file(), "{learnt}");
    let read = document(5, &["replay", "--mode", "sync", "--", &program, "5"]);
    assert_eq!((&read["exit"], &read["read"]["data"]), (&5.into(), &learnt["data"]));
    let ahead = document(0, &["replay", "--no-start", "--", &program]);
    assert_eq!((&ahead["exit"], &ahead["read"]["files"]), (&Value::Null, &learnt["files"]));
}
