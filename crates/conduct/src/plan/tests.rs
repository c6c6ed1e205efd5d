use perflab_model::study::TomlSource;
use perflab_model::{Facts, Scalar};
use perflab_workload::Catalogue;

use super::*;

fn two_cpu_facts() -> Facts {
    let mut facts = Facts::default();
    facts.add("cpu.online", 4_i64, "test");
    facts.add("memory.total", 8_i64 << 30, "test");
    facts
}

fn plan_text(text: &str, choices: &PlanChoices) -> Result<RunPlan, String> {
    let source = TomlSource::new("s.toml", text);
    let study = source.parse_study().map_err(|problems| problems.to_string())?;
    plan_study(&study, &Catalogue::embedded().unwrap(), &two_cpu_facts(), choices)
        .map_err(|found| source.place_problems(found).to_string())
}

const STUDY: &str = r#"title = "t"
[workload.memory-bandwidth]
matrix = { threads = [1, 2, "cpus / 2"] }
[workload.context-switches]
[factor.pages]
kind = "parameter"
levels = ["ordinary", "huge"]
[factor.kernel]
kind = "label"
levels = ["old", "new"]
"#;

fn choose_new_kernel() -> PlanChoices {
    PlanChoices { set: vec![("kernel".into(), "new".into())], only: None, seed: 1 }
}

#[test]
fn cases_are_points_times_the_levels_that_concern_them() {
    let plan = plan_text(STUDY, &choose_new_kernel()).unwrap();
    let labels: Vec<String> = plan.cases.iter().map(perflab_model::Case::label).collect();
    assert_eq!(
        labels,
        [
            "memory-bandwidth threads=1 pages=ordinary kernel=new",
            "memory-bandwidth threads=1 pages=huge kernel=new",
            "memory-bandwidth threads=2 pages=ordinary kernel=new",
            "memory-bandwidth threads=2 pages=huge kernel=new",
            "context-switches kernel=new",
        ],
        "`cpus / 2` is 2 here, so that point is taken once; pages do not concern context switches"
    );
    assert_eq!(plan.cases[3].parameters["threads"], Scalar::Int(2));
    assert_eq!(plan.factors["pages"], ["ordinary", "huge"]);
    assert_eq!(plan.slots.len(), 5 * 11);
}

#[test]
fn a_label_must_be_said() {
    let said = plan_text(STUDY, &PlanChoices::default()).unwrap_err();
    assert!(said.contains("s.toml:8:") && said.contains("--set kernel=old|new"), "{said}");
}

#[test]
fn set_and_only_narrow_the_study() {
    let mut choices = choose_new_kernel();
    choices.set.push(("pages".into(), "huge".into()));
    choices.only = Some("memory-bandwidth".into());
    let plan = plan_text(STUDY, &choices).unwrap();
    assert_eq!(plan.cases.len(), 2);
    choices.set.push(("pages".into(), "ordinary".into()));
    let plan = plan_text(STUDY, &choices).unwrap();
    assert_eq!(
        (plan.cases.len(), plan.factors["pages"].clone()),
        (4, vec!["ordinary".into(), "huge".into()])
    );
    choices.only = Some("memory-bandwith".into());
    assert!(plan_text(STUDY, &choices).unwrap_err().contains("did you mean `memory-bandwidth`?"));
    choices.set = vec![("pages".into(), "huge".into()), ("pages".into(), "hug".into())];
    assert!(
        plan_text(STUDY, &choices).unwrap_err().contains("there is no level `hug`; did you mean `huge`?")
    );
}

fn planning_error(from: &str, to: &str) -> String {
    let text = STUDY.replace(from, to);
    assert_ne!(text, STUDY, "the replacement must change something");
    plan_text(&text, &choose_new_kernel()).unwrap_err()
}

#[test]
fn unknown_names_get_their_place_and_the_nearest_name() {
    let said = planning_error("[workload.context-switches]", "[workload.contextswitches]");
    assert!(said.starts_with("s.toml:4:") && said.contains("did you mean `context-switches`?"), "{said}");
    let said = planning_error("threads = [1", "treads = [1");
    assert!(
        said.starts_with("s.toml:3:") && said.contains("`treads`") && said.contains("`threads`"),
        "{said}"
    );
    let said = planning_error("\"ordinary\", \"huge\"", "\"ordinary\", \"giant\"");
    assert!(said.starts_with("s.toml:7:") && said.contains("huge"), "{said}");
}

