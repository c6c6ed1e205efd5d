//! Tracing and reading ahead on every file system that this project cares for, each a real one on a loop device: what is
//! learnt comes back, what changed is left alone, and nobody can tell from a file that it was read ahead.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::image::{MountedImage, write_executable_script};
use crate::laboratory::{CommandOutput, Sandbox, command_as_nobody, is_root, skip_test};

const ON_DISKS: [&str; 3] = ["ext4", "xfs", "btrfs"];

fn run_prefetch_on_image(laboratory: &Sandbox, arguments: &[&str]) -> CommandOutput {
    let store = laboratory.path("store").display().to_string();
    laboratory.run(&[&["prefetch", "--store", &store], arguments].concat())
}

/// Files that reading ahead left out, by the JSON form of `replay`.
fn skipped_files(said: &CommandOutput) -> u64 {
    let result: Value = serde_json::from_str(&said.out).unwrap();
    result["read"]["skipped"].as_u64().unwrap()
}

/// Files of the image, and a program that reads them all.
fn write_reading_program(image: &MountedImage) -> String {
    (0..8).for_each(|file| drop(image.write_pages(&format!("lib/{file}"), 10 + file)));
    image.write_pages("lib/whole", 300);
    image.write_script(
        "start",
        &format!("cat {0}/lib/* >/dev/null; ls -l {0}/lib >/dev/null", image.mount_point().display()),
    )
}

/// The number of the loop device below a mount.
fn loop_device_number(place: &Path) -> String {
    let mounts = perflab_observe::io::MountTable::read();
    let mount = mounts.find_by_path(place).unwrap();
    perflab_observe::mounts::disk_below(mount).unwrap().to_string()
}

/// Pages of a file that are in memory.
fn resident_page_count(path: &Path) -> u64 {
    perflab_observe::io::page_residency::count_resident_pages(&fs::File::open(path).unwrap(), 0, 0).unwrap()
}

/// Everything that a reader might leave behind.
fn reading_side_effects(place: &Path) -> BTreeMap<PathBuf, [i64; 8]> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(place.join("lib")).unwrap() {
        let path = entry.unwrap().path();
        let found = fs::symlink_metadata(&path).unwrap();
        let times = [found.atime(), found.atime_nsec(), found.mtime(), found.mtime_nsec()];
        let others = [found.ctime(), found.ctime_nsec(), found.len() as i64, found.ino() as i64];
        all.insert(path, [&times[..], &others[..]].concat().try_into().unwrap());
    }
    all
}

fn read_json_rows(laboratory: &Sandbox, arguments: &[&str]) -> Vec<Value> {
    serde_json::from_str(&laboratory.run_successfully(&[arguments, &["--format", "json"]].concat()).out)
        .unwrap()
}

#[test]
fn what_was_learnt_comes_back_and_no_file_can_tell() {
    for kind in ON_DISKS {
        let Some(image) = MountedImage::of_kind("what_was_learnt_comes_back_and_no_file_can_tell", kind)
        else {
            continue;
        };
        let laboratory = Sandbox::new();
        let program = write_reading_program(&image);
        image.evict_files();
        let said = run_prefetch_on_image(&laboratory, &["learn", "--", &program]);
        assert_eq!(said.code, Some(0), "{kind}: {}", said.err);
        image.evict_files();
        let before = reading_side_effects(&image.mount_point());
        let said = run_prefetch_on_image(
            &laboratory,
            &["--format", "json", "replay", "--mode", "sync", "--no-start", "--", &program],
        );
        assert_eq!(said.code, Some(0), "{kind}: {}", said.err);
        assert_eq!(skipped_files(&said), 0, "{kind}: {}", said.err);
        assert_eq!(before, reading_side_effects(&image.mount_point()), "{kind}");
        assert_eq!(resident_page_count(&image.mount_point().join("lib/whole")), 300, "{kind}: {}", said.err);
        let small = (0..8)
            .map(|file| resident_page_count(&image.mount_point().join(format!("lib/{file}"))))
            .sum::<u64>();
        assert_eq!(small, 8 * 10 + 28, "{kind}: {}", said.err);
    }
}

