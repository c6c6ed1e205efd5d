//! `perflab study`, and `perflab workload` from the outside.

use std::fs;
use std::path::Path;

use crate::laboratory::Sandbox;

#[test]
fn the_starter_is_good_and_never_overwritten() {
    let laboratory = Sandbox::new();
    laboratory.run_successfully(&["study", "new", "mine.toml"]);
    laboratory.run_successfully(&["study", "check", "mine.toml"]);
    assert_eq!(laboratory.run(&["study", "new", "mine.toml"]).code, Some(2));
}

/// A configuration of another suite is read, never run; its study checks, and the account has each line once.
#[test]
fn a_configuration_of_mmtests_becomes_a_study() {
    let laboratory = Sandbox::new();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/config-mine");
    fs::copy(recorded, laboratory.path("config-mine")).unwrap();
    let said = laboratory.run_json(&["study", "from", "config-mine"]);
    assert_eq!(said["file"], "mine.toml");
    let count = |name: &str| said["counts"][name].as_u64().unwrap();
    let fates = ["empty", "translated", "no_meaning", "not_understood"].map(count);
    assert_eq!(fates.iter().sum::<u64>(), count("lines"));
    assert_eq!(said["lines"].as_array().unwrap().len() as u64, count("lines"));
    let left_out =
        said["lines"].as_array().unwrap().iter().filter(|line| line["became"]["fate"] == "not-understood");
    let left_out: Vec<u64> = left_out.map(|line| line["line"].as_u64().unwrap()).collect();
    assert_eq!(left_out, [4, 33, 34], "ltp, and what only running it would do: {said}");
    for made in ["ran-this", "ran-that"] {
        assert!(!laboratory.path(made).exists(), "{made}: it was run");
    }
    let checked = laboratory.run_json(&["study", "check", "mine.toml"]);
    assert!(checked["cases"].as_u64().unwrap() >= 6, "{checked}");
    assert_eq!(laboratory.run(&["study", "from", "config-mine"]).code, Some(2), "it is never overwritten");
    let printed = laboratory.run_successfully(&["study", "from", "config-mine", "-o", "-"]);
    assert_eq!(printed.out, fs::read_to_string(laboratory.path("mine.toml")).unwrap());
    let table = laboratory.run_successfully(&["study", "from", "config-mine", "-o", "again.toml"]);
    insta::assert_snapshot!(table.out);
    fs::write(laboratory.path("config-other"), "export MMTESTS=ltp\n").unwrap();
    let refused = laboratory.run(&["study", "from", "config-other"]);
    assert_eq!((refused.code, laboratory.path("other.toml").exists()), (Some(2), false), "{}", refused.err);
}

/// A job file of lkp-tests likewise.
#[test]
fn a_job_file_of_lkp_tests_becomes_a_study() {
    let laboratory = Sandbox::new();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/job-mine.yaml");
    fs::copy(recorded, laboratory.path("job-mine.yaml")).unwrap();
    let said = laboratory.run_json(&["study", "from", "job-mine.yaml"]);
    assert_eq!(said["file"], "job-mine.toml");
    let count = |name: &str| said["counts"][name].as_u64().unwrap();
    let fates = ["empty", "translated", "no_meaning", "not_understood"].map(count);
    assert_eq!(fates.iter().sum::<u64>(), count("lines"));
    assert!(!laboratory.path("ran-this").exists(), "it was run");
    let checked = laboratory.run_json(&["study", "check", "job-mine.toml"]);
    assert!(checked["cases"].as_u64().unwrap() >= 5, "{checked}");
    let study = fs::read_to_string(laboratory.path("job-mine.toml")).unwrap();
    let table = laboratory.run_successfully(&["study", "from", "job-mine.yaml", "-o", "again.toml"]);
    insta::assert_snapshot!(format!("{study}\n{}", table.out));
    let refused = ["kselftests:\n", "hackbench: [\n"].map(|lines| {
        fs::write(laboratory.path("other.yaml"), format!("suite: x\ncategory: functional\n{lines}")).unwrap();
        laboratory.run(&["study", "from", "other.yaml"]).code
    });
    assert_eq!((refused, laboratory.path("other.toml").exists()), ([Some(2), Some(2)], false));
}

