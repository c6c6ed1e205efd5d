//! `perflab prefetch relayout`, on a file system of the test's own whose files lie apart: what is judged is where they lie then,
//! and that they are what they were.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::image::MountedImage;
use crate::laboratory::{CommandOutput, Sandbox};

const FILES: u8 = 12;
/// Too large to be put beside other small files, as ext4 does.
const PAGES: usize = 100;

/// Files that do not lie together, and a program that reads them.
struct ScatteredFiles {
    image: MountedImage,
    laboratory: Sandbox,
    program: String,
}

impl ScatteredFiles {
    fn new(test: &str, kind: &'static str) -> Option<Self> {
        let image = MountedImage::of_kind(test, kind)?;
        for file in 0..FILES {
            let path = image.write_pages(&format!("lib/{file:02}"), 1);
            fs::write(path, vec![file; PAGES * 4096 - 7]).unwrap();
            rustix::fs::sync();
            image.write_pages(&format!("lib/between-{file}"), 300);
            rustix::fs::sync();
        }
        let program = image
            .write_script("start", &format!("cat {}/lib/[0-9]* >/dev/null", image.mount_point().display()));
        image.evict_files();
        let apart = ScatteredFiles { image, laboratory: Sandbox::new(), program };
        assert_eq!(apart.run_prefetch(&["learn", "--", &apart.program]).code, Some(0));
        Some(apart)
    }

    fn run_prefetch(&self, arguments: &[&str]) -> CommandOutput {
        let store = self.laboratory.path("store").display().to_string();
        self.laboratory.run(&[&["prefetch", "--store", &store], arguments].concat())
    }

    /// What `relayout` says of the image, and what beside.
    fn run_relayout(&self, more: &[&str]) -> (Value, String) {
        self.run_relayout_for(&self.program, more)
    }

