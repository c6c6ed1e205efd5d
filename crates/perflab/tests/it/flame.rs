//! Profiles: imported ones everywhere, recorded ones where perf events may be opened.

use std::fs;

use crate::laboratory::Laboratory;

const FOLDED: &str = "\
hackbench;main;write_[k];kmem_cache_alloc_node_noprof_[k] 30
hackbench;main;write_[k] 50
hackbench;main;read_[k];kfree.part.0_[k] 15
swapper 5
";

#[test]
fn folded_text_is_shown_with_every_sample_accounted_for() {
    let laboratory = Laboratory::new();
    fs::write(laboratory.path("a.folded"), FOLDED).unwrap();
    let said = laboratory.good(&["flame", "import", "a.folded", "--label", "a", "--format", "csv"]);
    assert!(said.out.contains("with a stack,95,0.95\n"), "{}", said.out);
    assert!(said.out.contains("without a stack,5,0.05\n"), "{}", said.out);
    assert!(said.out.trim_end().ends_with("all,100,1.0"), "{}", said.out);
    insta::assert_snapshot!(laboratory.good(&["flame", "show", "a"]).out);
    let file = laboratory.path("a.perflab").display().to_string();
    laboratory.good(&["export", "a", &file]);
    assert_eq!(
        laboratory.good(&["flame", "show", &file]).out,
        laboratory.good(&["flame", "show", "a"]).out,
        "a portable file carries stacks"
    );
}

#[test]
fn the_sound_part_of_a_bad_file_is_kept_and_its_share_said() {
    let laboratory = Laboratory::new();
    fs::write(laboratory.path("bad.folded"), format!("{FOLDED}rubbish\n")).unwrap();
    let said = laboratory.good(&["flame", "import", "bad.folded", "--format", "csv"]);
    assert!(said.err.contains("bad.folded:5: no count after the stack"), "{}", said.err);
    assert!(said.out.contains("unreadable,1,0.00990"), "{}", said.out);
    for (name, text, wanted) in [
        ("empty", "", "empty: it is empty: there is no profile in it"),
        (
            "rubbish",
            "what is this\n",
            "rubbish: there is no sample in it (taken for folded); 1: `this` is no count",
        ),
    ] {
        fs::write(laboratory.path(name), text).unwrap();
        let said = laboratory.run(&["flame", "import", name]);
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(said.err.contains(wanted), "{}", said.err);
    }
    assert_eq!(
        laboratory.good(&["list", "--format", "csv"]).out.lines().count(),
        2,
        "only the sound one is a run"
    );
}

#[test]
fn a_run_without_stacks_says_how_to_get_some() {
    let laboratory = Laboratory::new();
    laboratory.echo("a", 100);
    let said = laboratory.run(&["flame", "show", "a"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("has no call stacks: record some with `perflab flame record`"), "{}", said.err);
}
