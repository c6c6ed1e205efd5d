//! `cargo xtask long causes`: known causes are put into real runs, and `perflab why` is asked for them; the counts become a table of
//! `docs/why.md`.
//!
//! Runs and answers lie in `target/causes`; a cause whose answers are there is not run again, unless `--again`. `--ask` asks the runs that are
//! there once more, with the perflab of now.

mod known_causes;
pub mod load;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use known_causes::{Injection, KNOWN_CAUSES, KnownCause};

use crate::page_block;

/// Where the table stands.
const PAGE: &str = "docs/why.md";

/// A control group of version 1 with a quota, which this makes and removes.
const CPU_GROUP: &str = "/sys/fs/cgroup/cpu/perflab-causes";

/// What is typed behind `long causes`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CauseOptions {
    /// so many causes, chosen by the seed
    sample: Option<usize>,
    seed: u64,
    only: Option<String>,
    placebos: usize,
    iterations: u32,
    again: bool,
    ask: bool,
    table: bool,
}

impl CauseOptions {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut found = CauseOptions {
            sample: None,
            seed: 1,
            only: None,
            placebos: 10,
            iterations: 12,
            again: false,
            ask: false,
            table: true,
        };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--sample" => found.sample = Some(value()?.parse()?),
                "--seed" => found.seed = value()?.parse()?,
                "--only" => found.only = Some(value()?.clone()),
                "--placebos" => found.placebos = value()?.parse()?,
                "--iterations" => found.iterations = value()?.parse()?,
                "--again" => found.again = true,
                "--ask" => found.ask = true,
                "--no-table" => found.table = false,
                _ => bail!("`{word}` is not known here"),
            }
        }
        Ok(found)
    }

    /// The causes that are put in, in the order of the table.
    fn choose(&self) -> Vec<&'static KnownCause> {
        let mut all: Vec<(u64, usize)> =
            (0..KNOWN_CAUSES.len()).map(|at| (mix(self.seed, at as u64), at)).collect();
        all.sort_unstable();
        let mut places: Vec<usize> =
            all.into_iter().map(|(_, at)| at).take(self.sample.unwrap_or(usize::MAX)).collect();
        places.sort_unstable();
        let named = |cause: &&KnownCause| self.only.as_ref().is_none_or(|only| cause.name == only);
        places.into_iter().filter_map(|at| KNOWN_CAUSES.get(at)).filter(named).collect()
    }
}

/// SplitMix64 of a seed and a number (Steele, Lea and Flood 2014).
fn mix(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// What `why` said of a strength.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CauseAnswer {
    cause: String,
    level: String,
    verdict: String,
    suspects: Vec<String>,
}

impl CauseAnswer {
    fn is_changed(&self) -> bool {
        matches!(self.verdict.as_str(), "better" | "worse")
    }

    /// The place of the first right suspect, from 1.
    fn place(&self, right: &[&str]) -> Option<usize> {
        self.suspects.iter().position(|name| right.contains(&name.as_str())).map(|at| at + 1)
    }

    fn to_line(&self) -> String {
        format!("{}\t{}\t{}\t{}\n", self.cause, self.level, self.verdict, self.suspects.join("; "))
    }

    fn from_line(line: &str) -> Option<Self> {
        let mut cells = line.split('\t').map(str::to_owned);
        let (cause, level, verdict) = (cells.next()?, cells.next()?, cells.next()?);
        let suspects = cells.next()?;
        let suspects = suspects.split("; ").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Some(CauseAnswer { cause, level, verdict, suspects })
    }
}

/// Puts causes in, asks for them, and writes the table; `false` where fewer are right than the issue promises.
pub fn inject_causes(arguments: &[String]) -> Result<bool> {
    let options = CauseOptions::parse(arguments)?;
    let laboratory = Laboratory::open()?;
    let mut answers = laboratory.read_answers()?;
    for cause in options.choose() {
        if options.again || options.ask {
            answers.retain(|answer| answer.cause != cause.name);
        }
        if answers.iter().any(|answer| answer.cause == cause.name) {
            continue;
        }
        println!("{}: {}", cause.name, cause.about);
        let found = laboratory.ask(cause, &options)?;
        for answer in &found {
            println!("  {}: {}; {}", answer.level, answer.verdict, answer.suspects.join("; "));
        }
        answers.extend(found);
        laboratory.write_answers(&answers)?;
    }
    for number in 0..options.placebos {
        let name = format!("placebo-{number}");
        if !answers.iter().any(|answer| answer.cause == name) {
            println!("{name}");
            answers.extend(laboratory.ask_placebo(&name, number, &options)?);
            laboratory.write_answers(&answers)?;
        }
    }
    let table = render_table(&answers);
    println!("{}", table.text);
    if options.table && options.sample.is_none() && options.only.is_none() {
        page_block::write_block(PAGE, "cargo xtask long causes", &table.text)?;
    }
    Ok(table.is_kept)
}

