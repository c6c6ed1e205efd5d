//! Verdicts as continuous integration takes them: annotations of GitHub's workflows, JUnit's XML, the kernel's TAP.
//!
//! A row that decides is a test. What `--fail-if` counts fails, so that the page of a job and its end say the same; without it, what is
//! worse does. One that is better or the same passes, and one that is not decided is skipped, with its reason: it has not passed. What a
//! row says is the line that `--format short` has of it.

use std::fmt::Write as _;

use perflab_analyze::{
    Comparison, Gate, GuardFailures, GuardReport, GuardRow, MetricHistories, Verdict, VerdictRow,
};

use crate::chart::svg::escape_xml;
use crate::comparison::answer::answer_lines;
use crate::comparison::mail::{StudyComparisons, row_result};
use crate::comparison::row_text::{comparison_headline, failures_text, verdict_words};
use crate::diagnostics::{DiagnosticGroup, group_diagnostics};
use crate::grid::OutputFormat;
use crate::history::{guard_failures_text, guard_row_text};
use perflab_model::untrusted_text::escape_controls_in_line;

/// So many annotations of one kind GitHub shows of a step.
const MOST_ANNOTATIONS: usize = 10;

/// What a test came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestOutcome {
    /// better, or the same
    Passed,
    /// worse
    Failed,
    /// not decided
    Skipped,
}

/// A verdict as a test.
#[derive(Debug, Clone, PartialEq)]
struct CiTest {
    /// The case.
    suite: String,
    /// The metric.
    name: String,
    outcome: TestOutcome,
    /// The verdict in words.
    verdict: String,
    /// What was found: values, change, interval.
    result: String,
    /// How large the change is, for those that are worst.
    size: f64,
}

/// The tests of a comparison, or of a history.
#[derive(Debug, Clone, PartialEq)]
pub struct CiTests {
    /// What was compared.
    title: String,
    /// The answer in a sentence or two.
    answer: String,
    /// What is doubtful of it, each in a sentence with advice.
    warnings: Vec<String>,
    tests: Vec<CiTest>,
}

impl CiTests {
    /// A test for each row that decides, and for each line of a kernel that the gate refuses.
    #[must_use]
    pub fn of_comparison(comparison: &Comparison, gate: Option<&Gate>) -> Self {
        let one = std::slice::from_ref(comparison);
        CiTests {
            title: comparison_headline(comparison),
            answer: answer_lines(one).join(" "),
            warnings: warning_sentences(one),
            tests: comparison_tests(comparison, gate),
        }
    }

    /// The same of the studies that two labels share; what could not be compared is skipped, with the reason.
    #[must_use]
    pub fn of_studies(found: &StudyComparisons, gate: Option<&Gate>) -> Self {
        let skipped = |suite: &str, result: String| CiTest {
            suite: suite.to_owned(),
            name: "study".into(),
            outcome: TestOutcome::Skipped,
            verdict: "not compared".into(),
            result,
            size: 0.0,
        };
        let (mut answers, mut warnings, mut tests) = (Vec::new(), Vec::new(), Vec::new());
        for study in &found.studies {
            match &study.outcome {
                Ok(comparison) => {
                    let of_study = CiTests::of_comparison(comparison, gate);
                    answers.push(format!("{}: {}", study.study, of_study.answer));
                    warnings.extend(of_study.warnings.iter().map(|text| format!("{}: {text}", study.study)));
                    let name =
                        |test: CiTest| CiTest { suite: format!("{}: {}", study.study, test.suite), ..test };
                    tests.extend(of_study.tests.into_iter().map(name));
                }
                Err(reason) => tests.push(skipped(&study.study, reason.clone())),
            }
        }
        tests.extend(
            found.one_sided.iter().map(|(study, side)| skipped(study, format!("only {side} has it"))),
        );
        CiTests {
            title: format!("{} against {}", found.candidate, found.baseline),
            answer: answers.join("; "),
            warnings,
            tests,
        }
    }

