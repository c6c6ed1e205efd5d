//! `--format`: every verb prints one document of JSON, whatever it has to say besides.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::documents::read_page;
use crate::laboratory::Sandbox;

/// Verbs that print no result of their own, or that another test runs where there is what they need.
const TESTED_ELSEWHERE: &[(&str, &str)] = &[
    ("bisect", "its own tests ask for its JSON"),
    ("vm boot", "prints what the command prints"),
    ("vm shell", "is a shell"),
    ("vm stop", "needs a guest"),
    ("host check", "needs hosts; their own tests have some"),
    ("kernel fetch", "needs the network"),
    ("patch", "needs a tree and guests; its own test has them"),
    ("kernel build", "its own tests build"),
    ("kernel diff", "tests of kernels compare two"),
    ("slab record", "needs root"),
    ("slab top", "needs root"),
    ("serve", "runs until it is ended"),
    ("label", "prints nothing"),
    ("rm", "prints nothing"),
    ("index", "tests of the index ask for its JSON"),
    ("flame record", "needs perf_event_open"),
    ("flame svg", "prints a picture"),
    ("flame export", "prints another tool's format"),
    ("trace plot", "draws into a file"),
    ("plot strip", "draws into a file"),
    ("plot ecdf", "draws into a file"),
    ("plot histogram", "draws into a file"),
    ("plot interval", "draws into a file"),
    ("plot scaling", "draws into a file"),
    ("plot timeline", "draws into a file"),
    ("plot heatmap", "draws into a file"),
    ("trace attach", "needs root; its --list is among the verbs"),
    ("io record", "needs root"),
    ("io show", "needs a recording"),
    ("io coverage", "needs a recording"),
    ("io export", "needs a recording"),
    ("prefetch learn", "needs root"),
    ("prefetch replay", "needs what was learnt"),
    ("prefetch relayout", "needs root"),
    ("prefetch forget", "needs what was learnt"),
    ("prefetch daemon", "needs root"),
    ("prefetch show", "needs what was learnt"),
    ("resume", "needs a run that was interrupted"),
    ("queue cancel", "prints nothing"),
    ("queue run", "prints nothing"),
    ("queue watch", "its own tests ask for its JSON"),
    ("completions", "prints a script"),
    ("man", "prints a page"),
];

/// What is typed for each of the others, in this order; those that change something have no second chance.
const VERBS: &[&str] = &[
    "run two.toml --label first",
    "run two.toml --label second --no-report",
    "run one.toml --label plain",
    "bench true false -i -r 2",
    "watch --quiet-time 0s -- true",
    "reproduce first",
    "compare first second",
    "compare first --by factor",
    "compare first --by factor --style mmtests",
    "compare first --by factor --style lkp",
    "compare first --by factor --style benchstat",
    "compare first second --monitor meminfo",
    "why first second",
    "why first --by factor",
    "why --schema",
    "price --list",
    "price --schema",
    "report first second",
    "history",
    "guard",
    "plan first",
    "noise one.toml --iterations 8",
    "noise --show",
    "list",
    "show first",
    "show first --iterations",
    "show first --facts",
    "show first --output 1",
    "show first --monitor meminfo",
    "diff first second",
    "query --views",
    "prune --keep 1",
    "export first first.perflab",
    "export --schema",
    "compare --schema",
    "--archive elsewhere import first.perflab",
    "import hyperfine.json",
    "study check two.toml",
    "study expand two.toml",
    "study schema",
    "study new three.toml",
    "study from config-mine -o four.toml",
    "study list",
    "study find hackbench",
    "workload list",
    "workload show noisy",
    "workload show fio",
    "workload install noisy",
    "workload try noisy",
    "monitor list",
    "monitor show vmstat",
    "monitor cost",
    "event list",
    "event show run-queue-delay",
    "import slabinfo.log --page-size 4KiB --label slab",
    "slab show slab",
    "slab timeline slab",
    "slab histogram slab",
    "slab compare slab slab",
    "slab what-if slab",
    "flame import a.folded --label flame",
    "flame show flame",
    "flame shares flame",
    "flame diff flame flame",
    "flame html flame",
    "trace run --label trace -- perflab load drv_rand_ops 2000 intsrt",
    "trace show trace",
    "trace causes trace",
    "trace compare trace trace",
    "trace attach --list --program PERFLAB",
    "io import cat.blkparse",
    "io where two.toml",
    "prefetch status",
    "startup --caches warm --iterations 2 -- true",
    "vm list",
    "host list",
    "setting list",
    "setting show thp",
    "kernel list",
    "kernel show debian-cloud",
    "tune",
    "check",
    "check --facts",
    "queue add one.toml --no-report",
    "queue list",
    "push --remote file://FOLDER/remote",
    "pull --remote file://FOLDER/remote",
    "sync --remote file://FOLDER/remote",
    "list --remote file://FOLDER/remote",
    "undo",
];