/// Where runs are made and asked.
struct Laboratory {
    home: PathBuf,
    perflab: PathBuf,
    load: PathBuf,
}

impl Laboratory {
    fn open() -> Result<Self> {
        let load = std::env::current_exe().context("cannot find this program")?;
        let target = load.parent().and_then(Path::parent).context("no target directory")?.to_owned();
        let built = Command::new("cargo").args(["build", "--quiet", "--package", "perflab"]).status()?;
        if !built.success() {
            bail!("perflab cannot be built");
        }
        let home = target.join("causes");
        fs::create_dir_all(home.join("scratch"))?;
        let data = home.join("scratch/cause-load.data");
        if !data.exists() {
            // Not zeros, which some file systems do not store.
            let bytes: Vec<u8> = (0..8_u64 << 20).flat_map(|number| mix(7, number).to_le_bytes()).collect();
            fs::write(&data, bytes)?;
        }
        // A copy: what is built meanwhile must not change what is measured.
        let copy = home.join("cause-load");
        fs::copy(&load, &copy)?;
        Ok(Laboratory { perflab: target.join("debug/perflab"), load: copy, home })
    }

    fn answers_file(&self) -> PathBuf {
        self.home.join("answers.tsv")
    }

    fn read_answers(&self) -> Result<Vec<CauseAnswer>> {
        if !self.answers_file().exists() {
            return Ok(Vec::new());
        }
        Ok(fs::read_to_string(self.answers_file())?.lines().filter_map(CauseAnswer::from_line).collect())
    }

    fn write_answers(&self, answers: &[CauseAnswer]) -> Result<()> {
        Ok(fs::write(self.answers_file(), answers.iter().map(CauseAnswer::to_line).collect::<String>())?)
    }

    fn perflab(&self, words: &[&str]) -> Result<std::process::Output> {
        self.set_up(Command::new(&self.perflab).args(words)).output().context("cannot run perflab")
    }

