//! What the server asks of the binary: results of runs, by the functions behind the verbs of the command line.

use perflab_analyze::Comparison;
use perflab_model::error_class::ErrorClass;
use perflab_present::ReportData;

/// Why there is no result, in words for whoever asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultRefusal {
    /// Whose fault it is.
    pub class: ErrorClass,
    /// A sentence.
    pub sentence: String,
}

/// Which runs and metrics a history is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryRequest {
    /// only these metrics
    pub metrics: Vec<String>,
    /// only these workloads
    pub workloads: Vec<String>,
    /// only runs with this label
    pub label: Option<String>,
    /// only runs of this study
    pub study: Option<String>,
    /// only the latest of them
    pub last: Option<usize>,
}

/// Results of the runs of one archive. Each call may take seconds, and several are made at once. Selectors have been looked up:
/// none is a path.
pub trait ResultSource: Send + Sync + 'static {
    /// What a page about runs is made of: one is compared by its factors, several with the first.
    ///
    /// # Errors
    /// Runs that cannot be read, or not be compared.
    fn report_data(&self, selectors: &[String]) -> Result<ReportData<'static>, ResultRefusal>;

    /// The comparison of runs with the first of them, or of the levels of the only one's factor.
    ///
    /// # Errors
    /// As [`ResultSource::report_data`].
    fn comparison(&self, selectors: &[String], by: Option<&str>) -> Result<Comparison, ResultRefusal>;

    /// What a page about metrics over runs is made of.
    ///
    /// # Errors
    /// No such run; runs that cannot be read.
    fn history_data(&self, of: &HistoryRequest) -> Result<ReportData<'static>, ResultRefusal>;
}