/// The classes of what a disk was asked for: all are known, and they sum to what it delivered.
#[test]
fn every_byte_of_a_disk_has_an_owner() {
    for kind in ON_DISKS {
        let Some(image) = MountedImage::of_kind("every_byte_of_a_disk_has_an_owner", kind) else { continue };
        let laboratory = Sandbox::new();
        let program = write_reading_program(&image);
        let store = laboratory.path("store").display().to_string();
        image.evict_files();
        assert_eq!(run_prefetch_on_image(&laboratory, &["learn", "--", &program]).code, Some(0));
        let other = image.write_pages("other", 50);
        image.evict_files();
        let both = format!("{program}; cat {} >/dev/null", other.display());
        laboratory.run_successfully(&["io", "record", "--label", "r", "--", "sh", "-c", &both]);
        let file = fs::read_dir(&store).unwrap().next().unwrap().unwrap().path().display().to_string();
        let sums = laboratory.run_successfully(&["io", "coverage", "r", "--trace", &file]);
        let wording = sums.err_wording_of("classes").replace("KiB", "B").replace("MiB", "B");
        insta::allow_duplicates!(
            insta::assert_snapshot!(wording, @"the classes add up to the N B that disks delivered, except N B requested before and N B in flight at the end")
        );
        let blocks = read_json_rows(&laboratory, &["io", "coverage", "r", "--trace", &file, "--blocks"]);
        let mut of: BTreeMap<(String, String), u64> = BTreeMap::new();
        let disk = loop_device_number(&image.mount_point());
        for row in blocks.iter().filter(|row| row["disk"] == disk) {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            *of.entry((text("status"), text("path"))).or_default() += row["blocks"].as_u64().unwrap();
        }
        let path = |name: &str| image.mount_point().join(name).display().to_string();
        let sum = |status: &str, path: &str| of.get(&(status.into(), path.into())).copied().unwrap_or(0);
        assert!(sum("found", &path("lib/whole")) >= 300, "{kind}: {of:?}");
        assert!(sum("missing", &path("other")) >= 50, "{kind}: {of:?}");
        assert_eq!(sum("missing", &path("lib/whole")), 0, "{kind}: {of:?}");
        let classes: u64 =
            of.iter().filter(|((status, _), _)| status == "unknown").map(|(_, blocks)| blocks).sum();
        assert_eq!(classes, 0, "{kind}: what nobody owns: {of:?}");
        let own = of.keys().any(|(status, path)| status == "metadata" || !path.starts_with('/'));
        // A btrfs as small as this one has read its trees when it is mounted.
        assert!(own || kind == "btrfs", "{kind} reads blocks of its own: {of:?}");
    }
}

/// A file in two hundred pieces, a folder with many names, a new file: what ext4 reads for each is told apart.
#[test]
fn blocks_of_ext4s_own_have_their_class() {
    let test = "blocks_of_ext4s_own_have_their_class";
    let Some(image) = MountedImage::new(test) else { return };
    let laboratory = Sandbox::new();
    let torn = image.write_pages("torn", 200);
    for hole in (0..200).step_by(2) {
        let offset = (hole * 4096).to_string();
        let mut punch = Command::new("fallocate");
        let done = punch.args(["--punch-hole", "--length", "4096", "--offset", &offset]).arg(&torn).status();
        assert!(done.unwrap().success());
    }
    (0..300).for_each(|file| drop(image.write_pages(&format!("many/a-name-of-some-length-{file}"), 0)));
    let program = image.write_script("start", "true");
    image.evict_files();
    assert_eq!(run_prefetch_on_image(&laboratory, &["learn", "--", &program]).code, Some(0));
    image.evict_files();
    let place = image.mount_point().display().to_string();
    let all =
        format!("cat {place}/torn >/dev/null; ls -l {place}/many >/dev/null; echo x > {place}/new; sync");
    laboratory.run_successfully(&["io", "record", "--label", "r", "--", "sh", "-c", &all]);
    let file = fs::read_dir(laboratory.path("store")).unwrap().next().unwrap().unwrap().path();
    let trace = file.display().to_string();
    let blocks = read_json_rows(&laboratory, &["io", "coverage", "r", "--trace", &trace, "--blocks"]);
    let metadata = blocks.iter().filter(|row| row["status"] == "metadata" || row["status"] == "found");
    let classes: std::collections::BTreeSet<&str> =
        metadata.map(|row| row["path"].as_str().unwrap()).collect();
    for class in ["extents", "directory", "inode table", "bitmap"] {
        assert!(classes.contains(class), "{class} is not in {classes:?}");
    }
}

