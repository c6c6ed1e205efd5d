//! A laboratory of the test's own: an archive, a state directory and workloads in a temporary folder.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub use fixtures::skip_test;

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// perflab as nobody runs it: a copy where they may come, which goes with its folder. State and archive lie there, too.
pub fn command_as_nobody() -> (tempfile::TempDir, Command) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let open = |path: &Path| fs::set_permissions(path, PermissionsExt::from_mode(0o1777)).unwrap();
    let copy = folder.path().join("perflab");
    fs::copy(env!("CARGO_BIN_EXE_perflab"), &copy).unwrap();
    [folder.path(), &copy].into_iter().for_each(open);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy).current_dir("/");
    command.env("PERFLAB_STATE", folder.path().join("state")).env("PERFLAB_ARCHIVE", folder.path());
    (folder, command)
}

pub struct Sandbox {
    pub home: tempfile::TempDir,
}

/// What a command said.
pub struct CommandOutput {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
    /// stderr for a snapshot: without ids of runs and names of temporary folders, which differ from run to run.
    pub fn stable_err(&self) -> String {
        mask_unstable(&self.err)
    }

    /// stdout for a snapshot.
    pub fn stable_out(&self) -> String {
        mask_unstable(&self.out)
    }

    /// The lines of stderr with this in them, a name or how they begin, for a snapshot of their wording: N for every number.
    pub fn err_wording_of(&self, name: &str) -> String {
        let lines = self.err.lines().filter(|line| line.contains(name)).map(mask_unstable);
        let wording = mask_numbers(&lines.collect::<Vec<_>>().join("\n"));
        assert!(!wording.is_empty(), "no line names `{name}`: {}", self.err);
        wording
    }
}

/// Puts N for each number that is no part of a name.
pub fn mask_numbers(text: &str) -> String {
    let mut masked = String::new();
    let mut letters = text.chars().peekable();
    let mut is_in_name = false;
    while let Some(letter) = letters.next() {
        if !letter.is_ascii_digit() || is_in_name {
            masked.push(letter);
            is_in_name = letter.is_alphanumeric() || letter == '_' || is_in_name && "-.".contains(letter);
            continue;
        }
        masked.push('N');
        // Thousands and decimals belong to it, a comma or a full stop behind it does not.
        while let Some(next) = letters.peek().copied() {
            let mut ahead = letters.clone().skip(1);
            let joins = ",.".contains(next) && ahead.next().is_some_and(|letter| letter.is_ascii_digit());
            if !next.is_ascii_digit() && !joins {
                break;
            }
            letters.next();
        }
    }
    masked
}

#[test]
fn numbers_are_masked_and_names_are_not() {
    let text = "took 1,234.5 µs of guest1 and p99.9 in 3 files, 42.\nx86_64 3x byte 8944: 67.3 %";
    assert_eq!(mask_numbers(text), "took N µs of guest1 and p99.9 in N files, N.\nx86_64 Nx byte N: N %");
}

/// Lines that measure this machine, or this instant.
const UNSTABLE_LINES: [&str; 4] =
    ["in memory before: ", "perflab's own cost over ", "begun ", "reading samples took "];

/// How the line beneath a row begins that names what went with its change.
const SUSPECT_LINE: &str = "    why: ";

