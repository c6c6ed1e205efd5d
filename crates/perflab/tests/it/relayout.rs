//! `perflab prefetch relayout`, on a file system of the test's own whose files lie apart: what is judged is where they lie then,
//! and that they are what they were.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::image::Image;
use crate::laboratory::{Laboratory, Said};

const FILES: u8 = 12;
/// Too large to be put beside other small files, as ext4 does.
const PAGES: usize = 100;

/// Files that do not lie together, and a program that reads them.
struct Apart {
    image: Image,
    laboratory: Laboratory,
    program: String,
}

impl Apart {
    fn new(test: &str, kind: &'static str) -> Option<Self> {
        let image = Image::of(test, kind)?;
        for file in 0..FILES {
            let path = image.write(&format!("lib/{file:02}"), 1);
            fs::write(path, vec![file; PAGES * 4096 - 7]).unwrap();
            rustix::fs::sync();
            image.write(&format!("lib/between-{file}"), 300);
            rustix::fs::sync();
        }
        let program =
            image.script("start", &format!("cat {}/lib/[0-9]* >/dev/null", image.place().display()));
        image.cool();
        let apart = Apart { image, laboratory: Laboratory::new(), program };
        assert_eq!(apart.prefetch(&["learn", "--", &apart.program]).code, Some(0));
        Some(apart)
    }

    fn prefetch(&self, arguments: &[&str]) -> Said {
        let store = self.laboratory.path("store").display().to_string();
        self.laboratory.run(&[&["prefetch", "--store", &store], arguments].concat())
    }

    /// What `relayout` says of the image, and what beside.
    fn relayout(&self, more: &[&str]) -> (Value, String) {
        self.relayout_for(&self.program, more)
    }