    /// A test for each series of the newest run that decides, one for each case that fails more than chance explains, and one that is
    /// skipped for what was measured earlier and is not there any more.
    #[must_use]
    pub fn of_guard(history: &MetricHistories, guard: &GuardReport) -> Self {
        let alarms = guard.alarms();
        let row = |row: &GuardRow| CiTest::of_guard_row(history, row, alarms.contains(&row));
        let failing = |found: &GuardFailures| CiTest {
            suite: found.subject.clone(),
            name: "iterations".into(),
            outcome: TestOutcome::Failed,
            verdict: "worse".into(),
            result: guard_failures_text(found),
            size: f64::INFINITY,
        };
        let lost = |name: &String| CiTest {
            suite: "measured earlier".into(),
            name: name.clone(),
            outcome: TestOutcome::Skipped,
            verdict: "missing".into(),
            result: "not in the newest run".into(),
            size: 0.0,
        };
        let rows = guard.deciding_rows().map(row);
        let tests: Vec<CiTest> =
            rows.chain(guard.failing().into_iter().map(failing)).chain(guard.lost.iter().map(lost)).collect();
        let worse = tests.iter().filter(|test| test.outcome == TestOutcome::Failed).count();
        let answer = match guard.is_empty() && worse == 0 {
            true => format!("nothing was judged in run {}", guard.run),
            false => format!("{worse} of {} worse in run {}", tests.len(), guard.run),
        };
        let title = format!("run {} against its history", guard.run);
        CiTests { title, answer, warnings: Vec::new(), tests }
    }

    /// What is doubtful of what was compared: GitHub's annotations have it themselves, other formats have no place for it.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The tests in a format; none where it is not one for continuous integration.
    #[must_use]
    pub fn render(&self, format: OutputFormat) -> Option<String> {
        match format {
            OutputFormat::Github => Some(self.annotations()),
            OutputFormat::Junit => Some(self.junit()),
            OutputFormat::Ktap => Some(self.ktap()),
            _ => None,
        }
    }

    fn count(&self, outcome: TestOutcome) -> usize {
        self.tests.iter().filter(|test| test.outcome == outcome).count()
    }

    /// Commands of a workflow: the answer, then what is worst.
    /// <https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands>
    fn annotations(&self) -> String {
        let mut failed: Vec<&CiTest> =
            self.tests.iter().filter(|test| test.outcome == TestOutcome::Failed).collect();
        failed.sort_by(|one, other| other.size.total_cmp(&one.size));
        let mut text = annotation("notice", &self.title, &self.answer);
        for test in failed.iter().take(MOST_ANNOTATIONS) {
            let title = format!("{} {}: {}", test.suite, test.name, test.verdict);
            text += &annotation("error", &title, &test.result);
        }
        let left_out = failed.len().saturating_sub(MOST_ANNOTATIONS);
        if left_out > 0 {
            let message = format!("{left_out} further rows fail: `--format table` prints all");
            text += &annotation("warning", &self.title, &message);
        }
        text.extend(self.warnings.iter().map(|warning| annotation("warning", &self.title, warning)));
        text
    }

    /// A suite for each case, a test for each metric.
    /// <https://github.com/testmoapp/junitxml>
    fn junit(&self) -> String {
        let [failed, skipped] =
            [TestOutcome::Failed, TestOutcome::Skipped].map(|outcome| self.count(outcome));
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\">\n",
            escape_xml(&self.title),
            self.tests.len(),
        );
        for suite in self.tests.chunk_by(|one, other| one.suite == other.suite) {
            let name = suite.first().map(|test| escape_xml(&test.suite)).unwrap_or_default();
            let count = |outcome: TestOutcome| suite.iter().filter(|test| test.outcome == outcome).count();
            let (failed, skipped) = (count(TestOutcome::Failed), count(TestOutcome::Skipped));
            let _ = writeln!(
                text,
                "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\">",
                suite.len()
            );
            suite.iter().for_each(|test| text += &junit_test(&name, test));
            text += "  </testsuite>\n";
        }
        text + "</testsuites>\n"
    }

    /// A line for each test.
    /// <https://docs.kernel.org/dev-tools/ktap.html>
    fn ktap(&self) -> String {
        let mut text = format!("KTAP version 1\n1..{}\n", self.tests.len());
        for (number, test) in (1..).zip(&self.tests) {
            let words = if test.outcome == TestOutcome::Failed { "not ok" } else { "ok" };
            let name = one_line(&format!("{} {}", test.suite, test.name));
            let skip = match test.outcome {
                TestOutcome::Skipped => format!(" # SKIP {}", one_line(&test.verdict)),
                _ => String::new(),
            };
            let result = one_line(&format!("{}, {}", test.result, test.verdict));
            let _ = writeln!(text, "# {result}\n{words} {number} {name}{skip}");
        }
        text
    }
}