/// Puts RUN for the id of a run, or the beginning of one, TMP for the name of a temporary folder, and VERSION for perflab's;
/// leaves out lines that measure.
fn mask_unstable(text: &str) -> String {
    // What went with a change, which is the luck of a run, and the rest of it on the next line.
    let mut is_suspect = false;
    let is_stable = |line: &&str| {
        is_suspect = line.starts_with(SUSPECT_LINE) || (is_suspect && line.starts_with("      "));
        !is_suspect && !UNSTABLE_LINES.iter().any(|start| line.starts_with(start))
    };
    let text = text.split_inclusive('\n').filter(is_stable).collect::<String>();
    let text = text
        .replace(concat!("perflab ", env!("CARGO_PKG_VERSION")), "perflab VERSION")
        .replace(env!("CARGO_MANIFEST_DIR"), "CRATE");
    let mut masked = String::new();
    let is_of_word = |c: char| c.is_ascii_alphanumeric();
    let mut rest = text.as_str();
    while let Some(start) = rest.find(is_of_word) {
        let (before, word) = rest.split_at(start);
        let (word, after) = word.split_at(word.find(|c| !is_of_word(c)).unwrap_or(word.len()));
        let is_upper = |c: char| c.is_ascii_digit() || c.is_ascii_uppercase();
        let is_id = word.len() >= 4 && word.starts_with("01") && word.chars().all(is_upper);
        masked.push_str(before);
        let is_folder = masked.ends_with("/.") && word.len() == 9 && word.starts_with("tmp")
            || masked.ends_with("/tmp/") && word.len() == 8 && word.starts_with("pv")
            || masked.ends_with("/perflab-PID-");
        let is_process = masked.ends_with("/perflab-") && word.bytes().all(|c| c.is_ascii_digit());
        masked.push_str(if is_id {
            "RUN"
        } else if is_process {
            "PID"
        } else if is_folder {
            "TMP"
        } else {
            word
        });
        rest = after;
    }
    masked + rest
}

