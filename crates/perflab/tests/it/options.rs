//! Every option of the verbs that show is honoured or refused: none is accepted and changes nothing.

use std::collections::BTreeSet;
use std::fs;

use crate::laboratory::Sandbox;

/// What an option makes of a verb.
#[derive(Clone, Copy, PartialEq)]
enum OptionEffect {
    /// what is printed, a file, or the exit code is another one, or it is refused
    Tells,
    /// exit code 2: with these words it would change nothing
    Refused,
}

use OptionEffect::{Refused, Tells};

/// A verb, what it is tried with, and options with what follows them. The words after `+` belong to the option's trial alone.
type OptionTrial = (&'static str, &'static str, &'static [(&'static str, OptionEffect)]);

/// Each option of each verb at least once; further rows are words that only together would change nothing.
const TRIALS: &[OptionTrial] = &[
    (
        "slab show",
        "log",
        &[
            ("--by name", Tells),
            ("--top 1", Tells),
            ("--wide", Tells),
            ("--method notebook --wide", Refused),
            ("--method notebook", Tells),
            ("--output o.svg", Tells),
        ],
    ),
    ("slab show", "log --format json", &[("--by name", Tells), ("--top 1", Tells)]),
    (
        "slab timeline",
        "log",
        &[
            ("--cache filp", Tells),
            ("--growth", Tells),
            ("--wide", Refused),
            ("--picture waste", Refused),
            ("--method notebook", Tells),
            ("--output o.svg", Tells),
        ],
    ),
    (
        "slab timeline",
        "log --growth",
        &[
            ("--cache filp", Tells),
            ("--wide", Tells),
            ("--method notebook", Refused),
            ("--picture waste --output o.svg", Refused),
        ],
    ),
    (
        "slab timeline",
        "log --output o.svg",
        &[("--picture waste", Tells), ("--picture efficiency", Tells), ("--cache filp", Tells)],
    ),
    (
        "slab histogram",
        "log",
        &[
            ("--bins 3", Tells),
            ("--of proc", Refused),
            ("--method notebook --of proc", Tells),
            ("--output o.svg", Tells),
        ],
    ),
    (
        "slab histogram",
        "log --method notebook --of proc",
        &[("--bins 3", Refused), ("--output o.svg", Tells)],
    ),
    (
        "slab compare",
        "log more",
        &[
            ("--by x", Refused),
            ("--fail-if unclear", Tells),
            ("--fail-if unclear --fail-on-differs", Tells),
            ("--all", Tells),
            ("--output o.svg", Tells),
        ],
    ),
    (
        "slab what-if",
        "log",
        &[
            ("--cache filp", Tells),
            ("--order 1", Tells),
            ("--top 1", Tells),
            ("--object-size 300B", Refused),
            ("--object-size 200B --cache filp", Tells),
            ("--top 1 --cache filp", Refused),
        ],
    ),
    (
        "io show",
        "io",
        &[
            ("--slot 9", Refused),
            ("--by time", Tells),
            ("--by disk", Tells),
            ("--by directory", Tells),
            ("--top 1", Tells),
        ],
    ),
    ("io show", "io --by time", &[("--top 2", Tells)]),
    ("io show", "io --by disk", &[("--top 2", Tells)]),
    (
        "io coverage",
        "io --trace dump",
        &[
            ("--slot 9", Refused),
            ("--method published", Tells),
            ("--blocks", Tells),
            ("--output o.svg", Tells),
            ("--drawn classes", Refused),
            ("--method published --blocks", Refused),
        ],
    ),
    (
        "io coverage",
        "io --trace dump --output o.svg",
        &[("--drawn classes", Tells), ("--trace nothing-there", Refused)],
    ),
    ("io export", "io --blkparse", &[("--slot 9", Refused)]),
    (
        "trace show",
        "old",
        &[("--slot 9", Refused), ("--operation x", Refused), ("--above 90%", Refused), ("--top 2", Tells)],
    ),
    ("trace causes", "old", &[("--slot 9", Refused), ("--operation x", Refused), ("--above 90%", Tells)]),
    (
        "trace plot",
        "new -o o.svg",
        &[
            ("--slot 9", Refused),
            ("--operation x", Refused),
            ("--above 90%", Tells),
            ("--axis linear", Tells),
            ("--with reap", Tells),
            ("--over x", Refused),
            ("--output o.png", Refused),
        ],
    ),
    (
        "trace compare",
        "new old",
        &[
            ("--by x", Refused),
            ("--slot 9", Refused),
            ("--operation x", Refused),
            ("--above 90%", Tells),
            ("--fail-if p99:50%", Tells),
        ],
    ),
    (
        "flame shares",
        "folded",
        &[
            ("--rules kernel", Tells),
            ("--by nothing", Refused),
            ("--baseline x", Refused),
            ("--versus x", Refused),
            ("--case 9", Refused),
            ("--comm sh", Tells),
        ],
    ),
    (
        "flame diff",
        "folded other",
        &[
            ("--by nothing", Refused),
            ("--baseline x", Refused),
            ("--versus x", Refused),
            ("--case 9", Refused),
            ("--self", Tells),
            ("--top 1", Tells),
            ("--output o.txt", Refused),
        ],
    ),
    ("flame show", "folded", &[("--case 9", Refused), ("--top 1", Tells)]),
    (
        "flame html",
        "folded -o o.html",
        &[("--case 9", Refused), ("--rules none", Tells), ("--output x", Refused)],
    ),
    (
        "flame svg",
        "folded",
        &[
            ("--case 9", Refused),
            ("--rules none", Tells),
            ("--icicle", Tells),
            ("--width 600", Tells),
            ("--output o.svg", Tells),
        ],
    ),
    ("flame export", "folded --to folded", &[("--case 9", Refused), ("--output o.txt", Tells)]),
    (
        "history",
        "--format json",
        &[
            ("--workload nothing", Tells),
            ("--label before", Tells),
            ("--study nothing", Tells),
            ("--last 1", Tells),
            ("--margin 50%", Tells),
            ("--report o.html", Tells),
            ("--output o.svg", Tells),
        ],
    ),
    ("report", "before after", &[("--output o.html", Tells)]),
    (
        "compare",
        "before after",
        &[
            ("--by nothing", Refused),
            ("--monitor duration", Refused),
            ("--baseline after", Tells),
            ("--style mmtests", Tells),
            ("--ratio", Tells),
            ("--stat cv", Tells),
            ("--significance", Refused),
            ("--fail-if worse", Tells),
            ("--fail-on-differs", Tells),
            ("--metric nothing", Tells),
            ("--workload nothing", Tells),
            ("--across", Tells),
            ("--where speed=50", Tells),
            ("--where nothing=1", Refused),
            ("--versus nothing", Refused),
            ("--versus speed=50", Refused),
            ("--sort name --style lkp", Refused),
            ("--all-studies", Tells),
            ("--all-studies --style lkp", Refused),
            ("--format short", Tells),
            ("--format short --ratio", Refused),
            ("--warmup auto", Tells),
            ("--monitor vmstat --warmup auto", Refused),
            ("--by a,b --warmup auto", Refused),
            ("--confidence 60%", Tells),
            ("--ratio --stat cv", Refused),
            ("--ratio --margin 90%", Refused),
            ("--by a,b --fail-if worse", Refused),
            ("--by a,b --ratio", Refused),
            ("--by a,b --baseline x", Refused),
        ],
    ),
    (
        "compare",
        "before after --style mmtests",
        &[("--significance", Tells), ("--significance --ratio", Refused), ("--margin 90%", Refused)],
    ),
    (
        "compare",
        "before after --style lkp",
        &[("--ratio", Refused), ("--stat cv", Refused), ("--margin 90%", Refused)],
    ),
    (
        "plot strip",
        "fast slow --output o.svg",
        &[
            ("--by nothing", Refused),
            ("--metric nothing", Refused),
            ("--workload nothing", Refused),
            ("--where nothing=1", Refused),
            ("--title T", Tells),
            ("--size 400x300", Tells),
            ("--size 40x30", Refused),
            ("--x-range 0:1000", Tells),
            ("--x-range 9:1", Refused),
            ("--log x", Tells),
            ("--log y", Refused),
            ("--confidence 60%", Tells),
        ],
    ),
    (
        "plot ecdf",
        "fast slow --output o.svg",
        &[
            ("--by nothing", Refused),
            ("--metric nothing", Refused),
            ("--workload nothing", Refused),
            ("--where nothing=1", Refused),
            ("--title T", Tells),
            ("--size 400x300", Tells),
            ("--x-range 0:1000", Tells),
            ("--y-range 0:50%", Tells),
            ("--y-range 0:50", Refused),
            ("--log x,y", Tells),
            ("--confidence 60%", Tells),
        ],
    ),
    (
        "plot histogram",
        "fast slow --output o.svg",
        &[
            ("--by nothing", Refused),
            ("--metric nothing", Refused),
            ("--workload nothing", Refused),
            ("--where nothing=1", Refused),
            ("--title T", Tells),
            ("--size 400x300", Tells),
            ("--x-range 0:1000", Tells),
            ("--y-range 0:50%", Tells),
            ("--log x,y", Tells),
            ("--bins scott", Tells),
        ],
    ),
    (
        "plot interval",
        "fast slow --output o.svg",
        &[
            ("--by nothing", Refused),
            ("--metric nothing", Refused),
            ("--workload nothing", Refused),
            ("--where nothing=1", Refused),
            ("--title T", Tells),
            ("--size 400x300", Tells),
            ("--x-range -10%:100%", Tells),
            ("--baseline slow", Tells),
            ("--confidence 60%", Tells),
            ("--margin 50%", Tells),
        ],
    ),
    (
        "plot scaling",
        "sized --over size --output o.svg",
        &[
            ("--by nothing", Refused),
            ("--metric nothing", Refused),
            ("--workload nothing", Refused),
            ("--where nothing=1", Refused),
            ("--title T", Tells),
            ("--size 400x300", Tells),
            ("--fit amdahl", Tells),
            ("--fit usl", Tells),
            ("--x-range 1:4", Tells),
            ("--y-range 0:1000", Tells),
            ("--log x,y", Tells),
            ("--confidence 60%", Tells),
        ],
    ),
    (
        "plot timeline",
        "sized --column meminfo.MemFree --output o.svg",
        &[
            ("--by nothing", Refused),
            ("--by size", Tells),
            ("--row nothing", Refused),
            ("--where size=1", Refused),
            ("--by size --where size=1", Tells),
            ("--title T", Tells),
            ("--size 400x300", Tells),
            ("--x-range 0s:1ms", Tells),
            ("--y-range 0:64GiB", Tells),
            ("--log y", Tells),
            ("--log x", Refused),
        ],
    ),
    (
        "plot heatmap",
        "sized --column stat.user --output o.svg",
        &[
            ("--row nothing", Refused),
            ("--row cpu0", Tells),
            ("--over size,kind", Refused),
            ("--metric speed", Refused),
            ("--workload sized", Refused),
            ("--where size=1", Refused),
            ("--title T", Tells),
            ("--size 400x300", Tells),
            ("--range 0:1000", Tells),
            ("--log", Tells),
        ],
    ),
    (
        "plot heatmap",
        "sized --over size,kind --output o.svg",
        &[
            ("--row cpu0", Refused),
            ("--metric nothing", Refused),
            ("--workload nothing", Refused),
            ("--where size=1", Tells),
            ("--range 0:5000", Tells),
        ],
    ),
    ("compare", "fast slow", &[("--margin 90%", Tells), ("--fail-on-differs", Tells)]),
    (
        "compare",
        "before after --style benchstat",
        &[
            ("--ratio", Refused),
            ("--stat cv", Refused),
            ("--margin 90%", Refused),
            ("--confidence 80%", Refused),
        ],
    ),
    (
        "why",
        "fast slow",
        &[
            ("--margin 90%", Tells),
            ("--by x", Refused),
            ("--metric nothing", Refused),
            ("--workload nothing", Refused),
            ("--where size=9", Refused),
            ("--versus nothing", Refused),
            ("--series nothing", Refused),
            ("--test 1min", Refused),
        ],
    ),
    (
        "price",
        "sized",
        &[
            ("--by x", Refused),
            ("--metric nothing", Refused),
            ("--workload nothing", Refused),
            ("--where kind=a", Tells),
            // A finished run is not measured.
            ("--dose syscall:kill=0us,1us", Refused),
            ("--iterations 7", Refused),
            ("--until decided", Refused),
            ("--label other", Refused),
            ("--seed 1", Refused),
            ("--study fast.toml", Refused),
            ("--apply", Refused),
            ("--list", Refused),
            ("--schema", Refused),
        ],
    ),
];

