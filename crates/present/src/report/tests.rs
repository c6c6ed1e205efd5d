use super::{ReportData, ReportError, render_report};

#[test]
fn a_report_of_nothing_is_refused() {
    let input = ReportData { title: "t".into(), ..ReportData::default() };
    assert!(matches!(render_report(&input), Err(ReportError::NoRuns)));
}
