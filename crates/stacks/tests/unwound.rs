//! `perf record --call-graph dwarf` of a real program without frame pointers: its stacks come out of copied memory.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use perflab_model::profile::StackBatch;
use perflab_model::{NodeId, StackSample};
use perflab_stacks::{SymbolOptions, read_profile_file};

const SOURCE: &str = "\
volatile unsigned long sink;
__attribute__((noinline)) void innermost(void) { for (unsigned long i = 0; i < 2000000; i++) sink += i; sink++; }
__attribute__((noinline)) void between(int n) { char room[700]; room[n] = 1; sink += room[n]; innermost(); sink += room[n]; }
__attribute__((noinline)) void outermost(int n) { between(n); sink++; }
int main(int argc, char **argv) { for (int i = 0; i < 60; i++) outermost(argc + i); return 0; }
";

/// Builds the program and records it; `None` without gcc or perf.
fn record_program(folder: &Path) -> Option<()> {
    std::fs::write(folder.join("deep.c"), SOURCE).unwrap();
    let build = "gcc -O1 -fomit-frame-pointer deep.c -o deep && perf record -q -e cpu-clock -F 1999 --call-graph dwarf \
                 -o perf.data ./deep";
    let done = Command::new("sh").args(["-c", build]).current_dir(folder).output().unwrap();
    done.status.success().then_some(())
}

fn stack_names(batch: &StackBatch, sample: &StackSample) -> Vec<String> {
    let node = |id: NodeId| batch.nodes[id.0 as usize];
    let chain = std::iter::successors(sample.leaf, |leaf| node(*leaf).parent);
    chain.map(|id| batch.frames[node(id).frame.0 as usize].name.clone()).collect()
}

#[test]
fn copied_memory_becomes_stacks() {
    let folder = tempfile::tempdir().unwrap();
    if record_program(folder.path()).is_none() {
        assert!(
            std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(),
            "gcc and perf are needed, and the right to record"
        );
        eprintln!("SKIP copied_memory_becomes_stacks: no gcc, no perf, or it may not record");
        return;
    }
    let imported =
        read_profile_file(&folder.path().join("perf.data"), None, &SymbolOptions::default()).unwrap();
    let batch = &imported.batch;
    let mut ends: HashMap<String, usize> = HashMap::new();
    let busy = batch.samples.iter().map(|one| stack_names(batch, one)).filter(|one| one[0] == "innermost");
    let begins: Vec<String> = busy.map(|one| one[..one.len().min(4)].join(" < ")).collect();
    for begin in &begins {
        *ends.entry(begin.clone()).or_default() += 1;
    }
    let whole = ends.get("innermost < between < outermost < main").copied().unwrap_or(0);
    assert!(begins.len() > 20 && whole * 100 >= begins.len() * 99, "{ends:?}");
}