    fn set_up<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env("PERFLAB_ARCHIVE", self.home.join("archive")).current_dir(&self.home)
    }

    /// The study of a cause.
    fn study(&self, cause: &KnownCause, options: &CauseOptions) -> String {
        let load = format!("{} cause-load", self.load.display());
        let scratch = self.home.join("scratch");
        let run = format!("{load} {}", scratch.display());
        let levels = format!("{:?}", cause.levels);
        let (command, factor) = match cause.injection {
            Injection::Dose => {
                (run, format!("kind = \"environment\"\nkey = \"PERFLAB_DOSE\"\nlevels = {levels}\n"))
            }
            Injection::Quota => {
                let factor =
                    format!("kind = \"file\"\nkey = \"{CPU_GROUP}/cpu.cfs_quota_us\"\nlevels = {levels}\n");
                (run, factor)
            }
            Injection::Placement => {
                let command = format!("env PERFLAB_DOSE=threads=2 {run}");
                (command, format!("kind = \"placement\"\nlevels = {levels}\n"))
            }
            Injection::Beside(beside) => {
                let mut tables = format!("kind = \"beside\"\nlevels = {levels}\n");
                for (level, command) in beside {
                    let command = command
                        .replace("{load}", &format!("taskset -c 0 {load}"))
                        .replace("{other}", &format!("taskset -c 1 {load}"));
                    let _ = writeln!(tables, "[beside.{level}]\ncommand = {command:?}");
                }
                (format!("taskset -c 0 {run}"), tables)
            }
            Injection::Setting { kind, key, dose } => {
                let command = format!("env 'PERFLAB_DOSE={dose}' {run}");
                (command, format!("kind = {kind:?}\nkey = {key:?}\nlevels = {levels}\n"))
            }
        };
        let data = scratch.join("cause-load.data");
        format!(
            "title = \"known cause: {}\"\n[run]\niterations = {}\nwarmup = 1\n\
             [workload.cause-load]\ncommand = {command:?}\nprepare = \"dd if={} iflag=nocache count=0 status=none\"\n\
             [factor.cause]\n{factor}{RECORDED}",
            cause.name,
            options.iterations,
            data.display(),
        )
    }

    /// Runs a cause's study and asks why, once for each strength.
    fn ask(&self, cause: &KnownCause, options: &CauseOptions) -> Result<Vec<CauseAnswer>> {
        let label = format!("{}-{}", cause.name, options.seed);
        if !(options.ask && self.perflab(&["show", &label])?.status.success()) {
            self.run(cause, &label, options)?;
        }
        let strengths = cause.levels.get(1..).unwrap_or_default();
        strengths.iter().map(|level| self.ask_why(cause.name, &label, level)).collect()
    }

    fn run(&self, cause: &KnownCause, label: &str, options: &CauseOptions) -> Result<()> {
        let is_in_group = matches!(cause.injection, Injection::Quota);
        let _group = is_in_group.then(QuotaGroup::create).transpose()?;
        let file = format!("{}.toml", cause.name);
        fs::write(self.home.join(&file), self.study(cause, options))?;
        let seed = options.seed.to_string();
        let _ = self.perflab(&["rm", label])?;
        let words = ["run", &file, "--label", label, "--seed", &seed, "--no-report", "--quiet"];
        let ran = if is_in_group {
            // A shell enters the group and becomes perflab.
            let enter = format!("echo 0 > {CPU_GROUP}/tasks && exec \"$0\" \"$@\"");
            self.set_up(Command::new("sh").arg("-c").arg(enter).arg(&self.perflab).args(words)).output()
        } else {
            self.set_up(Command::new(&self.perflab).args(words)).output()
        };
        let ran = ran.context("cannot run perflab")?;
        // A cause may make iterations fail.
        if !ran.status.success() && ran.status.code() != Some(WORKLOAD_FAILED) {
            bail!("{}: {}", cause.name, String::from_utf8_lossy(&ran.stderr));
        }
        Ok(())
    }

    fn ask_why(&self, name: &str, label: &str, level: &str) -> Result<CauseAnswer> {
        let said =
            self.perflab(&["why", label, "--by", "cause", "--versus", level, "--format", "json", "--quiet"])?;
        let found: Value = serde_json::from_slice(&said.stdout)
            .with_context(|| format!("{name} {level}: {}", String::from_utf8_lossy(&said.stderr)))?;
        let explanation = &found["explanation"];
        let lines = explanation["kernel_log"].as_array().into_iter().flatten();
        let explaining = lines.filter(|line| line["explains"] == true);
        let suspects = explaining.chain(explanation["suspects"].as_array().into_iter().flatten());
        Ok(CauseAnswer {
            cause: name.to_owned(),
            level: level.to_owned(),
            verdict: found["rows"][0]["verdict"].as_str().unwrap_or("missing").to_owned(),
            suspects: suspects.filter_map(|one| Some(one["cause"].as_str()?.to_owned())).collect(),
        })
    }

    /// The load against itself.
    fn ask_placebo(&self, name: &str, number: usize, options: &CauseOptions) -> Result<Vec<CauseAnswer>> {
        let seed = mix(options.seed, number as u64 + 100) % 1_000_000;
        let options = CauseOptions { seed, ..options.clone() };
        let placebo = KnownCause {
            name: "placebo",
            about: "",
            levels: &["none", "faults=0"],
            injection: Injection::Dose,
            right: &[],
        };
        let mut found = self.ask(&placebo, &options)?;
        found.iter_mut().for_each(|answer| name.clone_into(&mut answer.cause));
        Ok(found)
    }
}

/// Exit code of perflab where a workload failed.
const WORKLOAD_FAILED: i32 = 4;