/// Options that are tried where what they need is there, or that are no option of the verb's showing.
const TRIED_ELSEWHERE: &[(&str, &str)] = &[
    ("io export", "--blkparse"),
    ("flame export", "--to"),
    ("flame html", "--by-command"),
    ("flame diff", "--by-command"),
    ("flame diff", "--rules"),
    ("compare", "--boots-differ"),
    // Names no run: `documents`.
    ("compare", "--schema"),
    // Its own tests have intervals with a width, and edited cases.
    ("why", "--confidence"),
    ("why", "--across"),
    ("why", "--schema"),
    ("price", "--confidence"),
    ("history", "--all"),
    // With one metric and one case, any order is the same.
    ("compare", "--sort"),
    ("io coverage", "--target"),
    ("io export", "--target"),
    ("io show", "--target"),
    ("trace causes", "--target"),
    ("trace compare", "--target"),
    ("trace plot", "--target"),
    ("trace show", "--target"),
    ("trace plot", "--like"),
    ("trace show", "--clock"),
    ("trace causes", "--clock"),
    ("trace plot", "--clock"),
    ("trace compare", "--clock"),
];

fn prepare_option_sandbox() -> Sandbox {
    let laboratory = Sandbox::new();
    laboratory.run_echo_edited("before", 100);
    laboratory.run_echo_edited("after", 50);
    laboratory.run_echo("fast", 100);
    laboratory.run_echo("slow", 50);
    laboratory.run_sized("sized");
    for (label, more) in [("log", 0), ("more", 50)] {
        fs::write(laboratory.path("slabinfo.log"), crate::slab::slabinfo_log(20, more)).unwrap();
        laboratory.run_successfully(&["import", "slabinfo.log", "--page-size", "4KiB", "--label", label]);
    }
    let (trace, map) =
        (crate::io::evidence_path("partition.blktrace.0"), crate::io::evidence_path("partition.map"));
    laboratory.run_successfully(&["io", "import", &trace, "--map", &map, "--label", "io"]);
    fs::copy(crate::io::evidence_path("prefetch-trace.txt"), laboratory.path("dump")).unwrap();
    let folded = "sh;main;insert;kmem_cache_alloc_noprof 5\nsh;main;find 7\ncat;main;__kmalloc_noprof 3\n";
    fs::write(laboratory.path("p.folded"), folded).unwrap();
    laboratory.run_successfully(&["flame", "import", "p.folded", "--label", "folded"]);
    fs::write(laboratory.path("o.folded"), folded.replace(" 7", " 90").replace(" 5", " 50")).unwrap();
    laboratory.run_successfully(&["flame", "import", "o.folded", "--label", "other"]);
    for (label, policy) in [("old", "old:86:0"), ("new", "never")] {
        let load = ["perflab", "load", "drv_rand_ops", "60000", "intsrt", "--reap", policy];
        laboratory.run_successfully(&[&["trace", "run", "--label", label, "--"], &load[..]].concat());
    }
    laboratory
}

