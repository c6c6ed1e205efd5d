use super::{ReportError, ReportInput, render};

#[test]
fn a_report_of_nothing_is_refused() {
    let input = ReportInput { title: "t".into(), ..ReportInput::default() };
    assert!(matches!(render(&input), Err(ReportError::NoRuns)));
}