#[test]
fn every_shipped_study_checks() {
    let laboratory = Sandbox::new();
    let listed = laboratory.run_successfully(&["study", "list", "--format", "csv"]).out;
    let names: Vec<&str> = listed.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert!(names.len() >= 4);
    for name in names {
        laboratory.run_successfully(&["study", "check", name]);
    }
}

#[test]
fn expand_prints_every_case_in_its_order_with_every_setting() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 2, warmup = 1 }\n[workload.echo]\nmatrix = { speed = [1, \"cpus * 0 + 2\"] }\nenvironment = { COLOUR = \"red\" }\n[factor.arenas]\nkind = \"environment\"\nkey = \"ARENAS\"\nlevels = [1, 8]\n[factor.swap]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [\"{{ cpus * 0 + 10 }}\"]\n[factor.log]\nkind = \"commands\"\nlevels = [{ name = \"off\", apply = [\"log\", \"off\"], undo = [\"log\", \"on\"] }]\n[disk]\nkind = \"image\"\nsize = \"cpus * 0 + 1073741824\"\nmount = \"noatime\"",
    );
    let said = laboratory.run_successfully(&["study", "expand", &study, "--seed", "7"]);
    insta::assert_snapshot!(said.out);
    assert_eq!(said.out, laboratory.run_successfully(&["study", "expand", &study, "--seed", "7"]).out);
    assert_ne!(said.out, laboratory.run_successfully(&["study", "expand", &study, "--seed", "8"]).out);
}