/// What a verb prints, the files that it makes, and its exit code.
fn run_with_files(laboratory: &Sandbox, words: &[&str]) -> (Option<i32>, String, Vec<Vec<u8>>) {
    let said = laboratory.run(words);
    let files = ["o.svg", "o.png", "o.html", "o.txt"].map(|name| laboratory.path(name));
    let made = files.iter().filter_map(|file| fs::read(file).ok()).collect();
    files.iter().for_each(|file| drop(fs::remove_file(file)));
    (said.code, said.out, made)
}

/// A format is what is printed, or it is refused: none is accepted and changes nothing. (Markdown is refused where CSV is.)
fn find_ineffective_formats(laboratory: &Sandbox) -> Vec<String> {
    laboratory.write_study("fast.toml", "run = { iterations = 1 }\n[workload.echo]");
    fs::write(laboratory.path("config-new"), "export MMTESTS=stressng\n").unwrap();
    let mut verbs = BTreeSet::new();
    let trials = TRIALS.iter().filter(|(verb, ..)| verbs.insert(*verb));
    let trials = trials.map(|(verb, base, _)| format!("{verb} {}", base.replace("--format json", "")));
    let mut wrong = Vec::new();
    for words in trials.chain(MORE_VERBS.iter().map(|words| (*words).to_owned())) {
        let printed = |format: &str| {
            let mut words: Vec<&str> = words.split_whitespace().collect();
            let before = words.iter().position(|word| *word == "--").unwrap_or(words.len());
            words.splice(before..before, ["--format", format]);
            let printed = run_with_files(laboratory, &words);
            let _ = fs::remove_file(laboratory.path("new.toml"));
            printed
        };
        let (json, csv) = (printed("json"), printed("csv"));
        let is_document = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
        if json.0 != Some(2) && !is_document(&json.1) {
            wrong.push(format!("{words} --format json is none"));
        }
        if csv.0 != Some(2) && csv.1 == printed("table").1 {
            wrong.push(format!("{words} --format csv changes nothing"));
        }
    }
    wrong
}

