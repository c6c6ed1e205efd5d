//! Which cases, sides and studies `perflab compare` looks at, and in which order.

use crate::laboratory::Sandbox;

/// A run of two levels and two sizes, whose time follows from both.
fn run_levels(laboratory: &Sandbox, label: &str, title: &str) {
    laboratory.write_workload(
        "sized",
        "[parameter.size]\ntype = \"integer\"\ndefault = 1\nabout = \"a size\"\n\
         [parameter.pages]\ntype = \"text\"\ndefault = \"a\"\nabout = \"a kind\"",
        "case {{ pages }} in b) f=2 ;; c) f=3 ;; *) f=1 ;; esac; echo speed $(({{ size }} * 100 * f))",
    );
    let text = "run = { iterations = 8, warmup = 0 }\n[workload.sized]\nmatrix = { size = [1, 2] }\n\
                [factor.pages]\nkind = \"parameter\"\nlevels = [\"a\", \"b\", \"c\"]\n";
    let study = laboratory.write_study(title, text);
    laboratory.run_successfully(&["run", &study, "--label", label, "--quiet"]);
}

/// Case, candidate and metric of every row.
fn rows(laboratory: &Sandbox, words: &str) -> Vec<String> {
    let words: Vec<&str> = words.split(' ').collect();
    let json = laboratory.run_json(&words);
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = json["rows"].as_array().unwrap().iter();
    rows.map(|row| format!("{} {}", text(row, "subject"), text(row, "candidate_name"))).collect()
}

#[test]
fn cases_and_candidates_are_chosen_by_level_and_parameter() {
    let laboratory = Sandbox::new();
    run_levels(&laboratory, "first", "levels");
    let of = |words: &str| rows(&laboratory, &format!("compare first {words}"));
    let all = ["sized size=1 b", "sized size=1 c", "sized size=2 b", "sized size=2 c"];
    assert_eq!(of("--by pages"), all);
    assert_eq!(of("--by pages --where size=2"), all[2..]);
    assert_eq!(of("--by pages --versus c"), [all[1], all[3]]);
    assert_eq!(of("--where pages=b --versus pages=c --where size=1"), ["sized size=1 c"]);
    assert_eq!(of("--by pages --metric sp*d --sort change --where size=1"), [all[1], all[0]]);
    let said = laboratory.run(&["compare", "first", "--by", "pages", "--where", "size=3"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    let said = laboratory.run(&["compare", "first", "--versus", "size=3"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    let short = laboratory.run_successfully(&["compare", "first", "--format", "short"]);
    assert_eq!(short.out.lines().count(), all.len());
}

#[test]
fn runs_are_chosen_by_their_facts() {
    let laboratory = Sandbox::new();
    run_levels(&laboratory, "first", "levels");
    run_levels(&laboratory, "second", "levels");
    let facts = laboratory.run_json(&["show", "first", "--facts"]);
    assert!(facts.as_array().unwrap().iter().any(|row| row["fact"] == "kernel.release"), "{facts}");
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let here = format!("kernel.release={}", release.trim());
    let found = rows(&laboratory, &format!("compare first second --where {here}"));
    assert_eq!(found.len(), 6);
    let said = laboratory.run(&["compare", "first", "second", "--where", "kernel.release=0.99"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains(release.trim()), "{}", said.err);
}

#[test]
fn every_study_of_two_labels_has_a_section() {
    let laboratory = Sandbox::new();
    for (label, title) in [("old", "one"), ("old", "two"), ("new", "two"), ("new", "one"), ("old", "three")] {
        run_levels(&laboratory, label, title);
    }
    let words = ["compare", "old", "new", "--all-studies"];
    let json = laboratory.run_json(&words);
    let studies: Vec<&str> =
        json.as_array().unwrap().iter().map(|study| study["study"].as_str().unwrap()).collect();
    assert_eq!(studies, ["one", "two"]);
    assert_eq!(json[0]["comparison"]["rows"].as_array().unwrap().len(), 6);
    let mail = laboratory.run_successfully(&words).out;
    assert!(mail.lines().all(|line| line.chars().count() <= 80), "{mail}");
    let alone = laboratory.run(&["compare", "old", "--all-studies"]);
    assert_eq!(alone.code, Some(2), "{}", alone.err);
}