    fn relayout_for(&self, program: &str, more: &[&str]) -> (Value, String) {
        let place = self.image.place().display().to_string();
        // The machine's own programs stay where they lie.
        let here = ["relayout", program, "--on", &place, "--format", "json"];
        let said = self.prefetch(&[&here[..], more].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
        let rows: Vec<Value> = serde_json::from_str(&said.out).unwrap();
        (rows.into_iter().find(|row| row["on"] == *place).unwrap(), said.err)
    }

    fn files(&self) -> Vec<PathBuf> {
        (0..FILES).map(|file| self.image.place().join(format!("lib/{file:02}"))).collect()
    }

    /// Where a trace says that its files below `lib` begin, in bytes of the disk.
    fn told(&self, program: &str) -> Vec<(String, Option<u64>)> {
        let shown = self.prefetch(&["show", program, "--format", "json"]).out;
        let shown: Vec<Value> = serde_json::from_str(&shown).unwrap();
        let files = shown.iter().map(|row| (row["file"].as_str().unwrap(), row["on disk at"].as_u64()));
        files.filter(|(file, _)| file.contains("/lib/")).map(|(file, at)| (file.to_owned(), at)).collect()
    }

    /// Where each begins, in blocks of the disk.
    fn places(&self) -> Vec<Option<u64>> {
        self.files().iter().map(|file| perflab_observe::io::look(file).unwrap().place(0)).collect()
    }
}

#[test]
fn what_is_read_is_brought_together_and_stays_what_it_was() {
    let test = "what_is_read_is_brought_together_and_stays_what_it_was";
    let Some(apart) = Apart::new(test, "ext4") else { return };
    let about = |file: &PathBuf| {
        let about = fs::metadata(file).unwrap();
        (about.ino(), about.len(), about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec())
    };
    let before: Vec<_> = apart.files().iter().map(about).collect();
    let places = apart.places();
    let (row, said) = apart.relayout(&[]);
    assert!(said.contains("nothing was moved") && apart.places() == places, "{said}");
    assert!(row["stretches"].as_u64() >= Some(4), "{row}");
    let said = apart.prefetch(&["relayout", &apart.program, "--on", "/nowhere", "--apply"]);
    assert!(said.code == Some(2) && said.err.contains("it reads from /"), "{}", said.err);

    let (row, said) = apart.relayout(&["--apply"]);
    assert!(row["stretches before"].as_u64() >= Some(4), "{row}");
    assert_eq!((&row["stretches"], &row["files"]), (&1.into(), &(FILES + 1).into()), "{said}");
    let now = apart.places();
    assert!(now.is_sorted() && now.iter().zip(&places).all(|(now, before)| now != before), "{now:?}");
    apart.image.cool();
    assert_eq!(apart.files().iter().map(about).collect::<Vec<_>>(), before);
    for (byte, file) in (0..).zip(apart.files()) {
        assert_eq!(fs::read(file).unwrap(), vec![byte; PAGES * 4096 - 7]);
    }
    let told: Vec<_> = apart.told(&apart.program).into_iter().map(|(_, place)| place).collect();
    assert_eq!(told, now, "the trace knows where they lie");
    let said = apart.prefetch(&["replay", "--no-start", "--", &apart.program]);
    assert!(said.err.contains("read ahead: 4.") && !said.err.contains("changed"), "{}", said.err);
}

#[test]
fn what_lies_together_for_one_program_stays_when_another_is_relaid() {
    let test = "what_lies_together_for_one_program_stays_when_another_is_relaid";
    let Some(apart) = Apart::new(test, "ext4") else { return };
    let lib = apart.image.place().join("lib");
    let read = format!("cat {0}/0[89] {0}/between-* >/dev/null", lib.display());
    let other = apart.image.script("other", &read);
    apart.image.cool();
    assert_eq!(apart.prefetch(&["learn", "--", &other]).code, Some(0));
    let now = |file: &str| perflab_observe::io::look(std::path::Path::new(file)).unwrap().place(0);
    let is_known = |program: &str| {
        let told = apart.told(program);
        assert!(told.len() >= 12 && told.iter().all(|(file, place)| now(file) == *place), "{told:?}");
    };

    let (row, said) = apart.relayout(&["--apply"]);
    assert_eq!(row["stretches"], 1, "{said}");
    is_known(&other);
    let places = apart.places();
    let (row, said) = apart.relayout_for(&other, &["--apply"]);
    assert!(said.contains("2 parts of files stay where they are: brought together for another"), "{said}");
    assert!(row["stretches"].as_u64() <= Some(3) && row["stretches before"].as_u64() >= Some(4), "{row}");
    assert_eq!(apart.places(), places);
    assert_eq!(apart.relayout(&[]).0["stretches"], 1);
    [&apart.program, &other].into_iter().for_each(|program| is_known(program));
}

#[test]
fn what_runs_is_left_alone_and_what_has_changed() {
    let Some(apart) = Apart::new("what_runs_is_left_alone_and_what_has_changed", "ext4") else { return };
    let files = apart.files();
    fs::copy("/bin/sleep", &files[5]).unwrap();
    fs::set_permissions(&files[5], std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    apart.image.cool();
    assert_eq!(apart.prefetch(&["forget", &apart.program]).code, Some(0));
    assert_eq!(apart.prefetch(&["learn", "--", &apart.program]).code, Some(0));
    fs::write(&files[3], "another").unwrap();
    let places = apart.places();
    let mut running = std::process::Command::new(&files[5]).arg("600").spawn().unwrap();
    let (row, said) = apart.relayout(&["--apply"]);
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(said.contains("stay where they are: a program that runs"), "{said}");
    assert!(said.contains("stay where they are: gone, or changed since it was traced"), "{said}");
    let now = apart.places();
    assert!(now[5] == places[5] && now[4] != places[4], "{now:?} {places:?} {row}");
    assert_eq!(fs::read(&files[3]).unwrap(), b"another");
}

#[test]
fn other_file_systems_and_full_ones_are_refused_with_the_reason() {
    let test = "other_file_systems_and_full_ones_are_refused_with_the_reason";
    let Some(other) = Apart::new(test, "xfs") else { return };
    let places = other.places();
    let (row, said) = other.relayout(&["--apply"]);
    assert!(row["left alone"].as_str().unwrap().contains("xfs cannot exchange blocks"), "{row}");
    assert!(other.places() == places, "{said}");
    drop(other);

    let Some(full) = Apart::new(test, "ext4") else { return };
    let places = full.places();
    let room = rustix::fs::statvfs(full.image.place()).unwrap();
    let filler = fs::File::create(full.image.place().join("filler")).unwrap();
    let bytes = (room.f_bfree - 3000) * room.f_frsize;
    rustix::fs::fallocate(&filler, rustix::fs::FallocateFlags::empty(), 0, bytes).unwrap();
    let here = full.image.place().display().to_string();
    let said = full.prefetch(&["relayout", &full.program, "--on", &here, "--apply"]);
    assert!(said.code != Some(0) && said.err.contains("cannot get room on"), "{}", said.err);
    assert!(said.err.contains("No space left") && full.places() == places, "{}", said.err);
}
