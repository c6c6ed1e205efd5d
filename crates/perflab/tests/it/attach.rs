//! `perflab trace attach`, on a program in C that knows nothing of it, with functions and with USDT probes.

use std::path::PathBuf;
use std::process::Command;

use crate::laboratory::Laboratory;

/// Every 50th insertion reaps, which takes far longer than anything else; a probe by hand, so that no header is needed.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#define PROBE(name) __asm__ volatile("990: nop\n.pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n" \
  ".4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte 0\n" \
  ".asciz \"tree\"\n.asciz \"" name "\"\n.asciz \"\"\n994: .balign 4\n.popsection\n" \
  ".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n.weak _.stapsdt.base\n.hidden _.stapsdt.base\n" \
  "_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n.endif")
static volatile unsigned long sink;
__attribute__((noinline)) void reap(void) { PROBE("reap_begin"); for (int i = 0; i < 300000; i++) sink += i; PROBE("reap_end"); }
__attribute__((noinline)) void insert(long key) { PROBE("add_begin"); sink += key; if (key % 50 == 49) reap(); PROBE("add_end"); }
static void *work(void *count) { for (long key = 0; key < (long)count; key++) insert(key); return 0; }
int main(int argc, char **argv) {
  pthread_t thread;
  if (argc > 2 && pthread_create(&thread, 0, work, (void *)atol(argv[2]))) return 1;
  work((void *)atol(argv[1]));
  return argc > 2 ? pthread_join(thread, 0) : 0;
}
"#;

/// The program, compiled; none where there is no compiler.
fn compiled(laboratory: &Laboratory, name: &str) -> Option<PathBuf> {
    let (source, program) = (laboratory.path("tree.c"), laboratory.path("tree"));
    std::fs::write(&source, PROGRAM).unwrap();
    let done = Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(&program).arg(&source).status();
    if !done.is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "no C compiler");
        eprintln!("SKIP {name}: no C compiler");
        return None;
    }
    Some(program)
}

/// Whether the kernel refuses uprobes, which it then says.
fn refused(name: &str, said: &crate::laboratory::Said) -> bool {
    if said.code != Some(3) || std::env::var_os("PERFLAB_REQUIRE_ALL").is_some() {
        return false;
    }
    assert!(said.err.contains("CAP_PERFMON") || said.err.contains("CONFIG_UPROBE_EVENTS"), "{}", said.err);
    eprintln!("SKIP {name}: {}", said.err);
    true
}

#[test]
fn a_program_is_watched_by_functions_and_by_probes_and_its_outliers_have_their_cause() {
    let name = "a_program_is_watched_by_functions_and_by_probes_and_its_outliers_have_their_cause";
    let laboratory = Laboratory::new();
    let Some(program) = compiled(&laboratory, name) else { return };
    let program = program.to_str().unwrap();
    let listed = laboratory.good(&["trace", "attach", "--list", "--program", program]).out;
    for line in ["USDT      tree:add_begin", "USDT      tree:reap_end", "function  insert", "function  reap"]
    {
        assert!(listed.lines().any(|one| one == line), "{line} in {listed}");
    }
    for (label, operation, span) in
        [("functions", "insert", "reap"), ("probes", "insert=tree:add_begin", "tree:reap_begin")]
    {
        let arguments = [
            "trace",
            "attach",
            "--label",
            label,
            "--operation",
            operation,
            "--span",
            span,
            "--",
            program,
            "600",
            "400",
        ];
        let said = laboratory.run(&arguments);
        if refused(name, &said) {
            return;
        }
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.err.contains("1000 operations of 2 threads, 0 lost"), "{}", said.err);
        assert!(
            said.err.contains("an event costs ") && said.err.contains("2040 events of 2 threads"),
            "{}",
            said.err
        );
        let json = laboratory.good(&["trace", "causes", label, "--above", "0.98", "--format", "json"]).out;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let reap = json["result"]["causes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|cause| cause["name"] == "reap")
            .unwrap()
            .clone();
        assert_eq!((&json["result"]["operation"], &reap["operations"]), (&"insert".into(), &20.into()));
        // On a busy machine other things stand out too; that every reap does is not a matter of luck.
        assert!(reap["recall"].as_f64().unwrap() > 0.5, "{reap}");
    }
}

