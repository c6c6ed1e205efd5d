//! Profiles of other tools, and the kernel's symbols.

use perflab_stacks::{KernelSymbols, ProfileFormat, SymbolOptions, read_profile_file};

use crate::memory_folder::MemoryFolder;

/// Symbols that every profile is given, and no files: those of the machine that fuzzes would make each run another one,
/// and reading them would take most of the time.
const KALLSYMS: &str = "\
ffffffff81000000 T _text
ffffffff81000000 T _stext
ffffffff81000100 T do_syscall_64
ffffffff81000200 t kfree.part.0
ffffffff81000400 T vfs_read
ffffffffc0000000 t ext4_write\t[ext4]
";

/// Reads a profile; every sample of it is accounted for.
fn decode_profile(format: ProfileFormat, bytes: &[u8]) {
    let folder = MemoryFolder::new(format.name());
    let options = SymbolOptions {
        kallsyms: Some(folder.write("kallsyms", KALLSYMS.as_bytes())),
        symfs: Some(folder.path().to_owned()),
        anchors: vec!["kfree".into()],
        ..SymbolOptions::default()
    };
    let path = folder.write("profile", bytes);
    if let Ok(profile) = read_profile_file(&path, Some(format), &options) {
        assert!(!profile.batch.samples.is_empty());
        let _ = profile.sample_parts();
    }
}

pub(crate) fn decode_perf_data(bytes: &[u8]) {
    decode_profile(ProfileFormat::PerfData, bytes);
}

pub(crate) fn decode_perf_script(bytes: &[u8]) {
    decode_profile(ProfileFormat::Script, bytes);
}

pub(crate) fn decode_pprof(bytes: &[u8]) {
    decode_profile(ProfileFormat::Pprof, bytes);
}

pub(crate) fn decode_folded(bytes: &[u8]) {
    decode_profile(ProfileFormat::Folded, bytes);
}

/// A symbol table, with a search in it.
pub(crate) fn decode_kallsyms(bytes: &[u8]) {
    if let Ok(symbols) = KernelSymbols::parse(String::from_utf8_lossy(bytes).into_owned()) {
        let _ = symbols.find_anchors(&["kfree".into(), "vfs_read".into()]);
    }
}
