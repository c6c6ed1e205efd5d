//! What the server asks of the binary: results of runs, by the functions behind the verbs of the command line.

use perflab_analyze::{Comparison, MetricHistories};
use perflab_archive::ArchiveEntry;
use perflab_model::error_class::ErrorClass;
use perflab_present::ReportData;
use perflab_present::chart::Scene;

/// Why there is no result, in words for whoever asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultRefusal {
    /// Whose fault it is.
    pub reason: RefusalReason,
    /// A sentence.
    pub sentence: String,
}

/// Whose fault it is that there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// a parameter that cannot be understood
    Parameter,
    /// an error of this class
    Class(ErrorClass),
}

/// A picture that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureRequest {
    /// one of [`PICTURE_KINDS`](crate::PICTURE_KINDS)
    pub kind: String,
    /// the runs, at least one
    pub runs: Vec<String>,
    /// options of `perflab plot` with their values; several may have one name
    pub options: Vec<(String, String)>,
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

    /// What a page about one matter of a run is made of, which compares nothing.
    ///
    /// # Errors
    /// A run that cannot be read.
    fn run_data(&self, id: &str) -> Result<ReportData<'static>, ResultRefusal>;

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

    /// Metrics over runs.
    ///
    /// # Errors
    /// As [`ResultSource::history_data`].
    fn histories(&self, of: &HistoryRequest) -> Result<MetricHistories, ResultRefusal>;

    /// The histories of the metrics that decide of one study, whose runs these are, the oldest first, over the latest of them; none
    /// where no run is part of a history.
    ///
    /// # Errors
    /// Runs without a value of such a metric.
    fn study_history(
        &self,
        runs: &[ArchiveEntry],
        last: usize,
    ) -> Result<Option<MetricHistories>, ResultRefusal>;

    /// What `perflab plot` draws.
    ///
    /// # Errors
    /// Options that the kind does not have, or that cannot be understood; runs that cannot be read, or have nothing of that.
    fn picture(&self, of: &PictureRequest) -> Result<Scene, ResultRefusal>;

    /// The value of a metric in the newest run, with what `perflab guard` says of it, as a badge. `case` tells which, where several have
    /// the metric.
    ///
    /// # Errors
    /// No such run; several cases, or none, have the metric.
    fn badge(&self, of: &HistoryRequest, case: Option<&str>) -> Result<Scene, ResultRefusal>;
}