#[test]
fn a_running_process_is_watched_for_a_time() {
    let name = "a_running_process_is_watched_for_a_time";
    let laboratory = Laboratory::new();
    let Some(program) = compiled(&laboratory, name) else { return };
    let mut child = Command::new(&program).arg("1000000000").spawn().unwrap();
    let pid = child.id().to_string();
    let said = laboratory.run(&["trace", "attach", "--operation", "reap", "--pid", &pid, "--for", "300ms"]);
    let lives = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    if refused(name, &said) {
        return;
    }
    assert!(said.code == Some(0) && lives, "{}", said.err);
    assert!(said.err.contains("operations of 1 threads"), "{}", said.err);
}

#[test]
fn what_cannot_be_watched_is_said_with_what_can() {
    let laboratory = Laboratory::new();
    let Some(program) = compiled(&laboratory, "what_cannot_be_watched_is_said_with_what_can") else { return };
    let program = program.to_str().unwrap();
    let cases: [(&[&str], &str); 8] = [
        (&["--operation", "inzert", "--", program], "has no function `inzert`; did you mean `insert`"),
        (
            &["--operation", "tree:add", "--", program],
            "has no USDT probe `tree:add`; its USDT probes: tree:add_begin",
        ),
        (&["--operation", "tree:add_end", "--", program], "nothing says where `tree:add_end` ends"),
        (&["--operation", "a:b", "--", "cat"], "it has no USDT probes at all"),
        (&["--", program], "nothing says what an operation is"),
        (&["--operation", "x"], "nothing to watch"),
        (&["--operation", "x", "--pid", "999999999"], "there is no process 999999999"),
        (&["--operation", "x", "--", "no-such-program"], "there is no program `no-such-program`"),
    ];
    for (arguments, wanted) in cases {
        let said = laboratory.run(&[&["trace", "attach"], arguments].concat());
        assert!(
            said.code == Some(2) && said.err.contains(wanted),
            "{arguments:?}: {:?} {}",
            said.code,
            said.err
        );
    }
    std::fs::write(laboratory.path("text"), "nothing of the kind").unwrap();
    let said = laboratory.run(&["trace", "attach", "--list", "--program", "text"]);
    assert!(said.code == Some(2) && said.err.contains("not an ELF program or library"), "{}", said.err);
    let said = laboratory.run(&["trace", "attach", "--operation", "reap", "--", program, "10"]);
    if !refused("what_cannot_be_watched_is_said_with_what_can", &said) {
        assert!(said.code == Some(2) && said.err.contains("no event came from"), "{}", said.err);
    }
}

/// A victim of `xtask/victims`, compiled; none where there is no compiler for it.
fn victim(laboratory: &Laboratory, file: &str, extra: &[&str]) -> Option<PathBuf> {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../xtask/victims").join(file);
    let program = laboratory.path(&file.replace('.', "_"));
    let (compiler, arguments): (&str, &[&str]) = match file.rsplit('.').next() {
        Some("c") => ("cc", &["-O1", "-pthread"]),
        Some("cc") => ("c++", &["-O1"]),
        Some("rs") => ("rustc", &["-O", "--edition=2021", "-Csymbol-mangling-version=v0"]),
        _ => ("go", &["build"]),
    };
    let mut command = Command::new(compiler);
    command.args(arguments).args(extra).arg("-o").arg(&program).arg(&source);
    command.env("GOCACHE", laboratory.path("gocache")).env("HOME", laboratory.path("home"));
    // rustup and the like look there for what they are.
    if compiler != "go" {
        command.env_remove("HOME").envs(std::env::var_os("HOME").map(|home| ("HOME", home)));
    }
    if !command.status().is_ok_and(|status| status.success()) {
        crate::laboratory::skip(file, &format!("{compiler} does not compile it"));
        return None;
    }
    Some(program)
}