#[test]
fn every_option_that_shows_is_honoured_or_refused() {
    let laboratory = prepare_option_sandbox();
    let words = |text: &'static str| text.split_whitespace();
    let mut wrong = Vec::new();
    for (verb, base, options) in TRIALS {
        let base: Vec<&str> = words(verb).chain(words(base)).collect();
        let without = run_with_files(&laboratory, &base);
        if without.0 != Some(0) {
            wrong.push(format!("{base:?} exits with {:?}", without.0));
        }
        for (option, effect) in *options {
            let with =
                run_with_files(&laboratory, &base.iter().copied().chain(words(option)).collect::<Vec<_>>());
            let is_so = match effect {
                Refused => with.0 == Some(2),
                Tells => with != without,
            };
            if !is_so {
                wrong.push(format!("{base:?} {option}: exit {:?}", with.0));
            }
        }
    }
    wrong.extend(find_ineffective_formats(&laboratory));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Which clock counts where none is said depends on how busy the machine is. Where two more run on the CPU for longer than
    // many of their turns, operations are preempted, and what the wall's clock says is not what the CPU's does.
    let perflab = env!("CARGO_BIN_EXE_perflab");
    let shared = format!(
        "taskset -p -c $(taskset -c -p $$ | grep -o '[0-9]*$') $$; while :; do :; done & a=$!; \
         while :; do :; done & {perflab} load drv_rand_ops 500000 intsrt --reap old:86:0; kill $a $!"
    );
    laboratory.run_successfully(&["trace", "run", "--label", "shared", "--", "sh", "-c", &shared]);
    for words in ["show shared", "causes shared", "plot shared -o o.svg", "compare new shared"] {
        let by = |clock: &str| {
            run_with_files(
                &laboratory,
                &format!("trace {words} --clock {clock}").split(' ').collect::<Vec<_>>(),
            )
        };
        let (wall, cpu) = (by("wall"), by("cpu"));
        assert!(wall != cpu, "trace {words} --clock: {wall:?}");
    }
    // Axes for both runs are wider than those of one of them, whichever it is.
    let plot = |words: &str| {
        run_with_files(&laboratory, &format!("trace plot {words} -o o.svg").split(' ').collect::<Vec<_>>())
    };
    assert!(plot("new") != plot("new --like old") || plot("old") != plot("old --like new"));
}

