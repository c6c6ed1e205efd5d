//! The page as text: complete without a script, closed to the network, and safe against names from anywhere.
#![expect(clippy::unwrap_used, reason = "a test may stop at what it does not expect")]

#[path = "data/recorded.rs"]
mod recorded;

use perflab_analyze::{AnalysisOptions, ComparisonSide, compare_levels};
use perflab_present::report::{SECTIONS, render_report};
use perflab_present::section::{Section, SectionBlock, SectionError};
use perflab_present::{ReportData, ReportRun};

fn report_of_run(run: ReportRun) -> ReportData<'static> {
    let side = ComparisonSide { name: "run".into(), runs: vec![run.record.clone()] };
    let comparison = compare_levels(&side, "pages", &AnalysisOptions::default()).unwrap();
    ReportData { comparisons: vec![comparison], runs: vec![Box::new(run)], ..ReportData::default() }
}

/// The page without script, style and data: what a browser without JavaScript shows.
fn strip_scripts(page: &str) -> String {
    page.split("<script").next().unwrap().split("</style>").last().unwrap().to_owned()
}

#[test]
fn verdicts_facts_and_plan_need_no_script() {
    let input = report_of_run(recorded::recorded_run());
    let page = strip_scripts(&render_report(&input, SECTIONS).unwrap());
    let rows = input.comparisons[0].rows.len();
    assert_eq!(page.matches("<tr role=\"row\" data-verdict=").count(), rows);
    assert_eq!(page.matches("class=\"point\"").count(), rows);
    for text in
        ["What do huge pages change", "01KAKM3Q9TV6W2YB4C8D5E7FGH", "20261121", "kernel.release", "3 late"]
    {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn the_policy_allows_nothing_from_anywhere() {
    let page = render_report(&report_of_run(recorded::recorded_run()), SECTIONS).unwrap();
    assert!(page.contains("default-src 'none'; script-src 'sha256-"));
    assert!(!page.contains("unsafe-inline") && !page.contains("unsafe-eval"));
    for reference in ["src=", "href=\"http", "@import", "url(http", "<iframe", "style=\""] {
        assert!(!strip_scripts(&page).contains(reference), "{reference}");
    }
}

#[test]
fn names_from_anywhere_stay_text() {
    let mut run = recorded::recorded_run();
    let evil = "</script><script>alert(1)</script><img src=x>";
    run.record.manifest.label = Some(evil.into());
    run.record.manifest.study.title = evil.into();
    run.record.warnings[0].advice = format!("`{evil}`");
    for sample in &mut run.record.samples {
        sample.metric = format!("{evil}{}", sample.metric).into();
    }
    let page = render_report(&report_of_run(run), SECTIONS).unwrap();
    assert!(!page.contains("<script>alert") && !page.contains("<img"));
    assert_eq!(page.matches("</script>").count(), 2);
}

#[test]
fn a_failed_iteration_is_shown_with_the_end_of_what_its_target_said() {
    let mut run = recorded::recorded_run();
    let count_folds = |page: &str| page.matches("<details").count();
    let before = count_folds(&render_report(&report_of_run(run.clone()), SECTIONS).unwrap());
    let lines = (0..300).map(|line| format!("[ {line}.0] line{line}\n"));
    let console: String =
        lines.collect::<String>().replace("line7\n", "Kernel panic - not syncing: <img src=x>\u{202e}\n");
    run.consoles = Some(console);
    let page = render_report(&report_of_run(run), SECTIONS).unwrap();
    assert_eq!(count_folds(&page), before + 1, "who said nothing has no such part");
    let page = strip_scripts(&page);
    for there in
        ["line299", "line240", "Kernel panic - not syncing: &lt;img src=x&gt;\\u{202e}", "239 lines before"]
    {
        assert!(page.contains(there), "{there}");
    }
    assert!(!page.contains("line239") && !page.contains("<img") && !page.contains('\u{202e}'));
}

#[test]
fn the_same_input_gives_the_same_page() {
    let input = report_of_run(recorded::recorded_run());
    assert_eq!(render_report(&input, SECTIONS).unwrap(), render_report(&input, SECTIONS).unwrap());
}

#[test]
fn a_run_without_anything_is_still_a_page() {
    let mut run = recorded::recorded_run();
    run.record.samples.clear();
    run.record.iterations.clear();
    run.record.gaps.clear();
    run.series.clear();
    let input = ReportData { title: "empty".into(), runs: vec![Box::new(run)], ..ReportData::default() };
    let page = render_report(&input, SECTIONS).unwrap();
    let answer: Vec<&str> =
        page.lines().map(str::trim).filter(|line| line.starts_with("<p class=\"answer\">")).collect();
    insta::assert_snapshot!(answer.join("\n"), @r#"<p class="answer">Nothing was compared: this report shows what was measured.</p>"#);
    // What is empty is not shown, and not named in the navigation.
    for id in ["verdicts", "slab", "flame", "iterations", "timelines"] {
        assert!(!page.contains(&format!("id=\"{id}\"")) && !page.contains(&format!("#{id}\"")), "{id}");
    }
}

#[test]
fn a_section_that_fails_says_why_and_the_page_is_whole() {
    const FAILING: Section = Section {
        id: "failing",
        title: "Failing",
        conclusions: |_| Ok(vec!["A sentence.".into()]),
        blocks: |_| {
            Err(SectionError::Read(perflab_model::RunDataError::new(std::io::Error::other("it is torn"))))
        },
    };
    const AFTER: Section = Section {
        id: "after",
        title: "After it",
        conclusions: |_| Ok(Vec::new()),
        blocks: |_| Ok(vec![SectionBlock::Text("`code` and <b>".into())]),
    };
    let page = render_report(&report_of_run(recorded::recorded_run()), &[&FAILING, &AFTER]).unwrap();
    let failed: Vec<&str> = page.lines().filter(|line| line.contains(" data-failed>")).collect();
    insta::assert_snapshot!(failed.join("\n"), @r#"<div class="warning" data-failed><p><strong>This part could not be made.</strong> it is torn.</p></div>"#);
    assert!(
        page.contains("<code>code</code> and &lt;b&gt;") && page.contains("<a href=\"#after\">After it</a>")
    );
}
