//! One part of a report and of the end of a run: its blocks, what it reads, and why it can fail.
//!
//! A section is declared in the file of its noun, and named once in [`SECTIONS`](crate::report::SECTIONS).

use perflab_analyze::operations::OperationError;
use perflab_analyze::slab::SlabError;
use perflab_analyze::{AnalyzeError, Comparison, GuardReport, MetricHistories, TraceContents};
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::io_trace::IoRecording;
use perflab_model::operation::OperationColumns;
use perflab_model::operation::{OperationTraceSummary, TracedIteration};
use perflab_model::series::RowRuns;
use perflab_model::{Profile, RunData, RunDataError, RunRecord};
use serde::Serialize;

use crate::tested_commit::TestedCommitLine;

use crate::chart::scene::Scene;
use crate::comparison::verdict_table::VerdictTable;
use crate::grid::Grid;

/// One part of a report.
#[derive(Debug)]
pub struct Section {
    /// Its anchor, and its name in the navigation's addresses.
    pub id: &'static str,
    /// Its heading, and its name in the navigation.
    pub title: &'static str,
    /// Sentences: the end of `perflab run` in a terminal, and the head of the section on a page. Backticks stand around names.
    pub conclusions: fn(&ReportData) -> Result<Vec<String>, SectionError>,
    /// What stands below them on a page. A section without conclusions and blocks is not shown.
    pub blocks: fn(&ReportData) -> Result<Vec<SectionBlock>, SectionError>,
}

/// A section without sentences of its own.
pub(crate) fn no_conclusions(_: &ReportData) -> Result<Vec<String>, SectionError> {
    Ok(Vec::new())
}

/// One block of a section; the page has a macro for each kind.
#[derive(Debug)]
pub enum SectionBlock {
    /// A heading below the section's.
    Heading(String),
    /// A sentence; what is between backticks is code.
    Text(String),
    /// The same, standing back.
    Hint(String),
    /// A warning with what to do about it.
    Diagnostic {
        /// What is wrong.
        headline: String,
        /// What to do.
        advice: String,
        /// Each finding.
        details: Vec<String>,
    },
    /// What stands in the place of a part that cannot be made: why.
    Failure(String),
    /// Letters with what they mean.
    Footnotes(Vec<(String, String)>),
    /// Names with their values.
    Pairs(Vec<(String, String)>),
    /// Texts one below the other.
    List(Vec<String>),
    /// A text as it is, line by line.
    Code(String),
    /// A table.
    Grid {
        /// What it shows.
        caption: String,
        /// Its columns and rows.
        grid: Grid,
    },
    /// Verdicts, each with its interval drawn.
    Verdicts(VerdictTable),
    /// A picture, drawn into the page.
    Figure(Scene),
    /// A part that a script brings to life.
    Viewer(SectionViewer),
    /// Blocks on a card with a heading.
    Card {
        /// Its heading.
        heading: String,
        /// A word beside the heading, and whether it is a good one.
        badge: Option<(String, bool)>,
        /// What stands on it.
        blocks: Vec<SectionBlock>,
    },
    /// Blocks that are opened on demand.
    Fold {
        /// What is in it.
        summary: String,
        /// How many of it there are.
        count: Option<usize>,
        /// What is in it.
        blocks: Vec<SectionBlock>,
    },
}

/// As many parts of a section are drawn; the others are opened on demand.
pub(crate) const MOST_OPEN_PARTS: usize = 4;

/// Parts of a section, each with its heading (where it has one): the first [`MOST_OPEN_PARTS`] drawn, the others folded.
pub(crate) fn fold_parts(kind: &str, parts: Vec<(Option<String>, Vec<SectionBlock>)>) -> Vec<SectionBlock> {
    let mut open = Vec::new();
    let mut folded = Vec::new();
    for (at, (heading, blocks)) in parts.into_iter().enumerate() {
        match heading {
            Some(summary) if at >= MOST_OPEN_PARTS => {
                folded.push(SectionBlock::Fold { summary, count: None, blocks });
            }
            heading => open.extend(heading.map(SectionBlock::Heading).into_iter().chain(blocks)),
        }
    }
    if !folded.is_empty() {
        let count = Some(folded.len());
        open.push(SectionBlock::Fold { summary: format!("Further {kind}"), count, blocks: folded });
    }
    open
}

/// A part that `web/src/main.ts` knows by name, with its data.
#[derive(Debug)]
pub struct SectionViewer {
    /// The name in `VIEWERS`.
    pub name: &'static str,
    /// The name of its data on the page: viewers that name the same have it once.
    pub data_id: String,
    /// The data.
    pub data: ViewerData,
    /// What a browser without scripts shows.
    pub without_script: &'static str,
    /// What stands for it on paper and without scripts; with it there is one picture of one thing.
    pub still: Option<Scene>,
}

/// What a viewer reads.
#[derive(Debug)]
pub enum ViewerData {
    /// JSON, see `packed_column`.
    Json(String),
    /// JSON that is made when a page has none of that name yet: several viewers read it.
    Shared(fn(&ReportData) -> Result<String, SectionError>),
}