/// What is recorded of every iteration.
const RECORDED: &str = "\
[monitors]
vmstat = \"edges\"
stat = \"edges\"
diskstats = \"edges\"
interrupts = \"edges\"
softirqs = \"edges\"
cgroup = \"edges\"
pressure = \"edges\"
delays = \"edges\"
[counters]
events = [\"page-faults\", \"cpu-migrations\", \"raw_syscalls:sys_enter\"]
[events.run-queue-delay]
recipe = \"run-queue-delay\"
[events.off-cpu]
recipe = \"off-cpu\"
[events.block-latency]
recipe = \"block-latency\"
";

/// A control group whose quota is a factor; it goes with this.
struct QuotaGroup;

impl QuotaGroup {
    fn create() -> Result<Self> {
        let (made, group) = (QuotaGroup, Path::new(CPU_GROUP));
        fs::create_dir_all(group).with_context(|| format!("cannot make {CPU_GROUP}"))?;
        fs::write(group.join("cpu.cfs_period_us"), "20000")?;
        Ok(made)
    }
}

impl Drop for QuotaGroup {
    fn drop(&mut self) {
        drop(fs::remove_dir(CPU_GROUP));
    }
}

/// The table, and whether what it says is what was promised.
struct CauseTable {
    text: String,
    is_kept: bool,
}

fn render_table(answers: &[CauseAnswer]) -> CauseTable {
    let mut by_cause: BTreeMap<usize, Vec<&CauseAnswer>> = BTreeMap::new();
    for answer in answers {
        if let Some(at) = KNOWN_CAUSES.iter().position(|cause| cause.name == answer.cause) {
            by_cause.entry(at).or_default().push(answer);
        }
    }
    let mut text = "| cause | what was done | strengths that changed | right first | among the first three | said first instead |\n|:--|:--|:--|:--|:--|:--|\n".to_owned();
    let (mut changed, mut first, mut three) = (0, 0, 0);
    for (at, answers) in by_cause {
        let Some(cause) = KNOWN_CAUSES.get(at) else { continue };
        let judged: Vec<&&CauseAnswer> = answers.iter().filter(|answer| answer.is_changed()).collect();
        let within = |most: usize| {
            judged
                .iter()
                .filter(|answer| answer.place(cause.right).is_some_and(|place| place <= most))
                .count()
        };
        let mut instead: Vec<&str> = judged
            .iter()
            .filter(|answer| answer.place(cause.right) != Some(1))
            .map(|answer| answer.suspects.first().map_or("nothing", String::as_str))
            .collect();
        instead.dedup();
        let _ = writeln!(
            text,
            "| {} | {} | {} of {} | {} | {} | {} |",
            cause.name,
            cause.about,
            judged.len(),
            answers.len(),
            within(1),
            within(3),
            instead.join("; ")
        );
        changed += judged.len();
        first += within(1);
        three += within(3);
    }
    let placebos: Vec<&CauseAnswer> =
        answers.iter().filter(|answer| answer.cause.starts_with("placebo")).collect();
    let named = placebos.iter().filter(|answer| !answer.suspects.is_empty()).count();
    let _ = writeln!(
        text,
        "\nFirst right in {first} of {changed}, among the first three in {three}; a suspect named in {named} of {} real placebos.",
        placebos.len()
    );
    let is_kept = first * 10 >= changed * 7 && three * 10 >= changed * 9 && named * 20 <= placebos.len();
    CauseTable { text, is_kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        let answer = CauseAnswer {
            cause: "faults".into(),
            level: "faults=5000".into(),
            verdict: "worse".into(),
            suspects: vec!["page faults".into(), "vmstat pgfree".into()],
        };
        assert_eq!(CauseAnswer::from_line(answer.to_line().trim_end()), Some(answer.clone()));
        assert_eq!((answer.place(&["vmstat pgfree"]), answer.place(&["interrupts"])), (Some(2), None));
    }

    #[test]
    fn a_sample_is_that_of_its_seed() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let names = |text: &str| {
            let options = CauseOptions::parse(&words(text)).unwrap();
            options.choose().iter().map(|cause| cause.name).collect::<Vec<_>>()
        };
        assert_eq!(names("--sample 6 --seed 3"), names("--sample 6 --seed 3"));
        assert_ne!(names("--sample 6 --seed 3"), names("--sample 6 --seed 4"));
        assert_eq!(names("--only hog"), ["hog"]);
        assert!(CauseOptions::parse(&words("--smaple 6")).is_err());
    }

    #[test]
    fn only_strengths_that_changed_count() {
        let answer = |level: &str, verdict: &str, suspects: &[&str]| CauseAnswer {
            cause: "faults".into(),
            level: level.into(),
            verdict: verdict.into(),
            suspects: suspects.iter().map(|name| (*name).to_owned()).collect(),
        };
        let table = render_table(&[
            answer("1", "unclear", &[]),
            answer("2", "worse", &["interrupts", "page faults"]),
            answer("3", "worse", &["page faults"]),
        ]);
        assert!(
            table
                .text
                .contains("| faults | pages touched for the first time | 2 of 3 | 1 | 2 | interrupts |")
        );
        assert!(!table.is_kept);
    }
}