fn prepare_formats_sandbox() -> Sandbox {
    let laboratory = Sandbox::new();
    laboratory.write_workload("noisy", "", "echo speed 1$(date +%N | tail -c 4)");
    laboratory.write_study("one.toml", "run = { iterations = 2, warmup = 0 }\n[workload.noisy]");
    let factor =
        "[factor.factor]\nkind = \"environment\"\nkey = \"NOBODY_READS_IT\"\nlevels = [\"a\", \"b\"]\n";
    let placebo = factor.replace("factor.factor", "factor.placebo").replace("NOBODY", "NOT_EVEN_HE");
    let study = format!(
        "run = {{ iterations = 8, warmup = 0 }}\nmonitors = {{ meminfo = \"1ms\" }}\n[workload.noisy]\n{factor}{placebo}"
    );
    laboratory.write_study("two.toml", &study);
    fs::write(laboratory.path("slabinfo.log"), crate::slab::slabinfo_log(20, 0)).unwrap();
    fs::write(
        laboratory.path("hosts.toml"),
        "[host.a]\n[host.b]\nport = 2222\n[groups]\nlab = [\"a\", \"b\"]\n",
    )
    .unwrap();
    fs::write(laboratory.path("a.folded"), "main;work 3\nmain;rest 1\n").unwrap();
    let times = r#"{"results":[{"command":"true","mean":0.2,"times":[0.1,0.2,0.3],"exit_codes":[0,0,0]}]}"#;
    fs::write(laboratory.path("hyperfine.json"), times).unwrap();
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/recorded/blktrace/cat.blkparse");
    fs::copy(recorded, laboratory.path("cat.blkparse")).unwrap();
    let configuration = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/config-mine");
    fs::copy(configuration, laboratory.path("config-mine")).unwrap();
    laboratory
}

/// The verb of a line of [`VERBS`]: its first words that name one.
fn find_verb(line: &str, known: &BTreeSet<String>) -> Option<String> {
    let words: Vec<&str> =
        line.split(' ').skip_while(|word| word.starts_with("--") || *word == "elsewhere").collect();
    [2, 1].iter().filter_map(|count| Some(words.get(..*count)?.join(" "))).find(|verb| known.contains(verb))
}

/// Verbs without any below them, of the page that is made from clap's own list.
fn list_all_verbs() -> BTreeSet<String> {
    let page = read_page("docs/reference/commands.md");
    let all: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## perflab ")).collect();
    let is_leaf = |verb: &&&str| !all.iter().any(|other| other.starts_with(&format!("{verb} ")));
    all.iter().filter(is_leaf).map(|verb| (*verb).to_owned()).collect()
}

#[test]
fn every_verb_prints_one_document_of_json() {
    let (laboratory, all) = (prepare_formats_sandbox(), list_all_verbs());
    let mut seen: BTreeSet<String> = TESTED_ELSEWHERE.iter().map(|(verb, _)| (*verb).to_owned()).collect();
    for line in VERBS {
        seen.insert(find_verb(line, &all).unwrap_or_else(|| panic!("no verb in `{line}`")));
        let line = line.replace("PERFLAB", env!("CARGO_BIN_EXE_perflab"));
        let line = line.replace("FOLDER", laboratory.home.path().to_str().unwrap());
        let said =
            laboratory.run(&["--format", "json"].into_iter().chain(line.split(' ')).collect::<Vec<_>>());
        assert!(matches!(said.code, Some(0 | 7)), "{line}: {:?}\n{}", said.code, said.err);
        let document: Result<serde_json::Value, _> = serde_json::from_str(&said.out);
        assert!(document.is_ok(), "{line}: {document:?}\n{}\n{}", said.out, said.err);
    }
    let missing: Vec<&String> = all.symmetric_difference(&seen).collect();
    assert!(missing.is_empty(), "in one of the tables of this file, or no verb any more: {missing:?}");
}

