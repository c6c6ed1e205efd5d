//! A real C program, compiled with the system's compiler against the header and the static library.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::skip_test;

const PROGRAM: &str = r#"
#include "optrace.h"
#include <stdio.h>

int main(void) {
    optrace *trace = optrace_open(NULL, "insert,find", "allocate, reap", "elements");
    optrace_recorder_t *recorder = optrace_recorder(trace);
    for (int n = 0; n < 1000; n++) {
        if (n % 10 == 0) {
            optrace_begin_in(recorder, n % 2, 0);
        } else {
            optrace_begin(recorder, n % 2);
        }
        optrace_number(recorder, 0, n);
        if (n % 10 == 0) {
            optrace_switch(recorder, 1);
            optrace_leave(recorder);
        }
        optrace_end(recorder);
    }
    if (trace != NULL && optrace_close(trace) == 0) {
        return 3;
    }
    optrace_recorder_close(recorder);
    printf("%d\n", trace != NULL);
    return optrace_close(trace);
}
"#;

/// The newest static library beside this test.
pub fn find_static_library() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let files = std::fs::read_dir(exe.parent()?).ok()?.flatten().map(|entry| entry.path());
    let ours = files.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("liboptrace") && name.ends_with(".a")
    });
    ours.max_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).ok())
}

/// A program, compiled; `None` where there is no compiler.
pub fn compile_program(folder: &Path, text: &str, library: &Path) -> Option<PathBuf> {
    if Command::new("cc").arg("--version").output().is_err() {
        return None;
    }
    let [source, program] = ["p.c", "p"].map(|name| folder.join(name));
    std::fs::write(&source, text).unwrap();
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    let built = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I", header, "-o"])
        .args([&program, &source])
        .arg(library)
        .args(["-lpthread", "-ldl", "-lm"])
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(program)
}

#[test]
fn a_program_in_c_is_traced() {
    let name = "a_program_in_c_is_traced";
    let library = find_static_library().expect("cargo built the static library");
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    let Some(program) = compile_program(folder.path(), PROGRAM, &library) else {
        return skip_test(name, "there is no `cc`");
    };

    let ran = Command::new(&program).env("OPTRACE_FILE", &trace).output().unwrap();
    assert!(ran.status.success() && ran.stdout == b"1\n", "{ran:?}");
    let file = optrace::TraceFile::open(&trace).unwrap();
    assert_eq!(file.vocabulary().spans, ["allocate", "reap"]);
    let mut spans = 0;
    let told = file.read_operations(|operation| spans += operation.spans.len()).unwrap();
    assert_eq!((told.operations, told.cut, spans), (1000, None, 200));

    let ran = Command::new(&program).env_remove("OPTRACE_FILE").output().unwrap();
    assert!(ran.status.success() && ran.stdout == b"0\n", "untraced: {ran:?}");
}
