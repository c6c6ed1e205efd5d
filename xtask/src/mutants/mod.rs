//! `cargo xtask long mutants`: a random sample of small changes of the code, one at a time, and the share that the tests catch.
//!
//! cargo-mutants lists what can be changed; the sample is drawn by a seed, which is printed. All of it is built once, each mutant
//! behind a switch, in a clone of the repository under `target/mutants`. Then every test of the workspace runs once by itself and
//! says which mutants it comes by, and each mutant is tried by those tests alone. What does not compile behind a switch is
//! compiled by itself. Outcomes are kept: a mutant is not tried again while commit, seed and count are the same.

mod code_mutant;
mod mutant_trial;
mod reaching_tests;
mod switched_source;
mod test_programs;
mod worker_pool;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use damage::MutationRandom;

use self::code_mutant::CodeMutant;
use self::mutant_trial::MutantOutcome;
use self::switched_source::SwitchedSource;
use self::test_programs::{CompilerError, TestEnd, TestProgram};
use crate::{needs, reliability};

/// What is sampled together.
struct MutantSample {
    name: &'static str,
    files: &'static [&'static str],
}

const SAMPLES: &[MutantSample] = &[
    MutantSample { name: "stats", files: &["crates/stats/src/**"] },
    MutantSample {
        name: "analyze and parsers",
        files: &[
            "crates/analyze/src/**",
            "crates/stacks/src/**",
            "crates/formats/src/**",
            "crates/import/src/**",
            "crates/observe/src/monitor/**",
        ],
    },
];

/// Mutants of a sample unless something else is said.
const COUNT: usize = 200;
/// The share that is to be caught.
const WANTED_PERCENT: f64 = 85.0;
/// All tests of a package, with one mutant: longer is endless.
const PACKAGE_LIMIT: Duration = Duration::from_secs(240);

/// What became of mutants.
#[derive(Default)]
struct MutantCounts {
    caught: usize,
    missed: Vec<String>,
    endless: usize,
    unviable: usize,
}

impl MutantCounts {
    fn count(&mut self, mutant: &CodeMutant, outcome: &MutantOutcome) {
        match outcome {
            MutantOutcome::Caught(_) => self.caught += 1,
            MutantOutcome::Endless(_) => self.endless += 1,
            MutantOutcome::Unviable => self.unviable += 1,
            MutantOutcome::Missed(tests) => self.missed.push(format!("{} ({tests} tests)", mutant.name)),
        }
    }

    /// Per cent of those that compile; a test that never ends has noticed, too.
    fn percent_caught(&self) -> f64 {
        let noticed = self.caught + self.endless;
        100.0 * noticed as f64 / (noticed + self.missed.len()).max(1) as f64
    }
}

/// Tests all samples, or some; `false` where less than the wanted share is caught.
pub fn test_mutants(arguments: &[String]) -> Result<bool> {
    let (mut count, mut only, mut seed) = (COUNT, Vec::new(), MutationRandom::new()?.next() >> 1);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--count" => count = value.parse().with_context(|| format!("--count {value}"))?,
            "--seed" => seed = value.parse().with_context(|| format!("--seed {value}"))?,
            "--only" => only.push(value.clone()),
            other => bail!("`{other}` is not known; there are --count N, --seed N and --only SAMPLE"),
        }
    }
    if let Some(name) = only.iter().find(|name| !SAMPLES.iter().any(|sample| sample.name == name.as_str())) {
        let names: Vec<&str> = SAMPLES.iter().map(|sample| sample.name).collect();
        bail!("there is no sample `{name}`; there are: {}", names.join(", "));
    }
    needs::install_cargo_program("cargo-mutants")?;
    let commit = reliability::tested_commit()?;
    println!("seed {seed}: --seed {seed} goes on where this is interrupted");
    // What is built differs from what is committed, file by file; what is listed does not.
    let sources = MutantTree::clone_repository("sources")?;
    sources.write_files(&BTreeMap::new())?;
    let tree = MutantTree::clone_repository("tree")?;
    let mut all_good = true;
    for sample in
        SAMPLES.iter().filter(|sample| only.is_empty() || only.iter().any(|name| name == sample.name))
    {
        let listed = code_mutant::list_mutants(sample.files, &sources.0)?;
        let mutants = code_mutant::draw_mutants(listed, count, seed);
        let directory = format!("target/mutants/{}-{commit}-{seed}-{count}", sample.name.replace(' ', "-"));
        println!("=== {}: {} mutants", sample.name, mutants.len());
        let counts = test_sample(&mutants, &tree, &std::env::current_dir()?.join(directory))?;
        let share = counts.percent_caught();
        println!("{}: {share:.1} % caught; missed:", sample.name);
        counts.missed.iter().for_each(|mutant| println!("  {mutant}"));
        let tested = counts.caught + counts.missed.len() + counts.endless + counts.unviable;
        let cells = [
            tested.to_string(),
            counts.unviable.to_string(),
            counts.caught.to_string(),
            counts.endless.to_string(),
            counts.missed.len().to_string(),
            format!("{share:.1} %, seed {seed}"),
        ];
        reliability::MUTANTS.record_row(sample.name, &cells, &commit)?;
        all_good &= share >= WANTED_PERCENT;
    }
    Ok(all_good)
}