/// Verbs beside those of the trials, with words that they can be tried with.
const MORE_VERBS: &[&str] = &[
    "list",
    "show before",
    "show before --output 0",
    "show before --iterations",
    "diff before after",
    "plan before",
    "export before o.txt",
    "report before -o o.html",
    "report before after -o o.html",
    "prune --keep 1000",
    "study list",
    "study find hackbench",
    "study check fast.toml",
    "study expand fast.toml",
    "study new new.toml",
    "study from config-new",
    "workload list",
    "workload show memory-sweep",
    "workload install memory-sweep",
    "monitor list",
    "monitor show vmstat",
    "monitor cost",
    "event list",
    "event show run-queue-delay",
    "setting list",
    "setting show governor",
    "kernel list",
    "kernel show debian-cloud",
    "tune",
    "vm list",
    "vm stop none",
    "prefetch show",
    "prefetch status --socket none",
    "prefetch replay -- true",
    "check",
    "undo",
];

/// An option that is added to one of these verbs needs a trial above.
#[test]
fn every_option_has_a_trial() {
    let laboratory = Sandbox::new();
    let verbs: BTreeSet<&str> = TRIALS.iter().map(|(verb, ..)| *verb).collect();
    for verb in verbs {
        let words: Vec<&str> = verb.split_whitespace().chain(["--help"]).collect();
        let help = laboratory.run_successfully(&words).out;
        let own = help.split("Everywhere:").next().unwrap_or_default();
        let option = |line: &str| {
            let line = line.trim_start();
            let long = line.strip_prefix('-').and_then(|rest| rest.find("--").map(|at| &rest[at..]));
            let long = if line.starts_with("--") { Some(line) } else { long };
            Some(long?.split([' ', '=', ',']).next().unwrap_or_default().to_owned())
        };
        let options: BTreeSet<String> = own
            .lines()
            .filter(|line| line.len() - line.trim_start().len() <= 6 && line.trim_start().starts_with('-'))
            .filter_map(option)
            .collect();
        let tried: BTreeSet<&str> = TRIALS
            .iter()
            .filter(|(of, ..)| *of == verb)
            .flat_map(|(_, base, options)| options.iter().map(|(option, _)| *option).chain([*base]))
            .flat_map(str::split_whitespace)
            .chain(TRIED_ELSEWHERE.iter().filter(|(of, _)| *of == verb).map(|(_, option)| *option))
            .chain(["--help"])
            .collect();
        let missing: Vec<&String> =
            options.iter().filter(|option| !tried.contains(option.as_str())).collect();
        assert!(missing.is_empty() && options.len() > 1, "{verb}: {missing:?} of {options:?}");
    }
}