#[test]
fn the_schema_is_json_schema() {
    let laboratory = Sandbox::new();
    let schema: serde_json::Value =
        serde_json::from_str(&laboratory.run_successfully(&["study", "schema"]).out).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn a_label_is_asked_for() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("s.toml", "run = { iterations = 1, warmup = 0 }\n[workload.echo]\n[factor.kernel]\nkind = \"label\"\nlevels = [\"old\", \"new\"]");
    let said = laboratory.run(&["run", &study]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!("a_label_is_asked_for_1", said.stable_err());
    laboratory.run_successfully(&["run", &study, "--set", "kernel=new"]);
}

#[test]
fn a_workload_can_be_tried_with_parameters() {
    let laboratory = Sandbox::new();
    assert!(laboratory.run_successfully(&["workload", "try", "echo", "speed=7"]).out.contains('7'));
    let said = laboratory.run(&["workload", "try", "echo", "sped=7"]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!("a_workload_can_be_tried_with_parameters_1", said.stable_err());
    let shown = laboratory.run_json(&["workload", "show", "hackbench"]);
    assert_eq!(shown["metrics"][0]["metric"], "time", "{shown}");
    assert!(laboratory.run_successfully(&["workload", "install", "fio"]).code == Some(0));
}

#[test]
fn help_teaches_and_fits() {
    let laboratory = Sandbox::new();
    for verb in [
        "run", "compare", "report", "list", "show", "diff", "label", "rm", "prune", "export", "import",
        "study", "workload", "monitor", "check", "undo",
    ] {
        let said = laboratory.run_successfully(&[verb, "--help"]);
        assert!(said.out.contains(&format!("perflab {verb} ")), "{verb}");
    }
    let help = laboratory.run_successfully(&["--help"]).out;
    assert!(help.lines().any(|line| line.trim_start().starts_with("perflab run quickstart")), "{help}");
}

#[test]
fn a_study_that_wants_a_precision_ends_after_the_complete_block_that_reaches_it() {
    let laboratory = Sandbox::new();
    laboratory.write_workload("noisy", "", "date +%N | awk '{ print \"speed \" 1000 + $1 % 7 }'");
    let text = |rule: &str| {
        format!(
            "run = {{ until = \"{rule}\", warmup = 1 }}\n[workload.noisy]\n[factor.x]\nkind = \"environment\"\nlevels = [\"a\", \"b\"]"
        )
    };
    let study = laboratory.write_study("precise.toml", &text("precision 1%, at most 60"));
    laboratory.run_successfully(&["run", &study, "--label", "precise", "--quiet"]);
    let said = laboratory.run_successfully(&["show", "precise"]);
    insta::assert_snapshot!(said.err_wording_of("precision"), @"warning: the requested precision was reached: N of at most N blocks were measured; intervals of a run that stops once they are narrow are slightly too narrow");
    let slots = laboratory
        .run_successfully(&["show", "precise", "--iterations", "--format", "csv"])
        .out
        .lines()
        .count()
        - 1;
    assert!((2 + 20..=2 + 24).contains(&slots) && slots.is_multiple_of(2), "{slots}");
    let study = laboratory.write_study("never.toml", &text("precision 0.0001%, at least 2, at most 6"));
    let said = laboratory.run_successfully(&["run", &study, "--label", "never", "--quiet"]);
    insta::assert_snapshot!(said.err_wording_of("precision"), @"warning: the precision of N % was not reached in N blocks: noisy x=a speed is known to ± N % (N more); raise `at most`, or measure on a quieter machine");
    let slots = laboratory
        .run_successfully(&["show", "never", "--iterations", "--format", "csv"])
        .out
        .lines()
        .count()
        - 1;
    assert_eq!(slots, 2 + 12);
    let study = laboratory.write_study("wrong.toml", &text("significant, at most 6"));
    let said = laboratory.run(&["study", "check", &study]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(
        "a_study_that_wants_a_precision_ends_after_the_complete_block_that_reaches_it_1",
        said.stable_err()
    );
}

#[test]
fn a_study_that_is_too_large_is_refused_before_anything_is_built() {
    let laboratory = Sandbox::new();
    let numbers = (1..=1000).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    let factor =
        |number: usize| format!("[factor.f{number}]\nkind = \"environment\"\nlevels = [{numbers}]\n");
    let factors = |count: usize| (0..count).map(factor).collect::<String>();
    let deep = vec!["1"; 50_000].join("+");
    for (name, text, key) in [
        ("iterations", "run = { iterations = 4000000000 }\n[workload.echo]".to_owned(), "run.iterations"),
        ("matrix", format!("[workload.echo]\n{}", factors(2)), "factor.f1.levels"),
        ("huge", format!("[workload.echo]\n{}", factors(4)), "factor.f3.levels"),
        ("deep", format!("[workload.echo]\nparameters = {{ speed = \"{deep}\" }}"), "parameters.speed"),
        (
            "wide",
            "values = { a = \"'%1000000000d'|format(1)\" }\n[workload.echo]\nenvironment = { A = \"{{ a }}\" }"
                .to_owned(),
            "values.a",
        ),
    ] {
        let study = laboratory.write_study(&format!("{name}.toml"), &text);
        for words in [&["study", "check", &study][..], &["study", "expand", &study], &["run", &study]] {
            let command = laboratory.command(words);
            // What is built all the same is refused by the kernel.
            let limited = std::process::Command::new("sh")
                .args(["-c", "ulimit -v 2000000; exec \"$@\"", "sh"])
                .arg(command.get_program())
                .args(command.get_args())
                .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
                .current_dir(laboratory.home.path())
                .output()
                .unwrap();
            let said = crate::laboratory::to_command_output(limited);
            assert_eq!(said.code, Some(2), "{name} {words:?}: {}", said.err);
            assert!(said.err.contains(key) && said.err.len() < 1000, "{name} {words:?}: {}", said.err);
        }
    }
    assert!(!laboratory.path("archive").exists());
}

#[test]
fn what_is_hardly_meant_is_said_with_its_place() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "values = { half = \"cpus * 2\", used = \"cpus\" }\nrun = { iterations = 1, warmup = 0 }\n\
         [workload.echo]\nparameters = { speed = \"used + 1\" }\n\
         [factor.arenas]\nkind = \"environment\"\nkey = \"ARENAS\"\nlevels = [8]",
    );
    let check = laboratory.run_successfully(&["study", "check", &study]).err;
    insta::assert_snapshot!(check.replace(&study, "s.toml"), @r#"
    warning: s.toml:9:1: `factor.arenas.levels`: has one level, so nothing is compared; add a second level, or set it for all in `environment` of the workload
    warning: s.toml:2:12: `values.half`: nobody uses this value; write `half` in an expression, or remove it
    s.toml is good: "s.toml", 1 case, 1 iteration with warm-ups
    "#);
    let run = laboratory.run_successfully(&["run", &study]).err;
    assert!(check.lines().filter(|line| line.starts_with("warning")).all(|line| run.contains(line)), "{run}");
}

/// A case is named after a parameter that changes nothing, unless somebody says so.
#[test]
fn a_parameter_that_no_command_uses_is_told() {
    let laboratory = Sandbox::new();
    let study = "[workload.a]\ncommand = \"true {{ n }}\"\nparameters = { block-size = \"4k\", deep = \"1\" }\n\
         matrix = { n = [1, 2], size = [1, 2] }\n";
    let study = laboratory.write_study("s.toml", study);
    let check = laboratory.run_successfully(&["study", "check", &study]).err;
    insta::assert_snapshot!(check.replace(&study, "s.toml"), @r#"
    warning: s.toml:4:16: `workload.a.parameters.block-size`: no command uses this parameter; rename it, and write `{{ block_size }}` in the command, or remove it
    warning: s.toml:4:35: `workload.a.parameters.deep`: no command uses this parameter; write `{{ deep }}` in the command, or remove it
    warning: s.toml:5:24: `workload.a.matrix.size`: no command uses this parameter, so its values make equal cases; write `{{ size }}` in the command, or remove it
    s.toml is good: "s.toml", 4 cases, 44 iterations with warm-ups
    "#);
}

/// What is wrong with a brief form is found by `study check`, at its place; what it leaves out is not missed.
#[test]
fn a_brief_form_is_checked_with_its_study() {
    let laboratory = Sandbox::new();
    let study = |more: &str| {
        let text = format!(
            "values = {{ some = \"cpus\" }}\nrun = {{ iterations = 10 }}\n[workload.a]\ncommand = \"true {{{{ n }}}}\"\n\
             matrix.n = [\"some\", 2]\n[brief]\nrun.iterations = 1\nrun.warmup = 0\nworkload.a.matrix.n = [1]\n{more}"
        );
        laboratory.write_study("s.toml", &text)
    };
    let good = study("");
    laboratory.run_successfully(&["study", "check", &good]);
    let run = laboratory.run_successfully(&["run", &good, "--brief", "--no-report"]).err;
    let archive = perflab_archive::Archive::open(&laboratory.path("archive")).unwrap();
    assert!(archive.find_runs("@latest").unwrap().remove(0).manifest().unwrap().brief);
    assert!(!run.contains("warning"), "{run}");
    let slip = study("run.boot = 1\n");
    let said = laboratory.run(&["study", "check", &slip]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.err.replace(&slip, "s.toml"), @"error: s.toml:11:5: `brief.run.boot`: the key `boot` is not known here; did you mean `boots`?");
    let refused = laboratory.run(&["study", "check", &study("workload.b.use = \"nothing\"\n")]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("s.toml:11:12: `brief.workload.b.use`: "), "{}", refused.err);
}

/// The shipped study is found by its name, the other by its place beside the one that names it.
#[test]
fn a_study_may_be_put_on_top_of_another() {
    let laboratory = Sandbox::new();
    fs::write(laboratory.path("base.toml"), "extends = \"quickstart\"\nrun.iterations = 2\n").unwrap();
    let text = "extends = \"base.toml\"\ntitle = \"on top\"\n[factor.pages]\nlevels = [\"ordinary\"]\n";
    fs::write(laboratory.path("top.toml"), text).unwrap();
    let top = laboratory.path("top.toml").display().to_string();
    let shipped = laboratory.run_json(&["study", "check", "quickstart"])["cases"].as_u64().unwrap();
    let checked = laboratory.run_json(&["study", "check", &top]);
    assert_eq!(
        (&checked["title"], &checked["cases"]),
        (&"on top".into(), &(shipped / 2).into()),
        "{checked}"
    );
    fs::write(laboratory.path("base.toml"), "extends = \"top.toml\"\n").unwrap();
    assert_eq!(laboratory.run(&["study", "check", &top]).code, Some(2), "a circle");
    fs::write(laboratory.path("base.toml"), "extends = \"quickstarts\"\n").unwrap();
    let said = laboratory.run(&["study", "check", &top]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stable_err(), @"error: `extends` in /tmp/.TMP/base.toml: there is neither a study file nor a shipped study `quickstarts`; did you mean `quickstart`?");
}

#[test]
fn what_the_machine_lacks_is_told_by_a_check() {
    let laboratory = Sandbox::new();
    laboratory.write_workload("absent", "[needs]\nprograms = [\"no-such-program\"]", "true");
    let text = "[workload.absent]\n[factor.place]\nkind = \"placement\"\nlevels = [\"any\", \"cpus=1023\"]\n";
    let study = laboratory.write_study("s.toml", text);
    let said = laboratory.run_successfully(&["study", "check", &study]);
    insta::assert_snapshot!(said.stable_err(), @r#"
warning: not on this machine: workload `absent`: no-such-program not installed; its definition says nothing about installing it
warning: not on this machine: factor `place`, level `cpus=1023`: CPU 1023 is not online, or this process may not use it; leave the level out, or name CPUs and nodes of this machine: cpus=0-3 memory=bind:0
/tmp/.TMP/s.toml is good, but cannot run on this machine: "s.toml", 2 cases, 22 iterations with warm-ups
"#);
    let checked = laboratory.run_json(&["study", "check", &study]);
    assert_eq!(checked["refusals"].as_array().unwrap().len(), 2, "{checked}");
}

#[test]
fn what_a_study_needs_is_installed_and_nothing_runs() {
    let laboratory = Sandbox::new();
    laboratory.run_successfully(&["run", "quickstart", "--install-only"]);
    assert!(laboratory.run_json(&["list"]).as_array().unwrap().is_empty());
    laboratory.write_workload("absent", "[needs]\nprograms = [\"no-such-program\"]", "true");
    let study = laboratory.write_study("s.toml", "[workload.absent]\n");
    assert_eq!(laboratory.run(&["run", &study, "--install-only"]).code, Some(3));
}

/// An answer that names what the study does not have, or what no machine has, is a mistake of the study.
#[test]
fn answers_are_held_against_the_study() {
    let laboratory = Sandbox::new();
    let study = |answer: &str| {
        let text = format!(
            "answers = [{{ name = \"config-x\", {answer} }}]\n[workload.a]\ncommand = \"true\"\n\
             [factor.f]\nkind = \"environment\"\nlevels = [1, 2]\n"
        );
        laboratory.write_study("s.toml", &text)
    };
    let check = |answer: &str| laboratory.run(&["study", "check", &study(answer)]).code;
    for good in ["only = \"a\"", "set = [\"f=2\"]", "vary = [\"environment:X=1,2\"]"] {
        assert_eq!(check(good), Some(0), "{good}");
    }
    for bad in [
        "only = \"b\"",
        "set = [\"f=3\"]",
        "set = [\"g=1\"]",
        "set = [\"f\"]",
        "vary = [\"setting:nonesuch=1,2\"]",
        "vary = [\"disk:nonesuch=1,2\"]",
        "vary = [\"nonesuch:x=1,2\"]",
        "vary = [\"f=environment:x=1,2\"]",
    ] {
        assert_eq!(check(bad), Some(2), "{bad}");
    }
}

/// A configuration of MMTests is answered by its name, with what its endings add; words are looked for, too.
#[test]
fn a_study_is_found_by_a_configuration_or_by_words() {
    let laboratory = Sandbox::new();
    let found = laboratory.run_json(&["study", "find", "configs/config-io-dbench4-async-xfs-ssd-raid1"]);
    let first = &found["studies"][0];
    assert_eq!(
        (&first["study"], &first["answers"]),
        (&"fs-dbench".into(), &"config-io-dbench4-async".into())
    );
    assert_eq!(
        first["command"],
        "perflab run fs-dbench --set fsync=false --set filesystem=xfs --vary disk:model=ssd-sata,nvme --set model=ssd-sata"
    );
    // The brief form has ext4 alone.
    assert!(first["brief"].is_null() && first["brief_lacks"].is_string(), "{first}");
    assert_eq!(first["differs"].as_array().unwrap().len(), 3, "length, emulated disk, no RAID: {found}");
    let table = laboratory.run_successfully(&["study", "find", "io-dbench4-async-tmpfs"]);
    insta::assert_snapshot!(table.out);
    let names = |words: &[&str]| -> Vec<String> {
        let found = laboratory.run_json(&[&["study", "find"], words].concat());
        let studies = found["studies"].as_array().unwrap().iter();
        studies.map(|one| one["study"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&["slab", "EXT4"]), ["slab-filesystems"], "all words, whatever their case");
    let found = names(&["hackbench"]);
    assert_eq!(found[0], "hackbench-profile", "what is called so comes first: {found:?}");
    assert!(found.iter().any(|name| name == "sched-messages"), "the workload: {found:?}");
    for unknown in ["config-scheduler-hackbnch", "config-functional-ltp-mm", "no-such-word"] {
        let said = laboratory.run(&["study", "find", unknown]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{unknown}");
    }
    let said = laboratory.run(&["study", "find", "config-functional-ltp-mm"]);
    insta::assert_snapshot!(said.stable_err());
}

/// The figures in docs/studies.md: `FOREIGN_STUDIES=/path/to/lkp-tests/jobs cargo test -p perflab --test it
/// all_foreign_files_are_read -- --ignored --nocapture`, or with the `configs` of MMTests.
#[test]
#[ignore = "takes a folder of another suite's files: FOREIGN_STUDIES"]
fn all_foreign_files_are_read() {
    let laboratory = Sandbox::new();
    let mut folders = vec![std::path::PathBuf::from(std::env::var_os("FOREIGN_STUDIES").unwrap())];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    let (mut studies, mut good, mut lacking) = (0, 0, 0);
    for (number, file) in files.iter().enumerate() {
        let study = format!("{number}.toml");
        let made =
            laboratory.run(&["study", "from", file.to_str().unwrap(), "-o", &study, "--format", "json"]);
        if made.code == Some(2) {
            continue;
        }
        assert_eq!(made.code, Some(0), "{}: {}", file.display(), made.err);
        let said: serde_json::Value = serde_json::from_str(&made.out).unwrap();
        let count = |name: &str| said["counts"][name].as_u64().unwrap();
        let fates = ["empty", "translated", "no_meaning", "not_understood"].map(count);
        let lines = fs::read_to_string(file).unwrap().lines().count() as u64;
        assert_eq!((fates.iter().sum::<u64>(), count("lines")), (lines, lines), "{}", file.display());
        studies += 1;
        let checked = laboratory.run(&["study", "check", &study, "--format", "json"]);
        if checked.code != Some(0) {
            eprintln!("{}: {}", file.display(), checked.err);
            continue;
        }
        let checked: serde_json::Value = serde_json::from_str(&checked.out).unwrap();
        match checked["refusals"].as_array().unwrap().is_empty() {
            true => good += 1,
            false => lacking += 1,
        }
    }
    eprintln!(
        "{} files, {studies} studies: {good} good here, {lacking} that this machine cannot run",
        files.len()
    );
}
