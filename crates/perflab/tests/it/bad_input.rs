//! Bad input: always a clear error that names the file, line or key and what to do.

use std::fs;

use crate::laboratory::{CommandOutput, Sandbox, is_root, to_command_output};

const GOOD: &str = "run = { iterations = 2, warmup = 0 }\n[workload.echo]\n[factor.speed]\nkind = \"parameter\"\nlevels = [100, 200]";

/// What is said of the good study with one thing replaced.
fn error_of_changed_study(from: &str, to: &str) -> String {
    let laboratory = Sandbox::new();
    let text = GOOD.replace(from, to);
    assert_ne!(text, GOOD);
    let study = laboratory.write_study("s.toml", &text);
    let said = laboratory.run(&["study", "check", &study]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    let again = laboratory.run(&["run", &study]);
    assert_eq!((again.code, &again.err), (Some(2), &said.err), "run and check say the same");
    assert!(!laboratory.path("archive").exists(), "no run was begun");
    said.err.replace(&study, "s.toml")
}

#[test]
fn studies_complain_in_their_place() {
    let complaints = [
        ("wrong type", "iterations = 2", "iterations = \"two\""),
        ("unknown key", "iterations", "iteratons"),
        ("unknown workload", "[workload.echo]", "[workload.eco]"),
        ("level twice", "[100, 200]", "[100, 100]"),
        ("expression that fails", "[100, 200]", "[100, \"cpu / 2\"]"),
        ("a cycle", "run = {", "values = { a = \"b * 2\", b = \"a * 2\" }\nrun = {"),
        ("a level of the wrong type", "[100, 200]", "[100, true]"),
        ("not TOML", "[workload.echo]", "[workload.echo"),
    ];
    let said: Vec<String> = complaints
        .iter()
        .map(|(what, from, to)| format!("{what}: {}", error_of_changed_study(from, to)))
        .collect();
    insta::assert_snapshot!(said.concat());
}

/// What was said, and the outcome of each iteration.
fn run_bad_workload(script: &str, tables: &str, rules: &str) -> (CommandOutput, Vec<String>) {
    let laboratory = Sandbox::new();
    laboratory.write_workload("bad", tables, script);
    let study = laboratory.write_study(
        "s.toml",
        &format!("run = {{ iterations = 2, warmup = 0{rules} }}\n[workload.bad]\n[workload.echo]"),
    );
    let said = laboratory.run(&["run", &study]);
    let outcomes = match said.code {
        Some(4) => laboratory.run_json(&["show", "--iterations"]),
        _ => serde_json::Value::Array(Vec::new()),
    };
    let outcome = |row: &serde_json::Value| row["outcome"].as_str().unwrap().to_owned();
    (said, outcomes.as_array().unwrap().iter().map(outcome).collect())
}

#[test]
fn a_workload_that_is_not_installed_is_refused_with_the_remedy() {
    let (said, _) = run_bad_workload(
        "true",
        "[needs]\nprograms = [\"no-such-program\"]\n[install]\napt = [\"no-such-package\"]",
        "",
    );
    assert_eq!(said.code, Some(3));
    insta::assert_snapshot!(said.stable_err(), @"error: workload `bad`: no-such-program not installed; run `perflab workload install bad`, or `apt-get install --yes --no-install-recommends no-such-package`");
}

#[test]
fn a_workload_that_fails_costs_only_itself() {
    let (said, mut outcomes) = run_bad_workload("echo it broke >&2; exit 9", "", "");
    assert_eq!(said.code, Some(4));
    // With its own words.
    insta::assert_snapshot!(said.err_wording_of("it broke"), @"
    warning: bad (slot N): exited with code N: it broke
    warning: bad (slot N): exited with code N: it broke
    ");
    outcomes.sort_unstable();
    insta::assert_snapshot!(outcomes.join("\n"), @"
    failed: exited with code 9: it broke
    failed: exited with code 9: it broke
    ok
    ok
    ");
}

#[test]
fn a_workload_that_prints_rubbish_is_named_with_its_metric() {
    let (said, mut outcomes) = run_bad_workload("echo lorem ipsum", "", "");
    assert_eq!(said.code, Some(4));
    outcomes.sort_unstable();
    insta::assert_snapshot!(outcomes.join("\n"), @"
    failed: metric `speed`: regex `speed (?<value>[0-9.]+)` found nothing in stdout (it begins `lorem ipsum`)
    failed: metric `speed`: regex `speed (?<value>[0-9.]+)` found nothing in stdout (it begins `lorem ipsum`)
    ok
    ok
    ");
}

#[test]
fn a_workload_that_never_ends_is_stopped() {
    let (said, mut outcomes) = run_bad_workload("sleep 1234", "", ", time-limit = \"200ms\"");
    assert_eq!(said.code, Some(4));
    insta::assert_snapshot!(said.err_wording_of("200 ms"), @"
    warning: bad (slot N): stopped at its time limit of N ms
    warning: bad (slot N): stopped at its time limit of N ms
    ");
    outcomes.sort_unstable();
    insta::assert_snapshot!(outcomes.join("\n"), @"
    ok
    ok
    stopped at its time limit of 200 ms
    stopped at its time limit of 200 ms
    ");
}

#[test]
fn a_workload_that_needs_root_says_so() {
    let laboratory = Sandbox::new();
    laboratory.write_workload("rooted", "[needs]\nroot = true", "echo speed 1");
    let study = laboratory.write_study("s.toml", "[workload.rooted]");
    let mut command = laboratory.command(&["run", &study]);
    if is_root() {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(laboratory.home.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let plain = command;
        command = std::process::Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(plain.get_program())
            .args(plain.get_args());
        command
            .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .current_dir(laboratory.home.path());
    }
    let refused = to_command_output(command.output().unwrap());
    assert_eq!(refused.code, Some(3), "{}", refused.err);
    insta::assert_snapshot!(refused.err_wording_of("rooted"), @"error: workload `rooted` needs root; run perflab as root (sudo)");
}

#[test]
fn an_archive_of_a_newer_perflab_is_refused_and_listed() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("a", 100);
    let path = laboratory.only_run().join("run.json");
    let text = fs::read_to_string(&path).unwrap();
    let newer = text.replacen("\"format\":2", "\"format\":99", 1);
    assert_ne!(text, newer);
    fs::write(&path, newer).unwrap();
    let shown = laboratory.run(&["show"]);
    assert_ne!(shown.code, Some(0));
    insta::assert_snapshot!("an_archive_of_a_newer_perflab_is_refused_and_listed_1", shown.stable_err());
    assert_eq!(laboratory.latest_status(), "damaged");
    // Each run has one line in the list, and this is all that is known of it.
    let listed = laboratory.run_json(&["list"]);
    assert_eq!(shown.err.trim_end().strip_prefix("error: "), listed[0]["study"].as_str());
}

#[test]
fn runs_without_a_common_metric_name_what_each_has() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("a", 100);
    let study = laboratory
        .write_study("other.toml", "run = { iterations = 2, warmup = 0 }\n[workload.context-switches]");
    laboratory.run_successfully(&["run", &study, "--label", "b"]);
    let refused = laboratory.run(&["compare", "a", "b"]);
    assert_eq!(refused.code, Some(2));
    insta::assert_snapshot!(refused.stable_err(), @"error: `a` and `b` have no metric in common: `a` has speed [ops/s]; `b` has switches [switches/s], round-trip [us]");
}

#[test]
fn selectors_that_name_nothing_or_too_much_say_what_there_is() {
    let laboratory = Sandbox::new();
    let empty = laboratory.run(&["show"]);
    assert_eq!(empty.code, Some(2), "{}", empty.err);
    laboratory.run_echo("a", 100);
    let missing = laboratory.run(&["show", "nothing"]);
    assert_eq!(missing.code, Some(2));
    insta::assert_snapshot!(missing.err_wording_of("error: "), @"error: no run matches `nothing` in /tmp/.TMP/archive: give an id's first four characters or more, a label, @latest or a path; `perflab list` shows what is there");
    laboratory.run_echo("a", 100);
    let several = laboratory.run(&["diff", "a", "@latest"]);
    assert_eq!(several.code, Some(2));
    insta::assert_snapshot!(
        "selectors_that_name_nothing_or_too_much_say_what_there_is_1",
        several.stable_err()
    );
}

#[test]
fn a_study_file_that_is_not_there_suggests_the_shipped_ones() {
    let laboratory = Sandbox::new();
    let missing = laboratory.run(&["run", "quikstart"]);
    assert_eq!(missing.code, Some(2));
    insta::assert_snapshot!(
        "a_study_file_that_is_not_there_suggests_the_shipped_ones_1",
        missing.stable_err()
    );
}

#[test]
fn a_hint_says_what_to_write_and_names_what_was_written() {
    let laboratory = Sandbox::new();
    let errors = [
        &["plan", "before", "--precision", "0"][..],
        &["plan", "before", "--detect", "0%"],
        &["plan", "before", "--decide", "0.07"],
        &["compare", "a", "b", "--margin", "0"],
        &["flame", "record", "-F", "100000", "--", "true"],
        &["flame", "record", "--", "./nosuch"],
    ]
    .map(|words| {
        let said = laboratory.run(words);
        assert_eq!(said.code, Some(2), "{words:?}: {}", said.err);
        said.stable_err().lines().next().unwrap().to_owned()
    });
    insta::assert_snapshot!(errors.join("\n"), @"
    error: invalid value '0' for '--precision <PERCENT>': `0` is not above 0% and below 100%
    error: invalid value '0%' for '--detect <PERCENT>': `0%` is not above 0% and below 100%
    error: invalid value '0.07' for '--decide <PERCENT>': `0.07` has no unit: write `0.07%` or `7%`
    error: invalid value '0' for '--margin <PERCENT>': `0` has no unit: write `0%`
    error: invalid value '100000' for '--frequency <HZ>': 100000 is not in 1..=50000
    error: there is no program `./nosuch`, neither here nor in PATH: give its full path, or install it
    ");
}

/// One grammar, whatever the verb: a bare number is refused where its unit would be a guess, and shown with it.
#[test]
fn every_option_with_a_unit_refuses_a_bare_number() {
    let laboratory = Sandbox::new();
    let cases: &[(&[&str], &str)] = &[
        (&["compare", "a", "b", "--confidence", "0.95"], "95%"),
        (&["compare", "a", "b", "--margin", "3"], "3%"),
        (&["compare", "a", "b", "--fail-if", "worse:3"], "3%"),
        (&["slab", "compare", "a", "b", "--fail-if", "worse:3"], "3%"),
        (&["trace", "compare", "a", "b", "--fail-if", "p99:5"], "5%"),
        (&["trace", "causes", "a", "--above", "0.999"], "99.9%"),
        (&["trace", "attach", "--max-slowdown", "50", "--", "true"], "50%"),
        (&["history", "--margin", "3"], "3%"),
        (&["guard", "--margin", "0.03"], "3%"),
        (&["plan", "--detect", "2"], "2%"),
        (&["plan", "--boot-cost", "60"], "60s"),
        (&["slab", "record", "--every", "100"], "100ms"),
        (&["slab", "record", "--quiet-time", "1", "--", "true"], "1s"),
        (&["slab", "top", "--every", "1"], "1s"),
        (&["slab", "what-if", "--cache", "x", "--object-size", "192"], "192B"),
        (&["flame", "record", "--for", "5"], "5s"),
        (&["io", "record", "--for", "5"], "5s"),
        (&["io", "import", "x", "--map", "y", "--block-size", "4096"], "4096B"),
        (&["startup", "--limit", "9", "--", "true"], "9s"),
        (&["prefetch", "learn", "--for", "9", "--", "true"], "9s"),
        (&["prefetch", "replay", "--memory", "512", "--", "true"], "512MiB"),
        (&["prefetch", "daemon", "--bound", "2"], "2s"),
        (&["vm", "boot", "--memory", "512"], "512MiB"),
        (&["vm", "boot", "--boot-within", "60"], "60s"),
        (&["prune", "--older-than", "30"], "30s"),
    ];
    for (words, hint) in cases {
        let refused = laboratory.run(words);
        let option = words.iter().rfind(|word| word.starts_with("--") && **word != "--").unwrap();
        assert_eq!(refused.code, Some(2), "{words:?}: {}", refused.err);
        assert!(refused.err.contains(&format!("`{hint}`")), "{words:?}: {}", refused.err);
        assert!(refused.err.contains(option), "{words:?}: {}", refused.err);
    }
}

/// The latest run stands for one that is not named.
#[test]
fn a_run_that_is_left_out_is_the_latest() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("first", 100);
    laboratory.run_echo("second", 100);
    let [left_out, named] = [&["plan"][..], &["plan", "@latest"]].map(|words| laboratory.run(words));
    assert_eq!((left_out.code, &left_out.out), (named.code, &named.out));
    let [left_out, named] = [&["compare", "--by", "x"][..], &["compare", "@latest", "--by", "x"]]
        .map(|words| laboratory.run(words));
    assert_eq!((left_out.code, &left_out.err), (named.code, &named.err));
    assert_eq!(
        laboratory.run_successfully(&["diff"]).out,
        laboratory.run_successfully(&["diff", "@latest~1", "@latest"]).out
    );
    assert_eq!(laboratory.run(&["diff", "first"]).code, Some(2));
}

#[test]
fn a_label_begins_no_line_of_its_own() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("one", 100);
    // As earlier versions took it.
    let manifest = laboratory.only_run().join("run.json");
    let text = fs::read_to_string(&manifest).unwrap();
    assert!(text.contains("\"label\":\"one\"") || text.contains("\"label\": \"one\""), "{text}");
    fs::write(&manifest, text.replace("\"one\"", "\"one\\ntwo\"")).unwrap();
    let shown = laboratory.run_successfully(&["show"]).stable_err();
    insta::assert_snapshot!(shown.lines().next().unwrap(), @r#"RUN (one\ntwo): echo.toml"#);
}