/// What sections read: nothing else passes between an archive and a page.
pub struct ReportData<'a> {
    /// The page's heading; the first study's title where empty.
    pub title: String,
    /// What was compared, in the order of the page.
    pub comparisons: Vec<Comparison>,
    /// The runs, the baseline first.
    pub runs: Vec<Box<dyn RunData + 'a>>,
    /// The history of metrics, its newest run among the runs.
    pub history: Option<MetricHistories>,
    /// The newest run, held against the history.
    pub guard: Option<GuardReport>,
    /// The commits that a watch of a tree has tested, the newest first.
    pub tested_commits: Vec<TestedCommitLine>,
    /// What a startup trace that is remembered of a program would bring. Startup traces are of the measuring wing.
    pub startup_trace: fn(&str) -> Option<TraceContents>,
    /// Other pages, where the page is one of a site; a page that stands alone has none.
    pub links: Vec<PageLink>,
}

/// A link to another page of the site that a page is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageLink {
    /// What it is called.
    pub text: String,
    /// Its path and query.
    pub address: String,
}

impl Default for ReportData<'_> {
    fn default() -> Self {
        ReportData {
            title: String::new(),
            comparisons: Vec::new(),
            runs: Vec::new(),
            history: None,
            guard: None,
            tested_commits: Vec::new(),
            startup_trace: |_| None,
            links: Vec::new(),
        }
    }
}

impl ReportData<'_> {
    /// The records of the runs.
    pub(crate) fn records(&self) -> impl Iterator<Item = &RunRecord> {
        self.runs.iter().map(|run| run.record())
    }
}

/// A run that is held in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportRun {
    /// The run.
    pub record: RunRecord,
    /// What its monitors recorded; the order is kept.
    pub series: Vec<RowRuns>,
    /// What its targets printed beside their streams (errors, consoles), where an iteration failed: all of it.
    pub consoles: Option<String>,
    /// Sampled call stacks, with their cases.
    pub profiles: Vec<(u32, Profile)>,
    /// The operations of iterations that were traced, with what was reported about them.
    pub operations: Vec<(OperationTraceSummary, OperationColumns)>,
    /// The I/O of iterations in which it was traced.
    pub io: Vec<(TracedIteration, IoRecording)>,
}

impl RunData for ReportRun {
    fn record(&self) -> &RunRecord {
        &self.record
    }

    fn series(&self) -> Result<&[RowRuns], RunDataError> {
        Ok(&self.series)
    }

    fn target_output(&self) -> Result<Option<String>, RunDataError> {
        Ok(self.consoles.clone())
    }

    fn profiled_cases(&self) -> Result<Vec<u32>, RunDataError> {
        Ok(self.profiles.iter().map(|(case, _)| *case).collect())
    }

    fn profile(&self, case: u32) -> Result<Profile, RunDataError> {
        let found = self.profiles.iter().find(|(of, _)| *of == case);
        Ok(found.map(|(_, profile)| profile.clone()).unwrap_or_default())
    }

    fn traced_iterations(&self) -> Result<Vec<OperationTraceSummary>, RunDataError> {
        Ok(self.operations.iter().map(|(summary, _)| summary.clone()).collect())
    }

    fn io_recordings(&self) -> Result<Vec<(TracedIteration, IoRecording)>, RunDataError> {
        Ok(self.io.clone())
    }

    fn operations(&self, iteration: TracedIteration) -> Result<OperationColumns, RunDataError> {
        let found = self.operations.iter().find(|(summary, _)| summary.iteration() == iteration);
        Ok(found.map(|(_, operations)| operations.clone()).unwrap_or_default())
    }
}

/// Why a section cannot be made: it says so in its place, and the page is whole.
#[derive(Debug, thiserror::Error)]
pub enum SectionError {
    /// A part of a run that cannot be read.
    #[error(transparent)]
    Read(#[from] RunDataError),
    /// Data that cannot be analysed.
    #[error(transparent)]
    Analyze(#[from] AnalyzeError),
    /// Operations that cannot be analysed.
    #[error(transparent)]
    Operations(#[from] OperationError),
    /// Slab series that cannot be analysed.
    #[error(transparent)]
    Slab(#[from] SlabError),
    /// Colours of call stacks that are no rules.
    #[error(transparent)]
    Rules(#[from] perflab_analyze::flame::category_rules::CategoryRulesError),
    /// Data that cannot be written as JSON.
    #[error("its data cannot be written: {0}")]
    Json(#[from] serde_json::Error),
}

impl Classify for SectionError {
    fn class(&self) -> ErrorClass {
        match self {
            SectionError::Read(error) => error.class(),
            SectionError::Analyze(error) => error.class(),
            SectionError::Operations(error) => error.class(),
            SectionError::Slab(error) => error.class(),
            SectionError::Rules(error) => error.class(),
            SectionError::Json(error) => error.class(),
        }
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Nothing to show.
    #[error("a report needs at least one run")]
    NoRuns,
    /// The page's template refused its data: a mistake of ours.
    #[error("the report's page cannot be filled: {0}")]
    Page(#[from] minijinja::Error),
    /// The data cannot be written as JSON.
    #[error("the report's data cannot be written: {0}")]
    Data(#[from] serde_json::Error),
}

impl Classify for ReportError {
    fn class(&self) -> ErrorClass {
        match self {
            ReportError::NoRuns => ErrorClass::Usage,
            ReportError::Page(_) | ReportError::Data(_) => ErrorClass::Unexpected,
        }
    }
}
