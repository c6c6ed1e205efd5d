//! `perflab trace attach`, on a program in C that knows nothing of it, with functions and with USDT probes.

use std::io::BufRead as _;
use std::path::PathBuf;
use std::process::Command;

use crate::laboratory::{Sandbox, mask_numbers};

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
__attribute__((noinline)) void reap(void) { PROBE("reap_begin"); for (int i = 0; i < 6000000; i++) sink += i; PROBE("reap_end"); }
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
fn compile_tree_program(laboratory: &Sandbox, name: &str) -> Option<PathBuf> {
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
fn is_uprobe_refused(name: &str, said: &crate::laboratory::CommandOutput) -> bool {
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
    let laboratory = Sandbox::new();
    let Some(program) = compile_tree_program(&laboratory, name) else { return };
    let program = program.to_str().unwrap();
    let listed = laboratory.run_successfully(&["trace", "attach", "--list", "--program", program]).out;
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
        if is_uprobe_refused(name, &said) {
            return;
        }
        assert_eq!(said.code, Some(0), "{}", said.err);
        // Costs and times differ from run to run; counts do not.
        let summary = laboratory.run_json(&["trace", "causes", "@latest"])["result"]["summary"].take();
        let counts = ["operations", "threads", "lost", "events_lost"].map(|name| summary[name].as_u64());
        assert_eq!(counts, [Some(1000), Some(2), Some(0), Some(0)], "{summary} {}", said.err);
        let json = laboratory
            .run_successfully(&["trace", "causes", label, "--above", "98%", "--format", "json"])
            .out;
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
    let laboratory = Sandbox::new();
    let Some(program) = compile_tree_program(&laboratory, name) else { return };
    let mut child = Command::new(&program).arg("1000000000").spawn().unwrap();
    let pid = child.id().to_string();
    let said = laboratory.run(&["trace", "attach", "--operation", "reap", "--pid", &pid, "--for", "300ms"]);
    let lives = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    if is_uprobe_refused(name, &said) {
        return;
    }
    assert!(said.code == Some(0) && lives, "{}", said.err);
    let summary = laboratory.run_json(&["trace", "causes", "@latest"])["result"]["summary"].take();
    assert!(summary["threads"] == 1 && summary["operations"].as_u64() > Some(0), "{summary}");
}

#[test]
fn what_cannot_be_watched_is_said_with_what_can() {
    let laboratory = Sandbox::new();
    let Some(program) = compile_tree_program(&laboratory, "what_cannot_be_watched_is_said_with_what_can")
    else {
        return;
    };
    let program = program.to_str().unwrap();
    let cases: [&[&str]; 7] = [
        &["--operation", "inzert", "--", program],
        &["--operation", "tree:add", "--", program],
        &["--operation", "tree:add_end", "--", program],
        &["--", program],
        &["--operation", "x"],
        &["--operation", "x", "--pid", "999999999"],
        &["--operation", "x", "--", "no-such-program"],
    ];
    let errors = cases.map(|arguments| {
        let said = laboratory.run(&[&["trace", "attach"], arguments].concat());
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.err);
        // What it is taken for is a matter of this machine's PATH.
        said.stable_err().split("; did you mean `n").next().unwrap().trim_end().to_owned()
    });
    insta::assert_snapshot!("what_cannot_be_watched_is_said_with_what_can_2", errors.join("\n"));
    let said = laboratory.run(&["trace", "attach", "--operation", "a:b", "--", "cat"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    let (_, wording) = said.err.split_once("/cat ").unwrap();
    insta::assert_snapshot!(mask_numbers(wording), @"has no USDT probe `a:b`; it has no USDT probes at all, but N functions, which can be begins and ends too (--list names them)");
    std::fs::write(laboratory.path("text"), "nothing of the kind").unwrap();
    let said = laboratory.run(&["trace", "attach", "--list", "--program", "text"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!("what_cannot_be_watched_is_said_with_what_can_1", said.stable_err());
    let said = laboratory.run(&["trace", "attach", "--operation", "reap", "--", program, "10"]);
    if !is_uprobe_refused("what_cannot_be_watched_is_said_with_what_can", &said) {
        assert_eq!(said.code, Some(2), "{}", said.err);
        insta::assert_snapshot!(said.err_wording_of("error: "), @"error: no event came from /tmp/.TMP/tree; the program never reached a probe, or --program names a file that it does not run");
    }
}

/// A victim of `xtask/victims`, compiled; none where there is no compiler for it.
fn compile_victim(laboratory: &Sandbox, file: &str, extra: &[&str]) -> Option<PathBuf> {
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
        crate::laboratory::skip_test(file, &format!("{compiler} does not compile it"));
        return None;
    }
    Some(program)
}

/// What became of the entries of a name, as the run keeps it; all kinds add up.
fn entry_counts(laboratory: &Sandbox, name: &str) -> std::collections::HashMap<String, u64> {
    let shown = laboratory.run_successfully(&["show", "@latest", "--facts"]).out;
    let line = shown.lines().find(|line| line.contains(&format!("trace.entries.{name}")));
    let line = line.unwrap_or_else(|| panic!("no entries of {name} in {shown}"));
    let (before, after) = line.split_once(" entries = ").unwrap();
    let entered: u64 = before.split_whitespace().next_back().unwrap().parse().unwrap();
    let mut kinds = std::collections::HashMap::new();
    let after = after.split(';').next().unwrap();
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
    let laboratory = Sandbox::new();
    // File, flags, operation; entries, ended, abandoned, nested where they are certain.
    type VictimCase<'a> = (&'a str, &'a [&'a str], &'a str, [Option<u64>; 4]);
    let cases: [VictimCase<'_>; 10] = [
        ("jumps.c", &[], "jumper", [Some(1000), Some(900), Some(100), Some(0)]),
        ("jumps.c", &["-static"], "deep", [Some(1000), Some(100), Some(0), Some(900)]),
        ("throws.cc", &[], "tree::insert", [Some(1000), Some(990), Some(10), Some(0)]),
        ("panics.rs", &["--crate-name=panics"], "panics::insert", [Some(1000), Some(990), Some(10), Some(0)]),
        ("stacks.go", &[], "main.Work", [Some(1000), None, None, None]),
        ("stacks.go", &[], "main.Deep", [None, None, None, None]),
        ("coroutines.c", &[], "step", [None, None, None, None]),
        ("fibers.c", &[], "step", [None, None, None, None]),
        // It becomes another program in one call; the calls of both are told.
        ("execs.c", &[], "work", [Some(1001), Some(1000), Some(1), Some(0)]),
        ("cancels.c", &[], "work", [None, None, None, None]),
    ];
    for (file, flags, operation, wanted) in cases {
        let Some(program) = compile_victim(&laboratory, file, flags) else { continue };
        let alone = Command::new(&program).arg("1000").output().unwrap();
        assert!(alone.status.success(), "{file}");
        let program = program.to_str().unwrap();
        let asked = format!("op={operation}");
        let said = laboratory.run(&["trace", "attach", "--operation", &asked, "--", program, "1000"]);
        if is_uprobe_refused(name, &said) {
            return;
        }
        assert_eq!(said.code, Some(0), "{file}: {}", said.err);
        assert!(said.out.contains(String::from_utf8_lossy(&alone.stdout).trim()), "{file}: {}", said.out);
        let mut told = entry_counts(&laboratory, "op");
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
    let laboratory = Sandbox::new();
    let Some(program) = compile_victim(&laboratory, "dies.c", &[]) else { return };
    let program = program.to_str().unwrap();
    let said = laboratory.run(&["trace", "attach", "--operation", "work", "--", program]);
    if is_uprobe_refused(name, &said) {
        return;
    }
    assert_eq!(said.code, Some(4), "{}", said.err);
    let wording = said.err_wording_of("SIGABRT");
    insta::assert_snapshot!(wording.split(" after ").next().unwrap(), @"/tmp/.TMP/dies_c ended with signal: N (SIGABRT)");
    let told = entry_counts(&laboratory, "work");
    assert_eq!((told["entries"], told["ended"], told["still"]), (100, 99, 1));
}

/// A program in C with flags, compiled; none where there is no compiler.
fn compile_c_source(laboratory: &Sandbox, name: &str, source: &str, flags: &[&str]) -> Option<String> {
    let (file, program) = (laboratory.path(&format!("{name}.c")), laboratory.path(name));
    std::fs::write(&file, source).unwrap();
    let done = Command::new("cc").args(["-O1", "-o"]).arg(&program).arg(&file).args(flags).status();
    if !done.is_ok_and(|status| status.success()) {
        crate::laboratory::skip_test(name, "no C compiler");
        return None;
    }
    Some(program.to_str().unwrap().to_owned())
}

/// The C library's functions are found in a program that links it, and what a command does before it is the program is
/// not the program's: `int main(){}` had three mallocs.
#[test]
fn functions_of_libraries_are_found_and_calls_before_the_exec_are_not_counted() {
    let name = "functions_of_libraries_are_found_and_calls_before_the_exec_are_not_counted";
    let laboratory = Sandbox::new();
    let source = "#include <stdlib.h>\nvolatile int n; __attribute__((noinline)) void insert(void) { free(malloc(10 + n++)); }\n\
                  int main(int c, char **v) { if (c > 1) for (int i = 0; i < 30; i++) insert(); }\n";
    let Some(program) = compile_c_source(&laboratory, "allocates", source, &["-fno-builtin"]) else { return };
    for (span, file) in [("malloc", "libc"), ("libc.so.6:malloc", "libc")] {
        let said = laboratory.run(&[
            "trace",
            "attach",
            "--operation",
            "insert",
            "--span",
            span,
            "--",
            &program,
            "more",
        ]);
        if is_uprobe_refused(name, &said) {
            return;
        }
        assert!(said.code == Some(0) && said.err.contains(file), "{}", said.err);
        assert_eq!(
            (entry_counts(&laboratory, "insert")["ended"], entry_counts(&laboratory, "malloc")["ended"]),
            (30, 30)
        );
    }
    // A run is of today, and prune knows that.
    let began: jiff::Timestamp =
        laboratory.run_json(&["list"])[0]["begun"].as_str().unwrap().parse().unwrap();
    let age = jiff::Timestamp::now().duration_since(began).as_secs();
    assert!((0..3600).contains(&age), "begun {age} s ago");
    let said = laboratory.run(&["trace", "attach", "--operation", "malloc", "--", &program]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    // Where it was looked for is named.
    let wording = said.err_wording_of("error: ");
    let (before, after) = wording.split_once("/libc.so.6").unwrap();
    insta::assert_snapshot!(before.split('/').next().unwrap(), @"error: no event came from ");
    insta::assert_snapshot!(after, @"; the program never reached a probe, or --program names a file that it does not run");
    let said = laboratory.run(&["trace", "attach", "--operation", "mallok", "--", &program]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    let wording = said.stable_err();
    insta::assert_snapshot!(wording.split("; known here: ").next().unwrap(), @"error: /tmp/.TMP/allocates has no function `mallok`; its libraries (libc.so.6) have none either");
    let said = laboratory.run(&["trace", "attach", "--operation", "libm.so.6:sin", "--", &program]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!(
        "functions_of_libraries_are_found_and_calls_before_the_exec_are_not_counted_2",
        said.stable_err()
    );
}

#[test]
fn a_stripped_program_is_watched_by_addresses_and_never_in_the_middle_of_an_instruction() {
    let name = "a_stripped_program_is_watched_by_addresses_and_never_in_the_middle_of_an_instruction";
    let laboratory = Sandbox::new();
    let Some(program) = compile_victim(&laboratory, "jumps.c", &[]) else { return };
    let symbols = Command::new("nm").arg(&program).output().unwrap();
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    let line = symbols.lines().find(|line| line.ends_with(" deep")).unwrap();
    let begin = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    assert!(Command::new("strip").arg(&program).status().unwrap().success());
    let program = program.to_str().unwrap();
    let listed = laboratory.run_successfully(&["trace", "attach", "--list", "--program", program]).out;
    assert!(listed.lines().any(|line| line == format!("function  {begin:#x}")), "{listed}");
    let said = laboratory.run(&["trace", "attach", "--operation", "deep", "--", program, "1000"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!(
        "a_stripped_program_is_watched_by_addresses_and_never_in_the_middle_of_an_instruction_1",
        said.stable_err()
    );
    let places = |address: u64, end: u64| format!("op={program}:{address:#x},{program}:{end:#x}");
    for offset in 1..16 {
        // Of sixteen neighbours some are no beginning: these are refused, and none is destroyed.
        let asked = places(begin + offset, begin + offset);
        let said = laboratory.run(&["trace", "attach", "--operation", &asked, "--", program, "1000"]);
        if said.code == Some(2) && said.err.contains(&format!("{:#x}", begin + offset)) {
            break;
        }
        assert!(offset < 15, "{}", said.err);
    }
    let asked = format!("op={program}:{begin:#x}");
    let said = laboratory.run(&["trace", "attach", "--operation", &asked, "--", program, "1000"]);
    if !is_uprobe_refused(name, &said) {
        assert_eq!(said.code, Some(0), "{}", said.err);
        let told = entry_counts(&laboratory, "op");
        assert_eq!((told["entries"], told["ended"], told["nested"]), (1000, 100, 900));
    }
}

/// A function of some tens of nanoseconds, called a hundred million times: the probes would make the program a thousand times slower.
#[test]
fn a_program_that_would_become_too_slow_is_watched_for_shares_of_the_time() {
    let name = "a_program_that_would_become_too_slow_is_watched_for_shares_of_the_time";
    let laboratory = Sandbox::new();
    let source = "#include <stdio.h>\n#include <stdlib.h>\nstatic volatile unsigned long sum;\n\
                  __attribute__((noinline)) void work(long n) { sum += n; }\n\
                  int main(int c, char **v) { for (long n = 0; n < atol(v[1]); n++) work(n); printf(\"%lu\\n\", sum); }\n";
    let Some(program) = compile_c_source(&laboratory, "hot", source, &[]) else { return };
    let calls = "60000000";
    let alone = Command::new(&program).arg(calls).output().unwrap();
    let said = laboratory.run(&[
        "trace",
        "attach",
        "--max-slowdown",
        "100%",
        "--operation",
        "work",
        "--",
        &program,
        calls,
    ]);
    if is_uprobe_refused(name, &said) {
        return;
    }
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains(String::from_utf8_lossy(&alone.stdout).trim()), "{}", said.out);
    let told = entry_counts(&laboratory, "work");
    assert!(told["ended"] > 100 && told["entries"] < 60_000_000, "{told:?}");
    let facts = laboratory.run_successfully(&["show", "@latest", "--facts"]).out;
    let share = facts.lines().find(|line| line.contains("trace.watched-percent")).unwrap();
    let share: u32 = share.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!((1..100).contains(&share), "{facts}");
    // What the probes cost is far above what the function takes: only what stands far out is judged. On a machine that became busy
    // meanwhile, too: the cost is measured again at the end, and both are kept.
    let json = laboratory.run_successfully(&["trace", "causes", "@latest", "--format", "json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let cost = &json["result"]["probe_cost"];
    let above = cost["judged_above"].as_i64().unwrap();
    assert!(cost["middle_judged"] == false && above == 10 * cost["operation"].as_i64().unwrap(), "{cost}");
    let kept = ["", ".before", ".at-end"].map(|when| {
        let wanted = format!("trace.event-cost-ns{when}");
        let line = facts.lines().find(|line| line.split_whitespace().next() == Some(wanted.as_str()));
        line.unwrap().split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    });
    assert!(kept[1].min(kept[2]) > 0 && kept[0] == kept[1].max(kept[2]), "{kept:?}");
    let said = laboratory.run(&[
        "trace",
        "attach",
        "--max-slowdown",
        "0%",
        "--operation",
        "work",
        "--",
        &program,
        "1",
    ]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!(said.stable_err(), @"
    error: invalid value '0%' for '--max-slowdown <PERCENT>': `0%` is not above 0%

    For more information, try '--help'.
    ");
}

/// Half of the calls are of `f`, half of `g`; their name is an argument of the probes, in a register or in memory. Work between them
/// keeps the probes cheap beside it.
const CALLS: &str = r#"
#include <stdlib.h>
#define PROBE(name, text, number) __asm__ volatile("990: nop\n.pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n" \
  ".4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte 0\n" \
  ".asciz \"calls\"\n.asciz \"" name "\"\n.asciz \"8@%0 -4@%1\"\n994: .balign 4\n.popsection\n" \
  ".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n.weak _.stapsdt.base\n.hidden _.stapsdt.base\n" \
  "_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n.endif" :: "nor"(text), "nor"(number))
static volatile unsigned long sum;
__attribute__((noinline)) void call(const char *name, int n) { PROBE("call_entry", name, n); sum += n; PROBE("call_return", name, n); }
int main(int c, char **v) {
  for (int n = 0; n < atol(v[1]); n++) { call(n % 2 ? "f" : "g", n); for (volatile int i = 0; i < 20000; i++); }
}
"#;

#[test]
fn probes_are_filtered_by_their_arguments_root() {
    let name = "probes_are_filtered_by_their_arguments_root";
    let laboratory = Sandbox::new();
    if !crate::laboratory::is_root() {
        return crate::laboratory::skip_test(name, "tracefs is root's");
    }
    let Some(program) = compile_c_source(&laboratory, "calls", CALLS, &[]) else { return };
    let watch = |operation: &str| {
        let words = ["trace", "attach", "--max-slowdown", "1000000%", "--operation", operation, "--"];
        laboratory.run(&[&words[..], &[&program, "10000"]].concat())
    };
    for (operation, of, count) in [
        ("calls:call_entry[arg1==\"f\"]", "f", 5000),
        ("few=calls:call_entry[arg1==\"g\" && arg2<100]", "few", 50),
        ("both=calls:call_entry[arg1~\"?\"],calls:call_return", "both", 10_000),
    ] {
        let said = watch(operation);
        if is_uprobe_refused(name, &said) {
            return;
        }
        assert_eq!(said.code, Some(0), "{operation}: {}", said.err);
        let told = entry_counts(&laboratory, of);
        assert_eq!((told["entries"], told["ended"]), (count, count), "{operation}: {}", said.err);
    }
    // Nothing of it is left in the kernel's list.
    let list = std::fs::read_to_string("/sys/kernel/tracing/uprobe_events").unwrap_or_default();
    assert!(!list.contains("call_entry") && !list.contains(&program), "{list}");
    let said = watch("calls:call_entry[arg3==1]");
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!("probes_are_filtered_by_their_arguments_root_1", said.stable_err());
    let said = watch("calls:call_entry[arg1=f]");
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!("probes_are_filtered_by_their_arguments_root_2", said.stable_err());
}

/// A function of Python by its name: Debian's python3.11 passes `function__return` at each, `function__entry` at few.
#[test]
fn a_function_of_python_is_told_by_its_name_root() {
    let name = "a_function_of_python_is_told_by_its_name_root";
    let laboratory = Sandbox::new();
    let python = "/usr/bin/python3";
    let listed = laboratory.run(&["trace", "attach", "--list", "--program", python]).out;
    if !listed.contains("python:function__return") || !crate::laboratory::is_root() {
        return crate::laboratory::skip_test(name, "python3 has no USDT probes, or this is not root");
    }
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../xtask/victims/calls.py");
    let operation = "f=python:function__return[arg2==\"f\"],python:function__return[arg2==\"main\"]";
    let script = script.to_str().unwrap();
    let said = laboratory.run(&["trace", "attach", "--operation", operation, "--", python, script, "5000"]);
    if is_uprobe_refused(name, &said) {
        return;
    }
    assert!(said.code == Some(0) && said.out.contains("12375050"), "{}", said.err);
    assert_eq!(entry_counts(&laboratory, "f")["entries"], 5000);
}

/// What a JIT compiler made lies in no file; functions of the libraries of a Java program can be watched.
#[test]
fn a_java_program_is_watched_in_its_libraries_and_its_own_functions_are_refused() {
    let name = "a_java_program_is_watched_in_its_libraries_and_its_own_functions_are_refused";
    let laboratory = Sandbox::new();
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../xtask/victims/Calls.java");
    let folder = laboratory.path("java");
    let built = Command::new("javac").arg("-d").arg(&folder).arg(&source).status();
    if !built.is_ok_and(|status| status.success()) {
        return crate::laboratory::skip_test(name, "no javac");
    }
    // Says which methods it compiles, each before its code is there.
    let mut java = Command::new("java")
        .arg("-XX:+PrintCompilation")
        .arg("-cp")
        .arg(&folder)
        .args(["Calls", "1000000000"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(java.stdout.take().unwrap()).lines();
    let mut compiles = |wanted: &str| lines.any(|line| line.unwrap().contains(wanted));
    // A method is compiled again when the first code of it has run for a while.
    let compiled = compiles("Calls::work") && compiles("Calls::work");
    let drained = std::thread::spawn(move || lines.for_each(drop));
    let pid = java.id().to_string();
    let attach = |operation: &str| {
        laboratory.run(&["trace", "attach", "--operation", operation, "--pid", &pid, "--for", "300ms"])
    };
    let own = attach("Calls.work");
    // Every hundredth call throws.
    let watched = attach("thrown=libjvm.so:JVM_FillInStackTrace");
    let lives = java.try_wait().unwrap().is_none();
    java.kill().unwrap();
    java.wait().unwrap();
    drained.join().unwrap();
    assert!(compiled && lives, "{} {}", own.err, watched.err);
    assert_eq!(own.code, Some(2), "{}", own.err);
    if !is_uprobe_refused(name, &watched) {
        assert_eq!(watched.code, Some(0), "{}", watched.err);
        assert!(entry_counts(&laboratory, "thrown")["ended"] > 0, "{}", watched.err);
        // What was refused left none.
        laboratory.only_run();
    }
}