/// What became of the entries of a name, as the run keeps it; all kinds add up.
fn entries(laboratory: &Laboratory, name: &str) -> std::collections::HashMap<String, u64> {
    let shown = laboratory.good(&["show", "@latest", "--facts"]).out;
    let line = shown.lines().find(|line| line.contains(&format!("trace.entries.{name}")));
    let line = line.unwrap_or_else(|| panic!("no entries of {name} in {shown}"));
    let (before, after) = line.split_once(" entries = ").unwrap();
    let entered: u64 = before.split_whitespace().next_back().unwrap().parse().unwrap();
    let mut kinds = std::collections::HashMap::new();
    for part in after.split(" + ") {
        let mut words = part.split_whitespace();
        let count: u64 = words.next().unwrap().parse().unwrap();
        kinds.insert(words.next().unwrap().to_owned(), count);
    }
    assert_eq!(kinds.values().sum::<u64>(), entered, "{line}");
    kinds.insert("entries".into(), entered);
    kinds
}

/// Each is run alone and watched; its result is the same, and what became of each call is told.
#[test]
fn what_leaves_its_functions_in_other_ways_is_not_harmed_and_every_entry_is_told() {
    let name = "what_leaves_its_functions_in_other_ways_is_not_harmed_and_every_entry_is_told";
    let laboratory = Laboratory::new();
    // File, flags, operation; entries, ended, abandoned, nested where they are certain.
    type Case<'a> = (&'a str, &'a [&'a str], &'a str, [Option<u64>; 4]);
    let cases: [Case<'_>; 8] = [
        ("jumps.c", &[], "jumper", [Some(1000), Some(900), Some(100), Some(0)]),
        ("jumps.c", &["-static"], "deep", [Some(1000), Some(100), Some(0), Some(900)]),
        ("throws.cc", &[], "tree::insert", [Some(1000), Some(990), Some(10), Some(0)]),
        ("panics.rs", &["--crate-name=panics"], "panics::insert", [Some(1000), Some(990), Some(10), Some(0)]),
        ("stacks.go", &[], "main.Work", [Some(1000), None, None, None]),
        ("stacks.go", &[], "main.Deep", [None, None, None, None]),
        ("coroutines.c", &[], "step", [None, None, None, None]),
        ("cancels.c", &[], "work", [None, None, None, None]),
    ];
    for (file, flags, operation, wanted) in cases {
        let Some(program) = victim(&laboratory, file, flags) else { continue };
        let alone = Command::new(&program).arg("1000").output().unwrap();
        assert!(alone.status.success(), "{file}");
        let program = program.to_str().unwrap();
        let asked = format!("op={operation}");
        let said = laboratory.run(&["trace", "attach", "--operation", &asked, "--", program, "1000"]);
        if refused(name, &said) {
            return;
        }
        assert_eq!(said.code, Some(0), "{file}: {}", said.err);
        assert!(said.out.contains(String::from_utf8_lossy(&alone.stdout).trim()), "{file}: {}", said.out);
        let mut told = entries(&laboratory, "op");
        // Whether the last one that was left is known to be depends on what came after it.
        *told.entry("abandoned".into()).or_default() += told.get("still").copied().unwrap_or(0);
        for (kind, wanted) in ["entries", "ended", "abandoned", "nested"].into_iter().zip(wanted) {
            if let Some(wanted) = wanted {
                assert_eq!(told.get(kind).copied().unwrap_or(0), wanted, "{file} {kind}: {told:?}");
            }
        }
        assert!(told["ended"] > 0, "{file}: {told:?}");
    }
}

#[test]
fn a_program_that_dies_while_it_is_watched_is_told_with_its_signal() {
    let name = "a_program_that_dies_while_it_is_watched_is_told_with_its_signal";
    let laboratory = Laboratory::new();
    let Some(program) = victim(&laboratory, "dies.c", &[]) else { return };
    let program = program.to_str().unwrap();
    let said = laboratory.run(&["trace", "attach", "--operation", "work", "--", program]);
    if refused(name, &said) {
        return;
    }
    assert!(said.code == Some(4) && said.err.contains("SIGABRT"), "{:?} {}", said.code, said.err);
    let told = entries(&laboratory, "work");
    assert_eq!((told["entries"], told["ended"], told["still"]), (100, 99, 1));
}
