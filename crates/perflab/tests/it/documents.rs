//! The book: every `perflab` command that it shows is run here, in order, page by page. The pages that a newcomer reads first
//! take nothing for granted and are run in `newcomer`.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use perflab_analyze::Verdict;

use crate::laboratory::{Sandbox, find_test_python, skip_test};

fn project_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A page, by its path in the project.
pub fn read_page(path: &str) -> String {
    fs::read_to_string(project_root().join(path)).unwrap()
}

/// Pages that are followed to the letter, in `newcomer`, `object_storage` and below.
const FOLLOWED_PAGES: &[&str] = &["tutorial.md", "format.md", "serve.md", "object-storage.md"];

/// The commands of a page's ```sh blocks.
fn shell_commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside && !line.trim().is_empty() && !line.starts_with('#') {
            commands.push(line.trim().to_owned());
        }
    }
    commands
}

/// What each page may take for granted: two runs of a study, the study itself, a log of /proc/slabinfo, a configuration of MMTests, and
/// a job file of lkp-tests.
pub fn prepare_sandbox() -> Sandbox {
    let laboratory = Sandbox::new();
    let study = "title = \"pages\"\nrun = { iterations = 6, warmup = 0 }\n[workload.memory-sweep]\nparameters = { size = \"8MiB\", passes = 16 }\n\
                 [factor.pages]\nkind = \"parameter\"\nlevels = [\"ordinary\", \"huge\"]\n[monitors]\nvmstat = \"5ms\"\nstat = \"5ms\"\n";
    fs::write(laboratory.path("study.toml"), study).unwrap();
    fs::write(laboratory.path("slabinfo.log"), crate::slab::slabinfo_log(20, 0)).unwrap();
    for (data, name) in [("config-mine", "config-latency"), ("job-mine.yaml", "messages.yaml")] {
        fs::copy(project_root().join("crates/perflab/tests/data").join(data), laboratory.path(name)).unwrap();
    }
    write_mmtests_logs(&laboratory);
    for label in ["before", "after"] {
        laboratory.run_successfully(&["run", "study.toml", "--label", label, "--quiet"]);
    }
    laboratory
}

/// Two log directories in MMTests' layout.
fn write_mmtests_logs(laboratory: &Sandbox) {
    for (run, tenths) in [("base-vanilla", 10..15), ("patch-v1", 9..14)] {
        let iteration = laboratory.path(&format!("mmtests-logs/{run}/iter-0"));
        fs::create_dir_all(iteration.join("hackbench/logs")).unwrap();
        let times: String = tenths.map(|time| format!("     Total time: 0.{time} [sec]\n")).collect();
        fs::write(iteration.join("hackbench/logs/hackbench-1"), times).unwrap();
        let stamps = "test begin :: hackbench 1700000001\ntest end :: hackbench 1700000009 0\n";
        fs::write(iteration.join("tests-timestamp"), stamps).unwrap();
    }
}

fn run_page_commands(page: &Path) -> usize {
    let text = fs::read_to_string(page).unwrap();
    let commands: Vec<String> =
        shell_commands(&text).into_iter().filter(|line| line.starts_with("perflab ")).collect();
    if commands.is_empty() {
        return 0;
    }
    if page.ends_with("query.md") && find_test_python().is_none() {
        skip_test("query.md", "no target/test-venv (cargo xtask test makes it)");
        return 0;
    }
    let laboratory = prepare_sandbox();
    for line in &commands {
        let words = shlex::split(line).unwrap();
        let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        let said = laboratory.run(&words);
        // A gate ends with 5 where something became worse: what beside this test was measured here decides that. The guard
        // ends with 7, as two runs are no history, and `why` where nothing changed.
        let is_gate = words.contains(&"--fail-if") || matches!(words.first(), Some(&("guard" | "why")));
        let fine = said.code == Some(0) || is_gate && matches!(said.code, Some(5 | 7));
        assert!(fine, "{}: {line}: {:?}\n{}\n{}", page.display(), said.code, said.out, said.err);
    }
    commands.len()
}