/// A clone of what is committed, whose files are changed; its build directory stays from one time to the next.
struct MutantTree(PathBuf);

impl MutantTree {
    /// The clone of that name under `target/mutants`, at today's commit; its files may be others.
    fn clone_repository(name: &str) -> Result<Self> {
        let here = std::env::current_dir()?;
        let tree = MutantTree(here.join("target/mutants").join(name));
        if !tree.0.join(".git").exists() {
            needs::run_command(Command::new("git").args(["clone", "--quiet", "--local", "."]).arg(&tree.0))?;
        }
        tree.git(&["fetch", "--quiet", &here.display().to_string(), "HEAD"])?;
        // A file that is written anew is compiled anew: which ones differ is found out when they are written.
        tree.git(&["reset", "--quiet", "FETCH_HEAD"])?;
        tree.git(&["clean", "--quiet", "--force", "-d"])?;
        Ok(tree)
    }

    fn git(&self, arguments: &[&str]) -> Result<String> {
        let output =
            Command::new("git").arg("-C").arg(&self.0).args(arguments).output().context("cannot run git")?;
        if !output.status.success() {
            bail!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The file as it is committed.
    fn read_original(&self, file: &Path) -> Result<String> {
        self.git(&["show", &format!("HEAD:{}", file.display())])
    }

    /// Makes these files, and no others, differ from what is committed.
    fn write_files(&self, files: &BTreeMap<PathBuf, String>) -> Result<()> {
        for changed in self.git(&["diff", "--name-only"])?.lines() {
            if !files.contains_key(Path::new(changed)) {
                self.git(&["checkout", "--quiet", "--", changed])?;
            }
        }
        for (file, text) in files {
            let path = self.0.join(file);
            if fs::read_to_string(&path).ok().as_ref() != Some(text) {
                fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        Ok(())
    }
}

/// The root module of the library to which a file belongs.
fn crate_root(file: &Path) -> PathBuf {
    let is_source = |directory: &&Path| directory.file_name().is_some_and(|name| name == "src");
    file.ancestors().find(is_source).unwrap_or(Path::new("")).join("lib.rs")
}

/// Tries all of them; `directory` keeps what has been found out.
fn test_sample(mutants: &[CodeMutant], tree: &MutantTree, directory: &Path) -> Result<MutantCounts> {
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let (programs, alone) = build_switched(mutants, tree, &directory.join("alone"))?;
    let (tests, unfit) = reaching_tests::find_reaching_tests(&programs, &directory.join("reaching-tests"))?;
    println!(
        "{} tests are of use; {} fail or take too long by themselves: {}",
        tests.len(),
        unfit.len(),
        unfit.join(" ")
    );
    let outcomes = KeptOutcomes::open(&directory.join("outcomes"))?;
    let others = RwLock::new(());
    worker_pool::work_through(mutants.len(), |number| {
        let mutant = &mutants[number];
        if alone.contains(&number) || outcomes.find(mutant).is_some() {
            return Ok(());
        }
        outcomes.keep(mutant, mutant_trial::try_mutant(number, mutant, &programs, &tests, &others)?)
    })?;
    for mutant in alone.iter().map(|number| &mutants[*number]) {
        if outcomes.find(mutant).is_none() {
            outcomes.keep(mutant, test_alone(mutant, tree)?)?;
        }
    }
    let mut counts = MutantCounts::default();
    for mutant in mutants {
        let outcome = outcomes.find(mutant).with_context(|| format!("no outcome of {}", mutant.name))?;
        counts.count(mutant, &outcome);
    }
    Ok(counts)
}

/// Builds the tests with all mutants behind switches; those that cannot be there are returned, and found again in `kept`.
fn build_switched(
    mutants: &[CodeMutant],
    tree: &MutantTree,
    kept: &Path,
) -> Result<(Vec<TestProgram>, BTreeSet<usize>)> {
    let known = fs::read_to_string(kept).unwrap_or_default();
    let mut alone: BTreeSet<usize> = known.lines().filter_map(|number| number.parse().ok()).collect();
    loop {
        let sources = switch_sources(mutants, &mut alone, tree)?;
        let mut files: BTreeMap<PathBuf, String> =
            sources.iter().map(|(file, source)| (file.clone(), source.text.clone())).collect();
        for root in sources.keys().map(|file| crate_root(file)).collect::<BTreeSet<PathBuf>>() {
            let original = files.remove(&root).map_or_else(|| tree.read_original(&root), Ok)?;
            files.insert(root, original + &switched_source::switch_module(mutants.len()));
        }
        tree.write_files(&files)?;
        println!("{} behind switches, {} alone: building", mutants.len() - alone.len(), alone.len());
        match test_programs::build_tests(&tree.0, &[])? {
            Ok(programs) => {
                let lines: Vec<String> = alone.iter().map(usize::to_string).collect();
                fs::write(kept, lines.join("\n"))
                    .with_context(|| format!("cannot write {}", kept.display()))?;
                return Ok((programs, alone));
            }
            Err(errors) => {
                let blamed = blame_mutants(&errors, &sources);
                if blamed.is_empty() {
                    let texts: Vec<&str> = errors.iter().map(|error| error.text.as_str()).collect();
                    bail!("the tests do not compile, and no mutant is the cause:\n{}", texts.join("\n"));
                }
                alone.extend(blamed);
            }
        }
    }
}

/// The files with their mutants; those inside macros join the ones that stand alone.
fn switch_sources(
    mutants: &[CodeMutant],
    alone: &mut BTreeSet<usize>,
    tree: &MutantTree,
) -> Result<BTreeMap<PathBuf, SwitchedSource>> {
    let mut by_file: BTreeMap<&Path, Vec<(usize, &CodeMutant)>> = BTreeMap::new();
    for (number, mutant) in mutants.iter().enumerate().filter(|(number, _)| !alone.contains(number)) {
        by_file.entry(&mutant.file).or_default().push((number, mutant));
    }
    let mut sources = BTreeMap::new();
    for (file, mutants) in by_file {
        let source = switched_source::switch_mutants(&tree.read_original(file)?, &mutants)
            .with_context(|| file.display().to_string())?;
        alone.extend(&source.left_out);
        sources.insert(file.to_owned(), source);
    }
    Ok(sources)
}

/// The mutants at whose places the compiler stumbles; where an error is beside them all, all of its file.
fn blame_mutants(errors: &[CompilerError], sources: &BTreeMap<PathBuf, SwitchedSource>) -> BTreeSet<usize> {
    let mut blamed = BTreeSet::new();
    for error in errors {
        let places: Vec<(&SwitchedSource, _)> = error
            .places
            .iter()
            .filter_map(|(file, start, end)| Some((sources.get(file)?, *start..*end)))
            .collect();
        let inside: Vec<usize> =
            places.iter().filter_map(|(source, bytes)| source.mutant_at(bytes)).collect();
        if inside.is_empty() {
            blamed.extend(places.iter().flat_map(|(source, _)| source.numbers()));
        } else {
            blamed.extend(inside);
        }
    }
    blamed
}

/// Compiles the mutant in place of the original, and runs the tests of its package.
fn test_alone(mutant: &CodeMutant, tree: &MutantTree) -> Result<MutantOutcome> {
    let original = tree.read_original(&mutant.file)?;
    let text = switched_source::replace_by_mutant(&original, mutant)
        .with_context(|| format!("nothing is at {}", mutant.name))?;
    tree.write_files(&BTreeMap::from([(mutant.file.clone(), text)]))?;
    let Ok(programs) = test_programs::build_tests(&tree.0, &[&mutant.package])? else {
        return Ok(MutantOutcome::Unviable);
    };
    for program in &programs {
        match program.run_all_tests(&reaching_tests::LEFT_OUT, PACKAGE_LIMIT)? {
            TestEnd::Passed => {}
            TestEnd::Failed => return Ok(MutantOutcome::Caught(mutant.package.clone())),
            TestEnd::Endless => return Ok(MutantOutcome::Endless(mutant.package.clone())),
        }
    }
    Ok(MutantOutcome::Missed(programs.len()))
}

/// Outcomes in a file, a line each: the outcome, a tab, the mutant's name.
struct KeptOutcomes {
    file: PathBuf,
    known: Mutex<BTreeMap<String, MutantOutcome>>,
}

impl KeptOutcomes {
    fn open(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        let known = lines.map(|(outcome, name)| Ok((name.to_owned(), MutantOutcome::from_line(outcome)?)));
        Ok(KeptOutcomes { file: file.to_owned(), known: Mutex::new(known.collect::<Result<_>>()?) })
    }

    fn find(&self, mutant: &CodeMutant) -> Option<MutantOutcome> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&mutant.name).cloned()
    }

    fn keep(&self, mutant: &CodeMutant, outcome: MutantOutcome) -> Result<()> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.file)
            .with_context(|| format!("cannot open {}", self.file.display()))?;
        let line = format!("{}\t{}", outcome.to_line(), mutant.name);
        println!("{:4} {line}", known.len() + 1);
        writeln!(file, "{line}").with_context(|| format!("cannot write {}", self.file.display()))?;
        known.insert(mutant.name.clone(), outcome);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_noticed_and_what_does_not_compile_counts_for_nothing() {
        let counts = MutantCounts { caught: 7, missed: vec!["one".into()], endless: 2, unviable: 5 };
        assert!((counts.percent_caught() - 90.0).abs() < 1e-9);
    }

    #[test]
    fn a_file_belongs_to_the_library_around_it() {
        let file = Path::new("crates/observe/src/monitor/slab.rs");
        assert_eq!(crate_root(file), Path::new("crates/observe/src/lib.rs"));
    }
}