impl Sandbox {
    pub fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("workloads")).unwrap();
        let laboratory = Sandbox { home };
        laboratory.write_workload(
            "echo",
            "[parameter.speed]\ntype = \"integer\"\ndefault = 100\nabout = \"what it says\"",
            // A file stands for the machine: what is measured changes, and what is run does not.
            &format!(
                "echo speed $(cat {} 2>/dev/null || echo {{{{ speed }}}})",
                laboratory.path("speed").display()
            ),
        );
        laboratory
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// A workload of the test's own, a shell script with one metric `speed`.
    pub fn write_workload(&self, name: &str, tables: &str, script: &str) {
        let text = format!(
            "title = \"{name}\"\nmeasures = \"a test\"\nhomepage = \"https://localhost\"\nlicence = \"MIT\"\n\
             argv = [\"sh\", \"-c\", '''{script}''']\n{tables}\n\
             [[metric]]\nname = \"speed\"\nunit = \"ops/s\"\ndirection = \"higher\"\nprimary = true\n\
             regex = 'speed (?<value>[0-9.]+)'\n"
        );
        fs::write(self.path(&format!("workloads/{name}.toml")), text).unwrap();
    }

    pub fn write_study(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, format!("title = \"{name}\"\n{text}")).unwrap();
        path.display().to_string()
    }

    /// perflab, not run yet. Who has it drop caches holds [`Caches`](crate::caches::Caches) until it has ended.
    pub fn command(&self, arguments: &[&str]) -> Command {
        crate::caches::assert_lock_held(arguments);
        let mut command = Command::new(env!("CARGO_BIN_EXE_perflab"));
        // Before the verb: what follows `--` belongs to the command that is recorded.
        command.arg("--workloads").arg(self.path("workloads")).args(arguments);
        command.current_dir(self.home.path()).stdin(Stdio::null());
        command.env("PERFLAB_ARCHIVE", self.path("archive")).env("PERFLAB_STATE", self.path("state"));
        if let Some(python) = find_test_python() {
            command.env("PERFLAB_SQL_ENGINE", python);
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        let _caches = crate::caches::lock_if_needed(arguments);
        to_command_output(self.command(arguments).output().unwrap())
    }

    /// Runs, and panics with everything that was said unless the exit code is 0.
    pub fn run_successfully(&self, arguments: &[&str]) -> CommandOutput {
        let said = self.run(arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}\n{}\n{}", said.out, said.err);
        said
    }

    /// What it says as JSON: what a test means stands there, and not in sentences that name every word there is.
    pub fn run_json(&self, arguments: &[&str]) -> serde_json::Value {
        let said = self.run_successfully(&[arguments, &["--format", "json"]].concat());
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{arguments:?}: {error}\n{}", said.out))
    }

    /// The samples of a metric of the newest run, each with its case's level of a factor.
    pub fn samples_by_level(&self, factor: &str, metric: &str) -> Vec<(String, f64)> {
        let exported = self.run_successfully(&["export", "--to", "csv", "--output", "-"]).out;
        let rows: Vec<Vec<&str>> = exported.lines().map(|line| line.split(',').collect()).collect();
        let column = |name: &str| rows[0].iter().position(|title| *title == name).unwrap();
        let level = column(&format!("factor.{factor}"));
        let [name, value] = ["metric", "value"].map(column);
        let of_metric = rows[1..].iter().filter(|row| row[name] == metric);
        of_metric.map(|row| (row[level].to_owned(), row[value].parse().unwrap())).collect()
    }

    /// How the newest run ended, as `list` has it.
    pub fn latest_status(&self) -> String {
        self.run_json(&["list", "--last", "1"])[0]["status"].as_str().unwrap().to_owned()
    }

    /// The metrics that `show` has of a run, each once.
    pub fn shown_metrics(&self, run: &str) -> BTreeSet<String> {
        let rows = self.run_json(&["show", run]);
        rows.as_array().unwrap().iter().map(|row| row["metric"].as_str().unwrap().to_owned()).collect()
    }

    /// The targets of the newest run.
    pub fn target_names(&self) -> Vec<String> {
        let archive = perflab_archive::Archive::open(&self.path("archive")).unwrap();
        let targets = archive.find_runs("@latest").unwrap().remove(0).manifest().unwrap().targets;
        targets.into_iter().map(|target| target.name).collect()
    }

    /// The name of the target that an event of the newest run is of.
    pub fn target_name(&self, event: &serde_json::Value) -> String {
        self.target_names().remove(event["target"].as_u64().unwrap() as usize)
    }

    /// A run of the `echo` workload with this label, on a machine of this speed.
    pub fn run_echo(&self, label: &str, speed: u32) {
        let study = self.write_study("echo.toml", "run = { iterations = 8, warmup = 0 }\n[workload.echo]");
        fs::write(self.path("speed"), speed.to_string()).unwrap();
        self.run_successfully(&["run", &study, "--label", label, "--quiet"]);
        fs::remove_file(self.path("speed")).unwrap();
    }

    /// A run of the `echo` workload whose study was edited to say this speed.
    pub fn run_echo_edited(&self, label: &str, speed: u32) {
        let text = format!(
            "run = {{ iterations = 8, warmup = 0 }}\n[workload.echo]\nparameters = {{ speed = {speed} }}"
        );
        let study = self.write_study("echo.toml", &text);
        self.run_successfully(&["run", &study, "--label", label, "--quiet"]);
    }

    /// A run of a workload over two matrix parameters, watched, under a factor whose levels are numbers: `size` 1 to 8, `kind` a, b.
    pub fn run_sized(&self, label: &str) {
        self.write_workload(
            "sized",
            "[parameter.size]\ntype = \"integer\"\ndefault = 1\nabout = \"a size\"\n\
             [parameter.kind]\ntype = \"text\"\ndefault = \"a\"\nabout = \"a kind\"",
            "case {{ kind }} in b) f=2 ;; *) f=1 ;; esac; sleep 0.01; \
             echo speed $(({{ size }} * 1000 * f / ({{ size }} + 9) + $(date +%N | tail -c 2)))",
        );
        let study = self.write_study(
            "sized.toml",
            "run = { iterations = 8, warmup = 0 }\nmonitors = { meminfo = \"1ms\", stat = \"1ms\" }\n\
             [workload.sized]\nmatrix = { kind = [\"a\", \"b\"] }\n\
             [factor.size]\nkind = \"parameter\"\nlevels = [\"1\", \"2\", \"4\", \"8\"]\n",
        );
        self.run_successfully(&["run", &study, "--label", label, "--quiet"]);
    }

    /// The directory of the only run.
    pub fn only_run(&self) -> PathBuf {
        let mut runs: Vec<PathBuf> =
            fs::read_dir(self.path("archive/runs")).unwrap().map(|run| run.unwrap().path()).collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.pop().unwrap()
    }
}

/// The interpreter of `target/test-venv`, which `cargo xtask test` makes.
pub fn find_test_python() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-venv/bin/python");
    path.exists().then_some(path)
}

pub fn to_command_output(output: Output) -> CommandOutput {
    CommandOutput {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