#[test]
fn every_command_of_the_book_runs() {
    let mut pages: Vec<PathBuf> =
        fs::read_dir(project_root().join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let is_followed = |page: &Path| FOLLOWED_PAGES.iter().any(|name| page.ends_with(name));
    pages.retain(|page| page.extension().is_some_and(|ending| ending == "md") && !is_followed(page));
    let run: usize = pages.iter().map(|page| run_page_commands(page)).sum();
    assert!(run >= 15, "only {run} commands found");
}

/// One script, as a reader has one shell: the server that it begins answers what it asks.
#[test]
fn the_page_about_the_laboratory_is_a_script_that_runs() {
    if Command::new("curl").arg("--version").output().is_err() {
        return skip_test("serve.md", "no curl");
    }
    let laboratory = prepare_sandbox();
    laboratory.run_successfully(&["label", "after", "nightly"]);
    let study =
        "title = \"night\"\nrun = { iterations = 3, warmup = 0 }\n[workload.build]\ncommand = \"true\"\n";
    fs::write(laboratory.path("nightly.toml"), study).unwrap();
    laboratory.run_successfully(&["run", "nightly.toml", "--quiet"]);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let blocks = read_page("docs/serve.md");
    let blocks = blocks.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let script: String = blocks.collect::<Vec<_>>().concat().replace("8080", &port.to_string());
    // Whatever becomes of it, the server ends with it: its outputs are those that are waited for here.
    let script = format!("trap 'kill $!' EXIT\nset -e\n{script}");
    let like = laboratory.command(&["list"]);
    let folder = Path::new(like.get_program()).parent().unwrap().display().to_string();
    let mut shell = Command::new("timeout");
    shell.args(["60", "bash", "-c", &script]).current_dir(laboratory.path(""));
    shell.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.env("PATH", format!("{folder}:{}", std::env::var("PATH").unwrap()));
    let said = shell.output().unwrap();
    let texts = [&said.stdout, &said.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(said.status.success(), "{texts:?}");
    assert!(texts[0].contains("\"label\":\"nightly\""), "{texts:?}");
    assert!(fs::read_to_string(laboratory.path("time.svg")).unwrap().starts_with("<svg"));
}

/// Verbs that perflab starts itself: they have no help.
const HIDDEN_VERBS: &[&str] = &["agent", "disk-server", "load"];

/// The words after `perflab` that can be verbs.
fn leading_verbs(code: &str) -> Option<Vec<&str>> {
    let rest = code.trim_start().strip_prefix("perflab ")?;
    let is_verb =
        |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
    Some(rest.split_ascii_whitespace().take_while(is_verb).collect())
}

/// A page's code: what stands between backticks, and the lines of its blocks.
fn code_of_page(page: &str) -> Vec<&str> {
    let inline = page.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let mut fenced = false;
    let shown = page.lines().filter(move |line| {
        fenced ^= line.starts_with("```");
        fenced
    });
    inline.chain(shown).collect()
}

/// The words after `perflab` in a page's code: one list for each command that it names or shows.
fn named_commands(page: &str) -> Vec<Vec<&str>> {
    code_of_page(page).into_iter().filter_map(leading_verbs).filter(|words| !words.is_empty()).collect()
}

/// The pages in these folders of the project.
fn find_pages(folders: &[&str]) -> Vec<PathBuf> {
    let entries = folders.iter().flat_map(|folder| fs::read_dir(project_root().join(folder)).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect()
}

/// Also those that stand in a sentence and are run by no test.
#[test]
fn every_command_that_a_page_names_exists() {
    let reference = read_page("docs/reference/commands.md");
    let verbs: HashSet<&str> =
        reference.lines().filter_map(|line| line.strip_prefix("## perflab ")).collect();
    let has_verbs_below = |verb: &str| verbs.iter().any(|other| other.starts_with(&format!("{verb} ")));
    let exists = |words: &[&str]| match words {
        [verb, ..] if HIDDEN_VERBS.contains(verb) => true,
        [verb, below, ..] if has_verbs_below(verb) => verbs.contains(format!("{verb} {below}").as_str()),
        [verb, ..] => verbs.contains(verb),
        [] => true,
    };
    for path in find_pages(&["docs", "docs/decisions"]) {
        for words in named_commands(&fs::read_to_string(&path).unwrap()) {
            assert!(exists(&words), "{} names `perflab {}`", path.display(), words.join(" "));
        }
    }
}

/// The long options of a command that a page names or shows, up to what belongs to another program.
fn named_options(code: &str) -> Vec<String> {
    let words = shlex::split(code.trim_start()).unwrap_or_default();
    let ends = |word: &&String| !["--", "|", ";", "&&", ">", "\\"].contains(&word.as_str());
    let options = words.iter().take_while(ends).filter(|word| word.starts_with("--"));
    options.map(|word| word.split('=').next().unwrap().to_owned()).collect()
}

/// Also those in tables and sentences, such as a page that holds perflab's commands beside another tool's.
#[test]
fn every_option_that_a_page_names_exists() {
    let reference = read_page("docs/reference/commands.md");
    let helps: Vec<(&str, &str)> =
        reference.split("\n## ").filter_map(|section| section.split_once('\n')).collect();
    let options_of = |verb: &str| -> HashSet<&str> {
        let texts = helps.iter().filter(|(title, _)| *title == verb || *title == "perflab");
        let is_of_option = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        texts
            .flat_map(|(_, help)| help.split(|c| !is_of_option(c)))
            .filter(|word| word.starts_with("--"))
            .collect()
    };
    let mut unknown = Vec::new();
    for path in find_pages(&["docs", "docs/decisions"]) {
        for code in code_of_page(&fs::read_to_string(&path).unwrap()) {
            let Some(words) = leading_verbs(code) else { continue };
            // The longest beginning that is a verb: what follows may be a run.
            let verbs = (1..=words.len()).rev().map(|count| format!("perflab {}", words[..count].join(" ")));
            let Some(verb) = verbs.into_iter().find(|verb| helps.iter().any(|(title, _)| title == verb))
            else {
                continue;
            };
            let known = options_of(&verb);
            let options = named_options(code).into_iter().filter(|option| !known.contains(option.as_str()));
            unknown.extend(options.map(|option| format!("{}: {verb} {option}", path.display())));
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let contents = fs::read_to_string(project_root().join("docs/SUMMARY.md")).unwrap();
    for entry in fs::read_dir(project_root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") && name != "SUMMARY.md" {
            assert!(contents.contains(&format!("({name})")), "{name} is not in docs/SUMMARY.md");
        }
    }
}

#[test]
fn the_reference_is_what_the_code_says() {
    let laboratory = Sandbox::new();
    let schema = fs::read_to_string(project_root().join("docs/reference/study.schema.json")).unwrap();
    assert_eq!(
        schema.trim(),
        laboratory.run_successfully(&["study", "schema"]).out.trim(),
        "run `cargo xtask docs`"
    );
    let schema = fs::read_to_string(project_root().join("docs/reference/compare.schema.json")).unwrap();
    let printed = laboratory.run_successfully(&["compare", "--schema"]).out;
    assert_eq!(schema.trim(), printed.trim(), "run `cargo xtask docs`");
    let schema = fs::read_to_string(project_root().join("docs/reference/why.schema.json")).unwrap();
    let printed = laboratory.run_successfully(&["why", "--schema"]).out;
    assert_eq!(schema.trim(), printed.trim(), "run `cargo xtask docs`");
    let schema = fs::read_to_string(project_root().join("docs/reference/price.schema.json")).unwrap();
    let printed = laboratory.run_successfully(&["price", "--schema"]).out;
    assert_eq!(schema.trim(), printed.trim(), "run `cargo xtask docs`");
    let facts = fs::read_to_string(project_root().join("docs/reference/facts.md")).unwrap();
    let kinds = laboratory.run_successfully(&["reference", "--facts", "--format", "markdown"]).out;
    assert_eq!(facts.trim_start_matches("# Facts").trim(), kinds.trim(), "run `cargo xtask docs`");
    let monitors = fs::read_to_string(project_root().join("docs/reference/monitors.md")).unwrap();
    let listed = laboratory.run_successfully(&["monitor", "list", "--format", "markdown"]).out;
    // The last column is of this machine.
    let rows = listed.lines().filter_map(|line| line.trim_end_matches(" |").rsplit_once(" | "));
    assert!(
        rows.skip(2).all(|(row, _)| monitors.contains(&format!("\n{row} |\n"))),
        "run `cargo xtask docs`"
    );
}

/// The monitors of MMTests, each with what replaces it, or why nothing does.
const MMTESTS_MONITORS: &str = "vmstat proc-vmstat mpstat turbostat top iostat iotop \
    perf-event-stat perf-time-stat numa-numastat numa-meminfo numa-convergence numa-scheduling ftrace \
    proc-buddyinfo proc-pagetypeinfo proc-interrupts proc-latency_stats proc-timer_list slabinfo proc-meminfo \
    proc-net-dev proc-zoneinfo proc-schedstat proc-sched_debug proc-stat proc-stack pidstat \
    pcpu-usage dstate kswapd-stack interactive-apps perf-event perf-top perf-sched \
    compaction extfrag highorder highorder-latency kcache kcache-slabs kcache-detailed \
    syscalls irqsoff function-frequency tlb blktrace bdi read-latency \
    write-latency sync-latency mmap-access-latency app-launch inbox-open cpuoffline cpuoffline-stress \
    df file-frag numad storage-cache-status";

#[test]
fn the_page_of_monitors_has_a_row_for_each_and_for_each_of_mmtests() {
    let read = |page: &str| fs::read_to_string(project_root().join(page)).unwrap();
    let (page, list) = (read("docs/monitors.md"), read("docs/reference/monitors.md"));
    for row in list.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let name = row.split(" | ").next().unwrap().trim_start_matches("| ");
        assert!(page.contains(&format!("| `{name}` |")), "{name} has no row in docs/monitors.md");
    }
    let of_mmtests: Vec<&str> = MMTESTS_MONITORS.split_whitespace().collect();
    assert_eq!(of_mmtests.len(), 60);
    for name in of_mmtests {
        assert!(page.contains(&format!("\n| {name} |")), "{name} has no row in docs/monitors.md");
    }
}

/// Every verb, and every verb below it, with its help.
#[test]
fn the_reference_has_the_help_of_every_verb() {
    let laboratory = Sandbox::new();
    let page = fs::read_to_string(project_root().join("docs/reference/commands.md")).unwrap();
    assert_eq!(laboratory.run_successfully(&["reference"]).out, page, "run `cargo xtask docs`");
}

/// Every word of a verdict is in the schema of comparisons, in both tables of words, and in that of exit codes.
#[test]
fn words_of_verdicts_are_those_of_the_code() {
    let read = |path: &str| fs::read_to_string(project_root().join(path)).unwrap();
    let schema: serde_json::Value =
        serde_json::from_str(&read("docs/reference/compare.schema.json")).unwrap();
    let in_schema: BTreeSet<&str> = schema["$defs"]["Verdict"]["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["const"].as_str().unwrap())
        .collect();
    let in_json: Vec<String> = Verdict::ALL
        .iter()
        .map(|verdict| serde_json::to_value(verdict).unwrap().as_str().unwrap().to_owned())
        .collect();
    assert_eq!(in_schema, in_json.iter().map(String::as_str).collect());
    let words: BTreeSet<&str> = Verdict::ALL.iter().map(|verdict| verdict.word()).collect();
    // A line of a table begins with the words that it explains.
    let explained = |page: &str| -> BTreeSet<String> {
        let cell = |line: &str| Some(line.strip_prefix("| ")?.split_once(" |")?.0.to_owned());
        let cells = page.lines().filter_map(cell);
        cells
            .flat_map(|cell| cell.split([',', ';']).map(|word| word.trim().to_owned()).collect::<Vec<_>>())
            .collect()
    };
    for page in ["docs/glossary.md", "docs/verdicts.md"] {
        let explained = explained(&read(page));
        let missing: Vec<&&str> = words.iter().filter(|word| !explained.contains(**word)).collect();
        assert!(missing.is_empty(), "{page}: {missing:?}");
    }
    let page = read("docs/runs.md");
    let codes = page.split("| word | exit code").nth(1).unwrap().split("\n\n").next().unwrap();
    assert_eq!(
        explained(codes).into_iter().filter(|word| !word.starts_with('-')).collect::<BTreeSet<_>>(),
        words.iter().map(|word| (*word).to_owned()).collect()
    );
}
