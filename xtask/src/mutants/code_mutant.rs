//! One change of the code, as cargo-mutants lists it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use damage::MutationRandom;
use serde_json::Value;

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MutantKind {
    /// A function returns a value at once.
    FunctionValue,
    /// A binary operator is another.
    BinaryOperator,
    /// A unary operator is gone.
    UnaryOperator,
    /// An arm of a `match` is gone.
    MatchArm,
    /// The guard of an arm is `true` or `false`.
    MatchArmGuard,
    /// A field is what the base of the structure says.
    StructField,
}

/// A place in a file: line and column in characters, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePlace {
    pub line: usize,
    pub column: usize,
}

/// One change.
#[derive(Debug, Clone)]
pub struct CodeMutant {
    /// File, place and change in one line: unique.
    pub name: String,
    /// The package of the file.
    pub package: String,
    /// Beside the workspace's root.
    pub file: PathBuf,
    pub kind: MutantKind,
    /// What is replaced: from here up to the end.
    pub start: SourcePlace,
    pub end: SourcePlace,
    /// What stands there then.
    pub replacement: String,
}

impl CodeMutant {
    fn from_json(value: &Value) -> Option<Self> {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let place = |end: &str| {
            let number = |key: &str| usize::try_from(value["span"][end][key].as_u64()?).ok();
            Some(SourcePlace { line: number("line")?, column: number("column")? })
        };
        let kind = match value["genre"].as_str()? {
            "FnValue" => MutantKind::FunctionValue,
            "BinaryOperator" => MutantKind::BinaryOperator,
            "UnaryOperator" => MutantKind::UnaryOperator,
            "MatchArm" => MutantKind::MatchArm,
            "MatchArmGuard" => MutantKind::MatchArmGuard,
            "StructField" => MutantKind::StructField,
            _ => return None,
        };
        Some(CodeMutant {
            name: text("name")?,
            package: text("package")?,
            file: text("file")?.into(),
            kind,
            start: place("start")?,
            end: place("end")?,
            replacement: text("replacement")?,
        })
    }
}

/// All mutants of these files (patterns as of cargo-mutants) of the workspace in `tree`.
pub fn list_mutants(files: &[&str], tree: &Path) -> Result<Vec<CodeMutant>> {
    let mut command = Command::new("cargo");
    command.args(["mutants", "--workspace", "--list", "--json", "--dir"]).arg(tree);
    command.args(files.iter().map(|file| format!("--file={file}")));
    let output = command.output().context("cannot run cargo mutants")?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let listed: Vec<Value> =
        serde_json::from_slice(&output.stdout).context("cargo mutants --list --json prints no list")?;
    let read = |value| CodeMutant::from_json(value).with_context(|| format!("an unknown mutant: {value}"));
    listed.iter().map(read).collect()
}

/// So many of all, each as likely as every other, the same for the same seed.
pub fn draw_mutants(mut all: Vec<CodeMutant>, count: usize, seed: u64) -> Vec<CodeMutant> {
    all.sort_by(|one, other| one.name.cmp(&other.name));
    let mut random = MutationRandom::from_seed(seed);
    let mut drawn = Vec::new();
    while drawn.len() < count && !all.is_empty() {
        drawn.push(all.swap_remove(random.next_below(all.len())));
    }
    drawn
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mutant(name: &str) -> CodeMutant {
        let place = |line, column| json!({ "line": line, "column": column });
        let listed = json!({ "name": name, "package": "p", "file": "src/lib.rs", "genre": "BinaryOperator",
            "span": { "start": place(3, 9), "end": place(3, 10) }, "replacement": "-" });
        CodeMutant::from_json(&listed).unwrap()
    }

    #[test]
    fn a_listed_mutant_is_read() {
        let read = mutant("src/lib.rs:3:9: replace + with - in f");
        assert_eq!((read.kind, read.replacement.as_str()), (MutantKind::BinaryOperator, "-"));
        assert_eq!((read.start, read.end.column), (SourcePlace { line: 3, column: 9 }, 10));
    }

    #[test]
    fn a_seed_draws_the_same_mutants_each_once() {
        let all: Vec<CodeMutant> = (0..50).map(|number| mutant(&number.to_string())).collect();
        let names =
            |drawn: Vec<CodeMutant>| -> Vec<String> { drawn.into_iter().map(|mutant| mutant.name).collect() };
        let mut drawn = names(draw_mutants(all.clone(), 20, 7));
        assert_eq!(drawn, names(draw_mutants(all.iter().rev().cloned().collect(), 20, 7)));
        assert_ne!(drawn, names(draw_mutants(all.clone(), 20, 8)));
        drawn.sort();
        drawn.dedup();
        assert_eq!((drawn.len(), draw_mutants(all, 99, 7).len()), (20, 50));
    }
}
