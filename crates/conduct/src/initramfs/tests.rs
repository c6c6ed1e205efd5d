use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;

/// Name, mode and size of each entry, by the format's description.
fn list_cpio_entries(archive: &[u8]) -> Vec<(String, u32, usize)> {
    let (mut at, mut found) = (0, Vec::new());
    loop {
        let field = |index: usize| {
            let text = &archive[at + 6 + index * 8..at + 14 + index * 8];
            usize::from_str_radix(std::str::from_utf8(text).unwrap(), 16).unwrap()
        };
        assert_eq!(&archive[at..at + 6], b"070701");
        let (mode, size, length) = (field(1), field(6), field(11));
        let name = std::str::from_utf8(&archive[at + 110..at + 110 + length - 1]).unwrap();
        if name == "TRAILER!!!" {
            return found;
        }
        found.push((name.to_owned(), mode as u32, size));
        at = (at + 110 + length).next_multiple_of(4);
        at = (at + size).next_multiple_of(4);
    }
}

#[test]
fn an_archive_has_parents_before_children_and_nothing_twice() {
    let mut archive = CpioWriter::new(Vec::new());
    archive.add_file(Path::new("/a/b/c"), b"hello").unwrap();
    archive.add_file(Path::new("/a/b/d"), b"").unwrap();
    archive.add_file(Path::new("/a/b/c"), b"another").unwrap();
    archive.add_link(Path::new("/a/l"), "b/c").unwrap();
    archive.add_device(Path::new("/dev/console"), 5, 1).unwrap();
    let found = list_cpio_entries(&archive.finish().unwrap());
    let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["a", "a/b", "a/b/c", "a/b/d", "a/l", "dev", "dev/console"]);
    assert_eq!(found[2], ("a/b/c".into(), 0o100_755, 5));
    assert_eq!(found[6].1, 0o020_600);
}

#[test]
fn a_closure_is_what_the_loader_finds() {
    let needed = find_closure("sh").unwrap();
    assert!(needed.libraries.keys().any(|name| name.starts_with("libc.so")), "{needed:?}");
    assert!(needed.libraries.values().chain(&needed.interpreter).all(|path| path.is_file()));
}

#[test]
fn what_is_missing_is_said() {
    assert!(matches!(find_closure("no-such-program"), Err(InitramfsError::NoProgram { .. })));
    let error = find_closure(&format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"))).unwrap_err();
    assert!(matches!(error, InitramfsError::NotAProgram { .. }), "{error}");
}

#[test]
fn a_static_program_is_packed_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("static");
    let mut compiler = Command::new("cc");
    compiler.args(["-static-pie", "-x", "c", "-o"]).arg(&path).arg("-").stdin(std::process::Stdio::piped());
    let mut compiler = compiler.spawn().unwrap();
    std::io::Write::write_all(&mut compiler.stdin.take().unwrap(), b"int main(void) { return 0; }").unwrap();
    assert!(compiler.wait().unwrap().success(), "Rust links with cc, too");
    let files = pack_portable_perflab(&path, Path::new(GUEST_HOME)).unwrap();
    let [(name, content)] = &files[..] else { panic!("{} files", files.len()) };
    assert_eq!(name, "perflab");
    assert!(is_runnable(folder.path(), content));
}

fn is_runnable(folder: &Path, content: &[u8]) -> bool {
    let path = folder.join("program");
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Command::new(&path).status().is_ok_and(|status| status.success())
}

#[test]
fn a_trimmed_program_still_runs_and_is_smaller() {
    let folder = tempfile::tempdir().unwrap();
    let path = Path::new("/bin/true");
    let whole = fs::read(path).unwrap();
    let kept = trim::trim_elf(path, &whole).unwrap();
    assert!(kept.len() < whole.len());
    assert!(is_runnable(folder.path(), &kept));
}

#[test]
fn another_interpreter_is_taken_where_its_path_fits() {
    let folder = tempfile::tempdir().unwrap();
    let path = Path::new("/bin/true");
    let mut program = fs::read(path).unwrap();
    let loader = trim::elf_interpreter(path, &program).unwrap().unwrap();
    let short = PathBuf::from("/tmp").join(format!("p{}", std::process::id()));
    std::os::unix::fs::symlink(&loader, &short).unwrap();
    assert!(trim::set_interpreter(path, &mut program, short.to_str().unwrap()).unwrap());
    let ran = is_runnable(folder.path(), &program);
    fs::remove_file(&short).unwrap();
    assert!(ran, "with its interpreter there");
    assert!(!is_runnable(folder.path(), &program), "and not without");
    assert!(trim::set_interpreter(path, &mut program, &"x".repeat(200)).is_err());
}

#[test]
fn this_program_finds_its_libraries_in_a_guests_folder() {
    // Not perflab itself, but what it is packed with: the loader and each library at the place that is promised.
    let orders = crate::init::InitConfig {
        name: "test".into(),
        modules: vec!["one".into()],
        root: crate::init::GuestRoot::Bare,
        vsock: None,
        work: crate::init::GuestWork::Agent,
    };
    let modules = [crate::kernel::KernelModule { name: "one".into(), content: b"module".to_vec() }];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("initramfs");
    let itself = std::env::current_exe().unwrap();
    let packed = Initramfs { perflab: &itself, modules: &modules, orders: &orders, programs: &["sh".into()] };
    packed.write(&path).unwrap();
    let found = list_cpio_entries(&fs::read(&path).unwrap());
    for name in
        ["run/perflab/perflab", "run/perflab/ld.so", "run/perflab/modules/one.ko", "run/perflab/orders.json"]
    {
        assert!(found.iter().any(|(entry, ..)| entry == name), "{name} in {found:?}");
    }
    let libraries =
        found.iter().filter(|(entry, mode, _)| entry.starts_with("run/perflab/lib/") && *mode == 0o100_755);
    assert_eq!(libraries.count(), find_closure(itself.to_str().unwrap()).unwrap().libraries.len());
}