#[test]
fn values_outside_their_range_point_at_the_list_item() {
    let said = planning_error("[1, 2, \"cpus / 2\"]", "[1, 0]");
    assert!(said.contains("workload.memory-bandwidth.matrix.threads[1]"), "{said}");
}

#[test]
fn a_failing_expression_and_a_cycle_are_named() {
    let said = planning_error("cpus / 2", "cpus / 0");
    assert!(said.contains("cpus / 0"), "{said}");
    let said = planning_error("title = \"t\"", "title = \"t\"\nvalues = { a = \"b\", b = \"a\" }");
    assert!(said.starts_with("s.toml:2:") && said.contains("a -> b -> a"), "{said}");
}

#[test]
fn monitors_metrics_and_facts_must_exist() {
    let said = planning_error(
        "title = \"t\"",
        "title = \"t\"\nfacts = [\"cpus\"]\nmonitors = { vmstats = \"1s\", meminfo = \"1us\" }\nmetric = { triat = {} }",
    );
    for part in [
        "no monitor `vmstats`; did you mean `vmstat`?",
        "read too often",
        "`triat`; did you mean `triad`?",
        "family of facts `cpus`",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn naming_a_metric_makes_it_primary_and_the_others_explain() {
    let text = format!("{STUDY}[metric.copy]\nmargin = \"1%\"\n");
    let plan = plan_text(&text, &choose_new_kernel()).unwrap();
    let primary: Vec<&str> = plan.metrics["memory-bandwidth"]
        .iter()
        .filter(|metric| metric.primary)
        .map(|metric| metric.name.as_str())
        .collect();
    assert_eq!(primary, ["copy"]);
    assert_eq!(plan.margins["copy"], 0.01);
}

#[test]
fn a_plan_that_is_too_large_is_refused_by_count() {
    let refused = |rest: &str| {
        let choices = PlanChoices { seed: 1, ..PlanChoices::default() };
        plan_text(&format!("title = \"t\"\n{rest}"), &choices).unwrap_err()
    };
    let numbers = (1..=1000).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    let matrix = |parameters: &[&str]| {
        let lists: Vec<String> = parameters.iter().map(|name| format!("{name} = [{numbers}]")).collect();
        format!("[workload.w]\nuse = \"drv_rand_ops\"\nmatrix = {{ {} }}", lists.join(", "))
    };
    let factors: String = (0..13)
        .map(|number| format!("\n[factor.f{number}]\nkind = \"environment\"\nlevels = [{numbers}]"))
        .collect();
    insta::assert_snapshot!(
        [
            refused("run = { iterations = 4000000000 }\n[workload.context-switches]"),
            refused("run = { until = \"precision 1%, at most 4000000000\" }\n[workload.context-switches]"),
            refused(&format!("run = {{ iterations = 1, warmup = 0 }}\n{}", matrix(&["elements", "seed"]))),
            refused(&format!("{}{factors}", matrix(&["elements"]))),
            refused(&format!("run = {{ iterations = 1200 }}\n{}", matrix(&["elements"]))),
        ]
        .join("\n"),
        @r"
        s.toml:2:9: `run.iterations`: the study has too many slots: 1 case x 4000000001 iterations with warm-ups = 4000000001; a study has at most 1000000 slots: lower one of these numbers, or split it
        s.toml:2:9: `run.until`: the study has too many slots: 1 case x 4000000001 iterations with warm-ups = 4000000001; a study has at most 1000000 slots: lower one of these numbers, or split it
        s.toml:5:4918: `workload.w.matrix.seed`: `w` has too many cases: 1000 x 1000 = 1000000; a study has at most 100000 cases: leave values or levels out, or split it
        s.toml:43:1: `factor.f12.levels`: `w` has too many cases: 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000 x 1000, more than 10^38; a study has at most 100000 cases: leave values or levels out, or split it
        s.toml:2:9: `run.iterations`: the study has too many slots: 1000 cases x 1201 iterations with warm-ups = 1201000; a study has at most 1000000 slots: lower one of these numbers, or split it
        "
    );
}