/// From a file to its sectors, and back.
#[test]
fn sectors_and_files_are_found_from_each_other() {
    for kind in ON_DISKS {
        let Some(image) = MountedImage::of_kind("sectors_and_files_are_found_from_each_other", kind) else {
            continue;
        };
        let laboratory = Sandbox::new();
        let (file, place) = (image.write_pages("lib/file", 200), image.mount_point().display().to_string());
        image.evict_files();
        let extents = read_json_rows(&laboratory, &["io", "where", file.to_str().unwrap()]);
        let first =
            extents.iter().find(|row| row["offset"] == 0).unwrap_or_else(|| panic!("{kind}: {extents:?}"));
        // What stands at these sectors of the image is the file.
        let sector = first["sector"].as_u64().unwrap();
        let mut bytes = [0; 4096];
        let disk = fs::File::open(image.mount_point().parent().unwrap().join("disk")).unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&disk, &mut bytes, sector * 512).unwrap();
        assert!(bytes.iter().all(|byte| *byte == b'x'), "{kind}: sector {sector}");
        let owners =
            read_json_rows(&laboratory, &["io", "where", "--on", &place, &format!("{}+8", sector + 16)]);
        assert_eq!(owners[0]["of"], file.to_str().unwrap(), "{kind}: {owners:?}");
        assert_eq!(owners[0]["offset"], 2 * 4096, "{kind}: {owners:?}");
    }
    let said = Sandbox::new().run(&["io", "where", "--on", "/proc", "8"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!(said.stable_err(), @"error: /proc is on no disk: its file system is proc");
}

/// Files that are not what they were, in every way; the old name of one leads elsewhere, of another to a pipe that nobody
/// feeds.
#[test]
fn what_changed_is_left_alone_on_every_file_system() {
    for kind in ON_DISKS {
        let Some(image) = MountedImage::of_kind("what_changed_is_left_alone_on_every_file_system", kind)
        else {
            continue;
        };
        let laboratory = Sandbox::new();
        let program = write_reading_program(&image);
        image.evict_files();
        assert_eq!(run_prefetch_on_image(&laboratory, &["learn", "--", &program]).code, Some(0));
        let lib = |name: &str| image.mount_point().join("lib").join(name);
        let like = |old: &Path, new: &Path| {
            fs::write(new, vec![b'y'; fs::metadata(old).unwrap().len() as usize]).unwrap();
            assert!(Command::new("touch").arg("-r").arg(old).arg(new).status().unwrap().success());
        };
        // Its number may be given to the next file at once.
        let (deleted, remembered) = (lib("0"), image.mount_point().join("remembered"));
        like(&deleted, &remembered);
        fs::remove_file(&deleted).unwrap();
        like(&remembered, &deleted);
        fs::rename(lib("1"), lib("moved")).unwrap();
        fs::File::options().write(true).open(lib("2")).unwrap().set_len(4096).unwrap();
        let new = image.mount_point().join("new");
        like(&lib("3"), &new);
        fs::rename(&new, lib("3")).unwrap();
        fs::remove_file(lib("4")).unwrap();
        std::os::unix::fs::symlink("/etc/shadow", lib("4")).unwrap();
        fs::remove_file(lib("5")).unwrap();
        let pipe = CString::new(lib("5").as_os_str().as_bytes()).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            pipe.as_c_str(),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        image.evict_files();
        let before = reading_side_effects(&image.mount_point());
        let said = run_prefetch_on_image(
            &laboratory,
            &["--format", "json", "replay", "--mode", "sync", "--no-start", "--", &program],
        );
        assert_eq!(said.code, Some(0), "{kind}: {}", said.err);
        assert_eq!(skipped_files(&said), 6, "{kind}: {}", said.err);
        assert_eq!(before, reading_side_effects(&image.mount_point()), "{kind}");
        for name in ["0", "2", "3", "moved"] {
            assert_eq!(resident_page_count(&lib(name)), 0, "{kind}: {name}");
        }
        assert_eq!(resident_page_count(&lib("whole")), 300, "{kind}");
    }
}

#[test]
fn another_file_system_in_the_same_place_is_left_alone() {
    for kind in ON_DISKS {
        let Some(image) = MountedImage::of_kind("another_file_system_in_the_same_place_is_left_alone", kind)
        else {
            continue;
        };
        let laboratory = Sandbox::new();
        let program_path = write_reading_program(&image);
        image.evict_files();
        assert_eq!(run_prefetch_on_image(&laboratory, &["learn", "--", &program_path]).code, Some(0));
        image.remake();
        assert_eq!(write_reading_program(&image), program_path);
        image.evict_files();
        let said = run_prefetch_on_image(&laboratory, &["replay", "--mode", "sync", "--", &program_path]);
        assert_eq!(said.code, Some(0), "the program runs: {}", said.err);
        insta::allow_duplicates!(
            insta::assert_snapshot!(said.err_wording_of(image.mount_point().to_str().unwrap()), @"/tmp/.TMP/mnt is now another file system or not mounted: nothing of it was read")
        );
        image.evict_files();
        run_prefetch_on_image(&laboratory, &["replay", "--mode", "sync", "--no-start", "--", &program_path]);
        assert_eq!(resident_page_count(&image.mount_point().join("lib/whole")), 0, "{kind}");
    }
}

/// A container's root: files of the layer below are read, and are read ahead there.
#[test]
fn overlays_are_read_ahead_where_their_layers_lie() {
    let test = "overlays_are_read_ahead_where_their_layers_lie";
    let Some(image) = MountedImage::new(test) else { return };
    let laboratory = Sandbox::new();
    write_reading_program(&image);
    for folder in ["upper", "work", "merged"] {
        fs::create_dir(image.mount_point().join(folder)).unwrap();
    }
    let place = image.mount_point().display().to_string();
    let merged = image.mount_point().join("merged");
    let layers = format!("lowerdir={place}/lib,upperdir={place}/upper,workdir={place}/work");
    let mount = || {
        let mut mount = Command::new("mount");
        mount.args(["-t", "overlay", "overlay", "-o", &layers]).arg(&merged);
        mount.status().is_ok_and(|done| done.success())
    };
    let unmount = || Command::new("umount").arg(&merged).status().unwrap().success();
    if !mount() {
        return skip_test(test, "this kernel has no overlay");
    }
    let program = write_executable_script(
        &merged.join("start"),
        &format!("cat {}/[0-9w]* >/dev/null", merged.display()),
    );
    let cool = || {
        assert!(unmount());
        image.evict_files();
        assert!(mount());
    };
    cool();
    let said = run_prefetch_on_image(&laboratory, &["learn", "--", &program]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    cool();
    let said = run_prefetch_on_image(
        &laboratory,
        &["--format", "json", "replay", "--mode", "sync", "--no-start", "--", &program],
    );
    assert_eq!(said.code, Some(0), "{}", said.err);
    // The pages are those of the layer's file.
    let pages = resident_page_count(&image.mount_point().join("lib/whole"));
    assert!(unmount());
    assert_eq!(pages, 300, "{}", said.err);
}

#[test]
fn what_lies_in_memory_is_not_read_ahead() {
    let test = "what_lies_in_memory_is_not_read_ahead";
    if !is_root() {
        return skip_test(test, "tracing needs root");
    }
    let laboratory = Sandbox::new();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::write(memory.path().join("data"), vec![1; 1 << 20]).unwrap();
    let text = format!("cat {}/data >/dev/null", memory.path().display());
    let program = write_executable_script(&memory.path().join("start"), &text);
    // Whatever else a shell needs is in memory after the first start.
    assert!(Command::new(&program).status().unwrap().success());
    let said = run_prefetch_on_image(&laboratory, &["learn", "--", &program]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!(said.stable_err(), @"error: /dev/shm/.TMP/start is on tmpfs: what is in memory, on another machine or served by another program is not read ahead");
    let said = run_prefetch_on_image(&laboratory, &["replay", "--", &program]);
    assert_eq!(said.code, Some(0), "the program runs: {}", said.err);
}

/// A trace that root made, used by nobody: what nobody may not read is not read ahead for them.
#[test]
fn no_trace_of_another_users_starts_is_read_ahead() {
    let test = "no_trace_of_another_users_starts_is_read_ahead";
    let Some(image) = MountedImage::new(test) else { return };
    let laboratory = Sandbox::new();
    let program = write_reading_program(&image);
    let secret = image.write_pages("lib/secret", 77);
    fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    image.evict_files();
    assert_eq!(run_prefetch_on_image(&laboratory, &["learn", "--", &program]).code, Some(0));
    let store = image.mount_point().join("store");
    fs::create_dir(&store).unwrap();
    for entry in fs::read_dir(laboratory.path("store")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), store.join(entry.file_name())).unwrap();
    }
    assert!(Command::new("chmod").args(["-R", "a+rX"]).arg(&store).status().unwrap().success());
    image.evict_files();
    let (_binary, mut command) = command_as_nobody();
    command.args(["prefetch", "--store"]).arg(&store);
    command.args(["replay", "--mode", "sync", "--no-start", "--", &program]);
    let said = crate::laboratory::to_command_output(command.output().unwrap());
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert_eq!(resident_page_count(&secret), 0);
    assert_eq!(resident_page_count(&image.mount_point().join("lib/whole")), 0, "{}", said.err);
}
