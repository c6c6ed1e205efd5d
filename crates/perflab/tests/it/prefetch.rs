//! `perflab prefetch`, on a file system of the test's own that is forgotten between the steps: what is judged are pages and
//! requests, never time.

use std::path::Path;

use perflab_prefetch::{FileSystem, Store};
use serde_json::Value;

use crate::caches::Caches;
use crate::image::Image;
use crate::laboratory::{Laboratory, Said, is_root, skip};
use crate::taken::Taken;

const MODES: [&str; 3] = ["sync", "async", "staged"];

/// A program on the image, which reads files there: one whole, the beginning and the end of another, many small ones.
fn program(image: &Image) -> String {
    let (whole, large) = (image.write("lib/whole", 300), image.write("lib/large", 2000));
    (0..40).for_each(|file| drop(image.write(&format!("lib/small/{file}"), 2 + file % 3)));
    let path = image.place().join("start");
    let (tail, small) = (image.write("lib/tail", 900), image.place().join("lib/small"));
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

fn prefetch(laboratory: &Laboratory, arguments: &[&str]) -> Said {
    let store = laboratory.path("store").display().to_string();
    laboratory.run(&[&["prefetch", "--store", &store], arguments].concat())
}

/// Bytes below the image that a start read, and bytes of its own blocks.
fn read_by(laboratory: &Laboratory, image: &Image, program: &str) -> (u64, u64) {
    laboratory.good(&["io", "record", "--", program]);
    let files = laboratory.good(&["io", "show", "--top", "100000", "--format", "json"]).out;
    let files: Vec<Value> = serde_json::from_str(&files).unwrap();
    let place = image.place().display().to_string();
    let sum = |begin: &str| {
        let of = |row: &&Value| row["file"].as_str().unwrap().starts_with(begin);
        files.iter().filter(of).map(|row| row["read"].as_u64().unwrap()).sum()
    };
    (sum(&place), sum("/dev/loop"))
}

#[test]
fn what_was_learnt_is_in_memory_before_the_program_starts() {
    let Some(image) = Image::new("what_was_learnt_is_in_memory_before_the_program_starts") else { return };
    let laboratory = Laboratory::new();
    let program = program(&image);
    image.cool();
    let cold = read_by(&laboratory, &image, &program);
    assert!(cold.0 > 400 << 12 && cold.1 > 0, "{cold:?}");
    image.cool();
    let said = prefetch(&laboratory, &["learn", "--", &program]);
    assert!(said.code == Some(0) && said.err.contains("traced"), "{}", said.err);
    let shown = prefetch(&laboratory, &["show", &program, "--format", "json"]).out;
    let shown: Vec<Value> = serde_json::from_str(&shown).unwrap();
    let learnt: u64 = shown.iter().map(|row| row["data"].as_u64().unwrap()).sum();
    assert!(learnt >= cold.0, "{learnt} of {cold:?}");
    for mode in MODES {
        for order in ["need", "block", "inode", "access"] {
            image.cool();
            let taken = Taken::of(&image.place());
            let said = prefetch(
                &laboratory,
                &["replay", "--mode", mode, "--order", order, "--no-start", "--", &program],
            );
            assert_eq!(said.code, Some(0), "{}", said.err);
            let (data, metadata) = read_by(&laboratory, &image, &program);
            let left = || laboratory.run(&["io", "show"]).out;
            assert!(
                data + metadata <= taken.may_be_read(),
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
    let Some(image) = Image::new("the_folders_that_a_program_lies_in_are_learnt") else { return };
    let laboratory = Laboratory::new();
    image.write("one/two/three/data", 1);
    let program = image.script("one/two/three/start", "true");
    let metadata = |store: &str, arguments: &[&str]| {
        image.cool();
        laboratory.good(&[arguments, &["--", &program]].concat());
        let known = Store::locate(Some(Path::new(store))).get(Path::new(&program)).unwrap();
        let here = |system: &&FileSystem| Path::new(&system.place) == image.place();
        known.starts[0].systems.iter().find(here).map_or(0, |system| system.metadata.pages())
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
    let Some(image) = Image::new("coverage_says_what_a_trace_lacks_and_its_classes_sum") else { return };
    let laboratory = Laboratory::new();
    let program = program(&image);
    image.cool();
    assert_eq!(prefetch(&laboratory, &["learn", "--", &program]).code, Some(0));
    let store = std::fs::read_dir(laboratory.path("store")).unwrap().next().unwrap().unwrap().path();
    let other = image.write("lib/other", 50);
    image.cool();
    let both = format!("{program}; cat {} > /dev/null", other.display());
    laboratory.good(&["io", "record", "--", "sh", "-c", &both]);
    let trace = store.display().to_string();
    let lines = laboratory.good(&["io", "coverage", "--trace", &trace, "--blocks", "--format", "json"]);
    let lines: Vec<Value> = serde_json::from_str(&lines.out).unwrap();
    let of = |path: &Path, status: &str| -> u64 {
        let wanted = |row: &&Value| row["path"] == path.to_str().unwrap() && row["status"] == status;
        lines.iter().filter(wanted).map(|row| row["blocks"].as_u64().unwrap()).sum()
    };
    assert_eq!(of(&other, "missing"), 50);
    let whole = image.place().join("lib/whole");
    assert_eq!((of(&whole, "found"), of(&whole, "missing")), (300, 0));
    let said = laboratory.good(&["io", "coverage", "--trace", &trace, "--format", "json"]);
    let rows: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let bytes =
        |name: &str| rows.iter().find(|row| row["status"] == name).unwrap()["bytes"].as_u64().unwrap();
    let names = ["found", "missing", "read around", "metadata", "before", "unknown"];
    assert_eq!(names.map(bytes).iter().sum::<u64>(), bytes("sum"));
}

#[test]
fn files_that_changed_are_left_alone_and_the_program_runs() {
    let Some(image) = Image::new("files_that_changed_are_left_alone_and_the_program_runs") else { return };
    let laboratory = Laboratory::new();
    let program = program(&image);
    image.cool();
    assert_eq!(prefetch(&laboratory, &["learn", "--", &program]).code, Some(0));
    image.write("lib/whole", 3);
    std::fs::remove_file(image.place().join("lib/small/7")).unwrap();
    let tail = image.place().join("lib/tail");
    std::fs::rename(&tail, image.place().join("lib/moved")).unwrap();
    std::os::unix::fs::symlink("/etc/shadow", &tail).unwrap();
    image.cool();
    let said = prefetch(&laboratory, &["replay", "--mode", "sync", "--", &program]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("3 files have changed"), "{}", said.err);
    let shown = prefetch(&laboratory, &["show", &program, "--format", "csv"]).out;
    assert!(shown.contains("gone") && shown.contains("changed") && shown.contains("another"), "{shown}");
}

#[test]
fn two_scripts_behind_one_interpreter_have_a_trace_each() {
    let Some(image) = Image::new("two_scripts_behind_one_interpreter_have_a_trace_each") else { return };
    let laboratory = Laboratory::new();
    let script = |name: &str| {
        let data = image.write(&format!("lib/{name}"), 50);
        image.script(name, &format!("cat {} > /dev/null", data.display()))
    };
    let [one, other] = ["one", "other"].map(script);
    image.cool();
    let inline = format!("cat {}/lib/one > /dev/null", image.place().display());
    for arguments in [
        &["--", "sh", &one][..],
        &["--", "sh", "-e", &other],
        &["--name", "inline", "--", "sh", "-c", &inline],
    ] {
        image.cool();
        let said = prefetch(&laboratory, &[&["learn"], arguments].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    let json = |arguments: &[&str]| -> Vec<Value> {
        let said = prefetch(&laboratory, &[arguments, &["--format", "json"]].concat());
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}{}", said.out, said.err))
    };
    let mut names: Vec<Value> = json(&["show"]).iter().map(|row| row["program"].clone()).collect();
    names.sort_by_key(Value::to_string);
    let place = image.place().canonicalize().unwrap();
    assert_eq!(names, [place.join("one").to_str().unwrap(), place.join("other").to_str().unwrap(), "inline"]);
    let reads = |name: &str, file: &str| {
        json(&["show", name]).iter().any(|row| row["file"].as_str().unwrap().ends_with(file))
    };
    assert!(reads(&one, "lib/one") && !reads(&one, "lib/other"));
    assert!(reads(&other, "lib/other") && !reads(&other, "lib/one"));
    assert!(reads("inline", "lib/one"));
    image.cool();
    let said = prefetch(
        &laboratory,
        &["replay", "--mode", "sync", "--no-start", "--name", "inline", "--", "sh", "-c", "true"],
    );
    assert!(said.code == Some(0) && said.err.contains("read ahead"), "{}", said.err);
    assert_eq!(json(&["forget", "inline", &one, "nothing"]).len(), 3);
    assert_eq!(json(&["show"]).len(), 1);
}

#[test]
fn bad_traces_are_named_and_stop_no_program() {
    let laboratory = Laboratory::new();
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

    let said = prefetch(&laboratory, &["show", &program]);
    assert!(said.code == Some(2) && said.err.contains("nothing was learnt for"), "{}", said.err);
    let said = prefetch(&laboratory, &["replay", "--", &program, "7"]);
    assert!(
        said.code == Some(7) && said.err.contains("nothing is read ahead"),
        "the program's code: {}",
        said.err
    );
    let said = prefetch(&laboratory, &["learn", "--", &program, "5"]);
    assert!(said.code == Some(5) && said.err.contains("not remembered"), "{}", said.err);
    let said = prefetch(&laboratory, &["learn", "--", "/no/such/program"]);
    assert!(said.code == Some(2) && said.err.contains("there is no program"), "{}", said.err);

    let known = perflab_prefetch::Known::new(program.clone(), rustix::process::geteuid().as_raw());
    let store = perflab_prefetch::Store::locate(Some(&laboratory.path("store")));
    std::fs::create_dir_all(laboratory.path("store")).unwrap();
    let path = store.path(&script.canonicalize().unwrap());
    perflab_prefetch::file::write(&path, &known).unwrap();
    let good = std::fs::read(&path).unwrap();
    let mut damaged = good.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let newer = [&good[..8], &9_u32.to_le_bytes(), &good[12..]].concat();
    for (bytes, word) in [
        (&damaged[..], "its checksum is another one"),
        (&good[..20], "it ends within its head"),
        (b"something else", "does not begin with PLPREFET"),
        (&newer[..], "reads up to 1"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let said = prefetch(&laboratory, &["show", &program]);
        assert!(said.code == Some(2) && said.err.contains(word), "{word}: {}", said.err);
        let said = prefetch(&laboratory, &["replay", "--", &program]);
        assert!(said.code == Some(0) && said.err.contains(word), "{word}: {}", said.err);
    }
    assert_eq!(prefetch(&laboratory, &["forget", &program]).code, Some(0));
    assert!(!path.exists());
}

#[test]
fn nobody_learns_their_own_files_by_residency() {
    let name = "nobody_learns_their_own_files_by_residency";
    if !is_root() {
        return skip(name, "becoming nobody needs root");
    }
    // What is learnt is what stays in memory.
    let _caches = Caches::alone();
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
        crate::laboratory::said(command.output().unwrap())
    };
    let script = here("script").display().to_string();
    let said = perflab(&["learn", "--", &script]);
    if said.code == Some(1) && said.err.contains("cannot start") {
        return skip(name, "nobody cannot reach the folder of the build");
    }
    assert!(said.code == Some(0) && said.err.contains("from what is in memory"), "{}", said.err);
    let shown = perflab(&["show", &script, "--format", "csv"]).out;
    assert!(shown.contains("/data,303104,"), "74 pages of its own file: {shown}");
    let said = perflab(&["replay", "--", &script]);
    assert!(said.code == Some(0) && said.err.contains("everything is in memory already"), "{}", said.err);
    for name in ["data", "script"] {
        let file = std::fs::File::open(here(name)).unwrap();
        rustix::fs::fsync(&file).unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    }
    let said = perflab(&["replay", "--", &script]);
    assert!(said.code == Some(0) && said.err.contains("read ahead:"), "{}", said.err);
}

/// Whatever the program prints itself.
#[test]
fn learning_and_reading_ahead_print_one_document_of_json() {
    let Some(image) = Image::new("learning_and_reading_ahead_print_one_document_of_json") else { return };
    let laboratory = Laboratory::new();
    let data = image.write("data", 50);
    let program =
        image.script("start", &format!("cat {} > /dev/null; echo own words; exit $1", data.display()));
    let name = Path::new(&program).canonicalize().unwrap();
    let document = |code: i32, arguments: &[&str]| -> Value {
        image.cool();
        let said = prefetch(&laboratory, &[&["--format", "json"], arguments].concat());
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