#[test]
fn a_run_with_two_factors_is_one_table_of_csv() {
    let laboratory = prepare_formats_sandbox();
    let csv =
        laboratory.run_successfully(&["run", "two.toml", "--format", "csv", "--quiet", "--no-report"]).out;
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let at = |title: &str| rows[0].iter().position(|one| *one == title).unwrap();
    let (factor, baseline, candidate) = (at("factor"), at("baseline_name"), at("candidate_name"));
    let of = |row: &Vec<&str>| [row[factor], row[baseline], row[candidate]].map(str::to_owned);
    let found: Vec<[String; 3]> = rows[1..].iter().map(of).collect();
    let wanted = [["factor", "a", "b"], ["factor", "a", "b"], ["placebo", "a", "b"], ["placebo", "a", "b"]];
    assert_eq!(found, wanted.map(|row| row.map(String::from)));
    assert_eq!(rows[1][at("level")], "0.95");
}

#[test]
fn hidden_verbs_are_never_suggested_and_slips_are() {
    let laboratory = Sandbox::new();
    let tip = |arguments: &[&str]| {
        let said = laboratory.run(arguments);
        assert_eq!(said.code, Some(2));
        let suggested = said.err.split_once("did you mean `").map(|(_, rest)| rest.to_owned());
        suggested.and_then(|rest| Some(rest.split_once('`')?.0.to_owned()))
    };
    assert_eq!(tip(&["rnu"]).as_deref(), Some("run"));
    assert_eq!(tip(&["slab", "shwo"]).as_deref(), Some("show"));
    assert_eq!(tip(&["terminl"]), None);
    assert_eq!(tip(&["launhc"]), None);
    assert_eq!(tip(&["rmm"]), None, "a slip is not taken for what removes");
}

#[test]
fn a_noise_card_that_would_have_no_row_is_not_measured() {
    let laboratory = prepare_formats_sandbox();
    let runs = laboratory.run_json(&["list"]).as_array().unwrap().len();
    let said = laboratory.run(&["noise", "one.toml", "--iterations", "5", "--quiet"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{}", said.err);
    assert_eq!(laboratory.run_json(&["list"]).as_array().unwrap().len(), runs);
    assert_eq!(laboratory.run(&["noise", "--show"]).code, Some(2));
}

/// An id is shown as it is shown everywhere, and later.
#[test]
fn the_list_names_a_run_as_its_making_did() {
    let laboratory = prepare_formats_sandbox();
    let made = laboratory.run_successfully(&["run", "one.toml", "--no-report"]).err;
    let short = made.lines().find_map(|line| line.strip_prefix("run: ")?.split(' ').next()).unwrap();
    let list = laboratory.run_successfully(&["list"]).out;
    assert_eq!(list.lines().nth(1).unwrap().split(' ').next(), Some(short), "{list}");
    let list: serde_json::Value =
        serde_json::from_str(&laboratory.run_successfully(&["list", "--format", "json"]).out).unwrap();
    let (id, begun) = (list[0]["run"].as_str().unwrap(), list[0]["begun"].as_str().unwrap());
    assert!(id.starts_with(short) && id.len() == 26, "{id}");
    assert!(begun.parse::<jiff::Timestamp>().is_ok(), "{begun}");
}

/// Options of every verb and no verb: the page of `perflab` alone, in that form.
#[test]
fn what_perflab_alone_says_is_also_a_document() {
    let laboratory = Sandbox::new();
    let empty = laboratory.run_json(&[]);
    assert_eq!((&empty["runs"], empty["version"].as_str()), (&0.into(), Some(env!("CARGO_PKG_VERSION"))));
    assert_eq!(std::path::Path::new(empty["archive"].as_str().unwrap()), laboratory.path("archive"));
    assert_eq!(empty["next"][0]["command"], "perflab run quickstart");
    assert_eq!(laboratory.run(&["--format", "csv"]).code, Some(2));
    // A verb that lacks the one below it is no page.
    let said = laboratory.run(&["vm", "--format", "json"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{}", said.err);
}