impl CiTest {
    /// `refused`: whether the gate counts it, where there is one.
    fn of_row(row: &VerdictRow, comparison: &Comparison, refused: Option<bool>) -> Self {
        let outcome = match (refused, row.verdict_word()) {
            (Some(true), _) | (None, "worse") => TestOutcome::Failed,
            (_, "better" | "same" | "worse") => TestOutcome::Passed,
            _ => TestOutcome::Skipped,
        };
        let several = comparison.candidates.len() > 1;
        let candidate = if several { format!(" ({})", row.candidate_name) } else { String::new() };
        let failures = failures_text(row, comparison).map_or(String::new(), |text| format!("; {text}"));
        CiTest {
            suite: row.subject.clone(),
            name: format!("{}{candidate}", row.metric),
            outcome,
            verdict: verdict_words(row),
            result: row_result(row) + &failures,
            // Where nothing but failures came, there is no change, and nothing is worse.
            size: row.relative_change().map_or(f64::INFINITY, f64::abs),
        }
    }

    fn of_guard_row(history: &MetricHistories, row: &GuardRow, alarms: bool) -> Self {
        let (verdict, result) = guard_row_text(history, row);
        CiTest {
            suite: row.subject.clone(),
            name: row.metric.clone(),
            outcome: match row.verdict {
                _ if alarms => TestOutcome::Failed,
                Verdict::Better | Verdict::Same => TestOutcome::Passed,
                Verdict::Worse | Verdict::SameHere | Verdict::Unclear | Verdict::Differs => {
                    TestOutcome::Skipped
                }
            },
            verdict,
            result,
            size: row.change.map_or(f64::INFINITY, |change| change.value.abs()),
        }
    }
}

fn comparison_tests(comparison: &Comparison, gate: Option<&Gate>) -> Vec<CiTest> {
    let refused = gate.map(|gate| comparison.violations(gate));
    let row = |row: &VerdictRow| {
        let is_refused =
            refused.as_ref().map(|refused| refused.iter().any(|other| std::ptr::eq(*other, row)));
        CiTest::of_row(row, comparison, is_refused)
    };
    let printed = gate.map(|gate| comparison.kernel_log_violations(gate)).unwrap_or_default();
    let printed = printed.into_iter().map(|row| CiTest {
        suite: "kernel log".into(),
        name: row.trouble.map_or_else(|| "line".to_owned(), |kind| kind.to_string()),
        outcome: TestOutcome::Failed,
        verdict: "new".into(),
        result: row.line.clone(),
        size: f64::INFINITY,
    });
    comparison.deciding_rows().into_iter().map(row).chain(printed).collect()
}

fn warning_sentences(comparisons: &[Comparison]) -> Vec<String> {
    let sentence = |group: DiagnosticGroup| {
        let details =
            if group.details.is_empty() { String::new() } else { format!(" ({})", group.details.join("; ")) };
        format!("{}{details}; {}", group.headline, group.advice)
    };
    group_diagnostics(comparisons).into_iter().map(sentence).collect()
}

fn annotation(kind: &str, title: &str, message: &str) -> String {
    let message = message.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let title = title.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let title = title.replace(':', "%3A").replace(',', "%2C");
    format!("::{kind} title={title}::{message}\n")
}

fn junit_test(suite: &str, test: &CiTest) -> String {
    let (name, verdict, result) =
        (escape_xml(&test.name), escape_xml(&test.verdict), escape_xml(&test.result));
    let inner = match test.outcome {
        TestOutcome::Passed => format!("<system-out>{result}, {verdict}</system-out>"),
        TestOutcome::Failed => {
            format!("<failure type=\"{verdict}\" message=\"{result}\">{result}, {verdict}</failure>")
        }
        TestOutcome::Skipped => format!("<skipped message=\"{verdict}: {result}\"/>"),
    };
    format!("    <testcase classname=\"{suite}\" name=\"{name}\">{inner}</testcase>\n")
}

/// A text that neither ends its line nor begins a directive, and is still told from another one.
fn one_line(text: &str) -> String {
    escape_controls_in_line(text).replace('#', "\\#")
}