    fn run_relayout_for(&self, program: &str, more: &[&str]) -> (Value, String) {
        let place = self.image.mount_point().display().to_string();
        // The machine's own programs stay where they lie.
        let here = ["relayout", program, "--on", &place, "--format", "json"];
        let said = self.run_prefetch(&[&here[..], more].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
        let rows: Vec<Value> = serde_json::from_str(&said.out).unwrap();
        (rows.into_iter().find(|row| row["on"] == *place).unwrap(), said.err)
    }

    fn data_files(&self) -> Vec<PathBuf> {
        (0..FILES).map(|file| self.image.mount_point().join(format!("lib/{file:02}"))).collect()
    }

    /// Where a trace says that its files below `lib` begin, in bytes of the disk.
    fn traced_offsets(&self, program: &str) -> Vec<(String, Option<u64>)> {
        let shown = self.run_prefetch(&["show", program, "--format", "json"]).out;
        let shown: Vec<Value> = serde_json::from_str(&shown).unwrap();
        let files = shown.iter().map(|row| (row["file"].as_str().unwrap(), row["on disk at"].as_u64()));
        files.filter(|(file, _)| file.contains("/lib/")).map(|(file, at)| (file.to_owned(), at)).collect()
    }

    /// Where each begins, in blocks of the disk.
    fn first_blocks(&self) -> Vec<Option<u64>> {
        self.data_files()
            .iter()
            .map(|file| perflab_observe::io::describe_file(file).unwrap().disk_offset_of_page(0))
            .collect()
    }
}

#[test]
fn what_is_read_is_brought_together_and_stays_what_it_was() {
    let test = "what_is_read_is_brought_together_and_stays_what_it_was";
    let Some(apart) = ScatteredFiles::new(test, "ext4") else { return };
    let about = |file: &PathBuf| {
        let about = fs::metadata(file).unwrap();
        (about.ino(), about.len(), about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec())
    };
    let before: Vec<_> = apart.data_files().iter().map(about).collect();
    let places = apart.first_blocks();
    let (row, said) = apart.run_relayout(&[]);
    assert!(apart.first_blocks() == places, "{said}");
    insta::assert_snapshot!(said.lines().last().unwrap(), @"nothing was moved; --apply moves it");
    assert!(row["extents"].as_u64() >= Some(4), "{row}");
    let said = apart.run_prefetch(&["relayout", &apart.program, "--on", "/nowhere", "--apply"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    // Besides the scattered files it reads its libraries, where they are not in memory.
    let (wording, read_from) = said.err.trim_end().split_once("; it reads from ").unwrap();
    insta::assert_snapshot!(wording, @"error: nothing that it reads lies on the file system of /nowhere");
    let mounted = apart.image.mount_point();
    assert!(read_from.split(", ").any(|place| mounted == std::path::Path::new(place)), "{read_from}");

    let (row, said) = apart.run_relayout(&["--apply"]);
    assert!(row["extents before"].as_u64() >= Some(4), "{row}");
    assert_eq!((&row["extents"], &row["files"]), (&1.into(), &(FILES + 1).into()), "{said}");
    let now = apart.first_blocks();
    assert!(now.is_sorted() && now.iter().zip(&places).all(|(now, before)| now != before), "{now:?}");
    apart.image.evict_files();
    assert_eq!(apart.data_files().iter().map(about).collect::<Vec<_>>(), before);
    for (byte, file) in (0..).zip(apart.data_files()) {
        assert_eq!(fs::read(file).unwrap(), vec![byte; PAGES * 4096 - 7]);
    }
    let told: Vec<_> = apart.traced_offsets(&apart.program).into_iter().map(|(_, place)| place).collect();
    assert_eq!(told, now, "the trace knows where they lie");
    let said = apart.run_prefetch(&["--format", "json", "replay", "--no-start", "--", &apart.program]);
    let read = serde_json::from_str::<Value>(&said.out).unwrap()["read"].take();
    let all = u64::from(FILES) * PAGES as u64 * 4096;
    assert!(read["data"].as_u64() >= Some(all) && read["skipped"] == 0, "{read} of {all}");
}

#[test]
fn what_lies_together_for_one_program_stays_when_another_is_relaid() {
    let test = "what_lies_together_for_one_program_stays_when_another_is_relaid";
    let Some(apart) = ScatteredFiles::new(test, "ext4") else { return };
    let lib = apart.image.mount_point().join("lib");
    let read = format!("cat {0}/0[89] {0}/between-* >/dev/null", lib.display());
    let other = apart.image.write_script("other", &read);
    apart.image.evict_files();
    assert_eq!(apart.run_prefetch(&["learn", "--", &other]).code, Some(0));
    let now = |file: &str| {
        perflab_observe::io::describe_file(std::path::Path::new(file)).unwrap().disk_offset_of_page(0)
    };
    let is_known = |program: &str| {
        let told = apart.traced_offsets(program);
        assert!(told.len() >= 12 && told.iter().all(|(file, place)| now(file) == *place), "{told:?}");
    };

    let (row, said) = apart.run_relayout(&["--apply"]);
    assert_eq!(row["extents"], 1, "{said}");
    is_known(&other);
    let places = apart.first_blocks();
    let (row, said) = apart.run_relayout_for(&other, &["--apply"]);
    insta::assert_snapshot!(unmoved_lines(&said), @"parts of files not moved: 2 (brought together for another program)");
    assert!(row["extents"].as_u64() <= Some(3) && row["extents before"].as_u64() >= Some(4), "{row}");
    assert_eq!(apart.first_blocks(), places);
    assert_eq!(apart.run_relayout(&[]).0["extents"], 1);
    [&apart.program, &other].into_iter().for_each(|program| is_known(program));
}

#[test]
fn what_runs_is_left_alone_and_what_has_changed() {
    let Some(apart) = ScatteredFiles::new("what_runs_is_left_alone_and_what_has_changed", "ext4") else {
        return;
    };
    let files = apart.data_files();
    fs::copy("/bin/sleep", &files[5]).unwrap();
    fs::set_permissions(&files[5], std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    apart.image.evict_files();
    assert_eq!(apart.run_prefetch(&["forget", &apart.program]).code, Some(0));
    assert_eq!(apart.run_prefetch(&["learn", "--", &apart.program]).code, Some(0));
    fs::write(&files[3], "another").unwrap();
    let places = apart.first_blocks();
    let mut running = std::process::Command::new(&files[5]).arg("600").spawn().unwrap();
    let (row, said) = apart.run_relayout(&["--apply"]);
    running.kill().unwrap();
    running.wait().unwrap();
    insta::assert_snapshot!(unmoved_lines(&said), @"
    parts of files not moved: 1 (gone, or changed since it was traced)
    parts of files not moved: 1 (part of a running program)
    ");
    let now = apart.first_blocks();
    assert!(now[5] == places[5] && now[4] != places[4], "{now:?} {places:?} {row}");
    assert_eq!(fs::read(&files[3]).unwrap(), b"another");
}

#[test]
fn other_file_systems_and_full_ones_are_refused_with_the_reason() {
    let test = "other_file_systems_and_full_ones_are_refused_with_the_reason";
    let Some(other) = ScatteredFiles::new(test, "xfs") else { return };
    let places = other.first_blocks();
    let (row, said) = other.run_relayout(&["--apply"]);
    insta::assert_snapshot!(row["left alone"].as_str().unwrap(), @"xfs cannot exchange blocks of files");
    assert!(other.first_blocks() == places, "{said}");
    drop(other);

    let Some(full) = ScatteredFiles::new(test, "ext4") else { return };
    let places = full.first_blocks();
    let room = rustix::fs::statvfs(full.image.mount_point()).unwrap();
    let filler = fs::File::create(full.image.mount_point().join("filler")).unwrap();
    let bytes = (room.f_bfree - 3000) * room.f_frsize;
    rustix::fs::fallocate(&filler, rustix::fs::FallocateFlags::empty(), 0, bytes).unwrap();
    let here = full.image.mount_point().display().to_string();
    let said = full.run_prefetch(&["relayout", &full.program, "--on", &here, "--apply"]);
    assert!(said.code != Some(0), "{}", said.err);
    insta::assert_snapshot!(
        "other_file_systems_and_full_ones_are_refused_with_the_reason_1",
        said.stable_err()
    );
    assert!(full.first_blocks() == places, "{}", said.err);
}

/// What relayout says of parts of files that it did not move.
fn unmoved_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("not moved")).collect();
    lines.join("\n")
}
