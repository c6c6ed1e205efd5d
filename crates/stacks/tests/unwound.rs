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
    let recording = folder.path().join("perf.data");
    let read = |symfs: Option<&Path>| {
        let options = SymbolOptions { symfs: symfs.map(Path::to_owned), ..SymbolOptions::default() };
        read_profile_file(&recording, None, &options).unwrap()
    };
    let imported = read(None);
    let ends = count_stacks_of_innermost(&imported.batch);
    let (whole, all) = (ends.get(WHOLE_STACK).copied().unwrap_or(0), ends.values().sum::<usize>());
    assert!(all > 20 && whole * 100 >= all * 99, "{ends:?}");

    // The program is replaced by another one: only a copy of the recorded one gives names.
    let program = folder.path().canonicalize().unwrap().join("deep");
    let copy = folder.path().join("copy");
    let copied = copy.join(program.strip_prefix("/").unwrap());
    std::fs::create_dir_all(copied.parent().unwrap()).unwrap();
    std::fs::rename(&program, &copied).unwrap();
    let other = SOURCE.replace("700", "900");
    std::fs::write(folder.path().join("other.c"), other).unwrap();
    let build = ["-O1", "-fomit-frame-pointer", "other.c", "-o", "deep"];
    let built = Command::new("gcc").args(build).current_dir(folder.path()).status().unwrap();
    assert!(built.success());
    let replaced = read(None);
    assert_eq!(count_stacks_of_innermost(&replaced.batch), HashMap::new(), "names of another program");
    let notes: Vec<&str> = replaced.notes.iter().map(|note| note.message.as_str()).collect();
    assert!(notes.iter().any(|note| note.contains(program.to_str().unwrap())), "{notes:?}");
    assert_eq!(count_stacks_of_innermost(&read(Some(&copy)).batch), ends);
}

const WHOLE_STACK: &str = "innermost < between < outermost < main";

/// How many samples of `innermost` have which stack, up to four functions deep.
fn count_stacks_of_innermost(batch: &StackBatch) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for names in batch.samples.iter().map(|one| stack_names(batch, one)) {
        if names[0] == "innermost" {
            *counts.entry(names[..names.len().min(4)].join(" < ")).or_default() += 1;
        }
    }
    counts
}
