//! Inlined functions come back from debug information: a real ELF file stands for the kernel's vmlinux.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use perflab_stacks::{KernelSymbols, StackConverter, SymbolSources};

const SOURCE: &str = "\
volatile int sink;
static inline __attribute__((always_inline)) void innermost(int n) { for (int i = 0; i < n; i++) sink += i * n; }
static inline __attribute__((always_inline)) void between(int n) { sink++; innermost(n); }
__attribute__((noinline)) void kernel_work(int n) { sink = n; between(n); sink = 0; }
__attribute__((noinline)) void _stext(void) { sink = 7; }
int main(int argc, char **argv) { _stext(); kernel_work(argc); return 0; }
";

/// How far the running kernel is from where it was linked.
const MOVED: u64 = 0xffff_ffff_4000_0000;

fn build_program(folder: &Path) -> Option<()> {
    std::fs::write(folder.join("k.c"), SOURCE).unwrap();
    let built = Command::new("gcc")
        .args(["-g", "-O2", "-no-pie", "k.c", "-o", "vmlinux"])
        .current_dir(folder)
        .status();
    built.is_ok_and(|status| status.success()).then_some(())
}

/// The text symbols of the file as kallsyms has them: moved.
fn make_kallsyms(folder: &Path) -> (String, u64, u64) {
    let names = Command::new("nm").args(["-S", "vmlinux"]).current_dir(folder).output().unwrap();
    let (mut table, mut work) = (String::new(), (0, 0));
    for line in String::from_utf8(names.stdout).unwrap().lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        let [start, size, kind, name] = parts[..] else { continue };
        let (start, size) = (u64::from_str_radix(start, 16).unwrap(), u64::from_str_radix(size, 16).unwrap());
        if name == "kernel_work" {
            work = (start.wrapping_add(MOVED), size);
        }
        let _ = writeln!(table, "{:016x} {kind} {name}", start.wrapping_add(MOVED));
    }
    (table, work.0, work.1)
}

#[test]
fn a_vmlinux_makes_inlined_functions_visible() {
    let folder = tempfile::tempdir().unwrap();
    if build_program(folder.path()).is_none() {
        assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "gcc is needed");
        eprintln!("SKIP a_vmlinux_makes_inlined_functions_visible: no gcc");
        return;
    }
    let (table, start, size) = make_kallsyms(folder.path());
    let kernel = KernelSymbols::parse(table).unwrap().with_vmlinux(&folder.path().join("vmlinux"));
    let symbols = SymbolSources { kernel: Some(kernel), kernel_distance: 0, files: None, is_certain: true };
    let mut converter = StackConverter::new(symbols);
    (start..start + size).for_each(|address| converter.add_kernel_sample(address));
    let frames = converter.take_batch(0).frames;
    let inlined: Vec<&str> = frames.iter().filter(|one| one.inlined).map(|one| one.name.as_str()).collect();
    assert!(inlined.contains(&"between") && inlined.contains(&"innermost"), "{frames:?}");
    let outer: Vec<&str> = frames.iter().filter(|one| !one.inlined).map(|one| one.name.as_str()).collect();
    assert_eq!(outer, ["kernel_work"]);
}
