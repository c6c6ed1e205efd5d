//! The section Startups and its conclusions: a table of prefetch modes, a dot for every startup.
//!
//! What was measured in 2007 stands beside it where the study names that work as its reference.

use indexmap::IndexSet;
use perflab_analyze::startup::{
    StartupApplication, StartupMode, StartupSamples, proactive_reclaim_source, startup_applications,
};
use perflab_analyze::{
    ClaimFigures, ClaimOf2007, ClaimStatus, HistoricalClaim, PublishedStartup, STARTUPS_OF_2007,
    StartupRatio, claims_of_2007,
};
use perflab_model::RunRecord;
use perflab_model::quantity::{format_quantity, format_signed};

use crate::chart::axes::AxisBand;
use crate::chart::axis_unit::AxisUnit;
use crate::chart::dot_charts::{ChartDot, DotChart, LevelLine};
use crate::chart::scene::Scene;
use crate::grid::{Grid, GridCell, GridColumn};
use crate::run_viewer;
use crate::section::{ReportData, Section, SectionBlock, SectionError, fold_parts};

/// How long applications take to be there, by prefetch mode.
pub(crate) const SECTION: Section =
    Section { id: "startup", title: "Startups", conclusions: startup_conclusions, blocks: startup_blocks };

/// The work of 2007; a study that reproduces it names it as its reference.
const WORK_OF_2007: &str = "https://github.com/sudkannan/prefetch";

/// What disturbed startups.
fn startup_conclusions(data: &ReportData) -> Result<Vec<String>, SectionError> {
    let started = data.records().filter(|record| !startup_applications(record).is_empty());
    Ok(started.filter_map(proactive_reclaim_source).map(reclaim_warning).collect())
}

fn reclaim_warning(place: &str) -> String {
    format!(
        "Disturbed: the kernel takes pages that nobody maps out of memory, though there is room (DAMON, {place}): \
         some of what was read ahead may have been read twice, and warm starts may have read."
    )
}

/// A part for each application of each run that was started in several prefetch modes.
fn startup_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    let part = |record: &RunRecord, one: &StartupApplication| {
        let heading = format!("{}, {}", one.name, run_viewer::run_display_name(record));
        (Some(heading), application_blocks(record, one))
    };
    let mut parts = Vec::new();
    for record in data.records() {
        parts.extend(startup_applications(record).iter().map(|one| part(record, one)));
    }
    Ok(fold_parts("applications", parts))
}

fn application_blocks(record: &RunRecord, application: &StartupApplication) -> Vec<SectionBlock> {
    let reproduces_2007 = record.manifest.study.reference.as_deref() == Some(WORK_OF_2007);
    let mut blocks = vec![
        SectionBlock::Grid {
            caption: format!("Startups of {}", application.name),
            grid: mode_grid(application, reproduces_2007),
        },
        SectionBlock::Figure(startup_chart(application)),
    ];
    let claims = if reproduces_2007 { claims_of_2007(application) } else { Vec::new() };
    if !claims.is_empty() {
        blocks.push(SectionBlock::Fold {
            summary: "What was seen in 2007, and whether it holds here".into(),
            count: Some(claims.len()),
            blocks: vec![SectionBlock::Grid { caption: "Claims of 2007".into(), grid: claims_grid(&claims) }],
        });
    }
    blocks
}

/// A row a mode: medians with their intervals, and what a startup cost.
fn mode_grid(application: &StartupApplication, reproduces_2007: bool) -> Grid {
    let numbers = ["starts", "median [95 %], s", "mean ± sd, s", "ahead, s", "CPU, s", "major faults"];
    let columns = [GridColumn::left("read ahead, dropped")].into_iter().chain(numbers.map(GridColumn::right));
    let reads = ["requests from then on", "read from then on"].map(GridColumn::right);
    let mut grid = Grid::new(columns.chain(reads).chain([GridColumn::left("OpenOffice, 2007, s")]));
    for starts in &application.starts {
        let other = |name: &str| starts.others.get(name).copied();
        let number = |name: &str| other(name).map(|value| GridCell::with_text(format!("{value:.0}"), value));
        let time = |value: Option<f64>| value.map(|time| GridCell::with_text(format!("{time:.2}"), time));
        let wall = starts.wall_time().map(|wall| {
            let interval = wall.interval.as_ref();
            let interval =
                interval.map_or(String::new(), |ends| format!(" [{:.2}, {:.2}]", ends.low, ends.high));
            GridCell::with_text(format!("{:.2}{interval}", wall.value), wall.value)
        });
        let then = if reproduces_2007 { results_of_2007(starts) } else { String::new() };
        grid.add_row([
            mode_name(starts).into(),
            starts.walls.len().into(),
            wall.into(),
            GridCell::with_text(format!("{:.2} \u{b1} {:.2}", starts.mean, starts.deviation), starts.mean),
            time(other("prefetch").filter(|time| *time > 0.0)).into(),
            time(other("cpu")).into(),
            number("major-faults").into(),
            number("requests").into(),
            other("read").map(|bytes| GridCell::with_text(format_quantity(bytes, "bytes"), bytes)).into(),
            then.into(),
        ]);
    }
    grid
}

fn claims_grid(claims: &[HistoricalClaim]) -> Grid {
    let mut grid = Grid::new(["seen in 2007", "then", "today", "here", "why"].map(GridColumn::left));
    for one in claims {
        let (claim, then, why_not) = claim_texts(one.claim);
        grid.add_row([
            claim.into(),
            then.into(),
            claim_status_text(one.status).into(),
            claim_figures_text(&one.figures).as_str().into(),
            claim_reason(one, why_not).into(),
        ]);
    }
    grid
}

/// A claim, its figures of 2007, and why it may fail today (or is not measured, where it cannot be).
fn claim_texts(claim: ClaimOf2007) -> (&'static str, &'static str, &'static str) {
    match claim {
        ClaimOf2007::ReadingAhead => (
            "reading ahead before nothing",
            "10.78 s against 12.99 s (tests 2 and 3)",
            "a start that is bound by its own work, or by few large files, has little to gain",
        ),
        ClaimOf2007::OwnReadingAhead => (
            "reading ahead before the application\u{2019}s own before nothing",
            "11.01 s, 12.74 s, 14.38 s (test 8)",
            "today\u{2019}s own reads a few libraries whole, whose parts the kernel reads around anyway",
        ),
        ClaimOf2007::SyncBeforeAsync => (
            "sync before async",
            "10.78 s against 11.61 s (test 2)",
            "then files were read by number and metadata when they were met; with metadata first and files as they lie on the \
             disk, reading beside the program loses nothing to it",
        ),
        ClaimOf2007::Metadata => (
            "metadata have their share",
            "drop 1 against drop 3: 9.29 s to 10.78 s sync, 14 % (test 2)",
            "few files, or a table of inodes that lies together, leave little to names and inodes",
        ),
        ClaimOf2007::MajorFaults => (
            "major faults nearly vanish with sync, most of them with async",
            "1049, 220 to 400, 6 (tests 2 and 3)",
            "what is only read, and not mapped, faults at no start; what the trace lacks faults at all",
        ),
        ClaimOf2007::StartupsNeeded => (
            "the first start learns, the second traces, the third gains",
            "by design (test 8)",
            "here the first start traces and the second gains, as the study asks for it; `perflab prefetch daemon` looks first, \
             as the module did",
        ),
    }
}

/// Why a claim fails, or is not measured; empty where nothing needs to be said.
fn claim_reason(one: &HistoricalClaim, why_not: &'static str) -> &'static str {
    match (one.status, one.claim) {
        (ClaimStatus::Fails, _) | (_, ClaimOf2007::StartupsNeeded) => why_not,
        (ClaimStatus::Unmeasured, ClaimOf2007::OwnReadingAhead) if !one.reads_ahead_itself => {
            "this application reads nothing ahead by itself"
        }
        (ClaimStatus::Unmeasured, _) => {
            "the run has not all the starts that it compares (caches 3 and 1, reading ahead none, async and sync)"
        }
        (ClaimStatus::Holds | ClaimStatus::Unclear, _) => "",
    }
}

fn claim_status_text(status: ClaimStatus) -> &'static str {
    match status {
        ClaimStatus::Holds => "holds",
        ClaimStatus::Fails => "does not hold",
        ClaimStatus::Unclear => "is unclear",
        ClaimStatus::Unmeasured => "is not measured",
    }
}

fn claim_figures_text(figures: &ClaimFigures) -> String {
    match figures {
        ClaimFigures::None => String::new(),
        ClaimFigures::Startups(ratio) => startup_ratio_text(ratio),
        ClaimFigures::TwoSteps(ahead, own) => {
            format!(
                "ahead to own: {}; own to nothing: {}",
                startup_ratio_text(ahead),
                startup_ratio_text(own)
            )
        }
        ClaimFigures::MajorFaults { none, beside, before } => {
            format!("none {none:.0}, async {beside:.0}, sync {before:.0}")
        }
    }
}

fn startup_ratio_text(one: &StartupRatio) -> String {
    let times = format!("{:.2} s to {:.2} s", one.seconds.0, one.seconds.1);
    let Some(ratio) = one.ratio else { return times };
    let percent = |value: f64| format_signed((value - 1.0) * 100.0, 1);
    match one.interval {
        Some((low, high)) => {
            format!("{times}, {} % [{}, {}]", percent(ratio), percent(low), percent(high))
        }
        None => format!("{times}, {} %, too few starts for an interval", percent(ratio)),
    }
}

fn mode_name(starts: &StartupSamples) -> String {
    let mode = &starts.mode;
    format!("{}, {}", mode.prefetch, cache_state_name(mode))
}

/// The rows of 2007 for the same mode.
fn results_of_2007(starts: &StartupSamples) -> String {
    let same = |row: &&PublishedStartup| {
        let mode = &starts.mode;
        (row.prefetch, row.caches, row.own) == (mode.prefetch.as_str(), mode.caches.as_str(), mode.own)
    };
    let waited = |row: &PublishedStartup| {
        row.ticks.map_or_else(String::new, |ticks| format!(", waiting {:.2}", ticks / 100.0))
    };
    let text = |row: &PublishedStartup| {
        format!("{:.2} \u{b1} {:.2}{} (test {})", row.mean, row.deviation, waited(row), row.test)
    };
    STARTUPS_OF_2007.iter().filter(same).map(text).collect::<Vec<_>>().join("; ")
}

/// Modes stand beside one another as in the table; a colour for each mode of reading ahead.
fn startup_chart(application: &StartupApplication) -> Scene {
    let modes = application.starts.iter().enumerate();
    let groups: IndexSet<&str> = modes.clone().map(|(_, starts)| starts.mode.prefetch.as_str()).collect();
    let group = |starts: &StartupSamples| groups.get_index_of(starts.mode.prefetch.as_str()).unwrap_or(0);
    let dots = modes.clone().flat_map(|(at, starts)| {
        let (count, group) = (starts.walls.len().max(1) as f64, group(starts));
        let each = starts.walls.iter().enumerate();
        each.map(move |(start, wall)| ChartDot {
            x: at as f64 + (start as f64 / count - 0.5) * 0.6,
            y: *wall,
            interval: None,
            group,
            name: format!("{}, start {}: {wall:.3} s", mode_name(starts), start + 1),
        })
    });
    let level = |(at, starts): (usize, &StartupSamples)| {
        let value = starts.wall_time().map(|wall| wall.value)?;
        Some(LevelLine { from: at as f64 - 0.4, to: at as f64 + 0.4, value })
    };
    DotChart {
        title: format!("Every startup of {}", application.name),
        note: "a dot a startup, in the order in which they were made; the line is their median".into(),
        unit: AxisUnit::Plain("s".into()),
        x_title: "read ahead, dropped: the rows of the table above".into(),
        x_labels: application.starts.iter().map(mode_name).collect(),
        dots: dots.collect(),
        levels: modes.filter_map(level).collect(),
        bands: cache_state_bands(&application.starts),
        groups: groups.iter().map(ToString::to_string).collect(),
        ..DotChart::default()
    }
    .render()
}

/// What neighbours have in common: what was dropped, and whether the application read ahead by itself.
fn cache_state_bands(all: &[StartupSamples]) -> Vec<AxisBand> {
    let mut from = 0;
    let alike =
        all.chunk_by(|one, next| (&one.mode.caches, one.mode.own) == (&next.mode.caches, next.mode.own));
    alike
        .map(|alike| {
            let begin = from;
            from += alike.len();
            let name = alike.first().map(|one| cache_state_name(&one.mode)).unwrap_or_default();
            AxisBand { from: begin as f64 - 0.5, to: from as f64 - 0.5, name }
        })
        .collect()
}

/// `drop 3`, `warm, its own`
fn cache_state_name(mode: &StartupMode) -> String {
    let caches = if mode.caches == "warm" { "warm".into() } else { format!("drop {}", mode.caches) };
    if mode.own { format!("{caches}, its own") } else { caches }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_of_2007_are_held_against_the_study_that_repeats_them_alone() {
        let application =
            StartupApplication { name: "a".into(), starts: Vec::new(), is_from_catalogue: true };
        let mut record = fixtures::run_builder::RunBuilder::new("r").build_run(|_| Some(1.0));
        let is_fold = |block: &SectionBlock| matches!(block, SectionBlock::Fold { .. });
        assert!(!application_blocks(&record, &application).iter().any(is_fold));
        record.manifest.study.reference = Some(WORK_OF_2007.into());
        assert!(application_blocks(&record, &application).iter().any(is_fold));
    }

    #[test]
    fn claims_of_2007_in_words() {
        let ratio = StartupRatio { seconds: (5.0, 4.5), ratio: Some(1.111), interval: Some((1.05, 1.2)) };
        let one = |claim, status, figures, reads_ahead_itself| HistoricalClaim {
            claim,
            status,
            figures,
            reads_ahead_itself,
        };
        let two = ClaimFigures::TwoSteps(ratio.clone(), StartupRatio { interval: None, ..ratio.clone() });
        let faults = ClaimFigures::MajorFaults { none: 1049.0, beside: 300.4, before: 6.0 };
        let claims = [
            one(ClaimOf2007::ReadingAhead, ClaimStatus::Unmeasured, ClaimFigures::None, false),
            one(ClaimOf2007::OwnReadingAhead, ClaimStatus::Unmeasured, ClaimFigures::None, false),
            one(ClaimOf2007::OwnReadingAhead, ClaimStatus::Unclear, two, true),
            one(ClaimOf2007::SyncBeforeAsync, ClaimStatus::Fails, ClaimFigures::Startups(ratio), false),
            one(ClaimOf2007::MajorFaults, ClaimStatus::Holds, faults, false),
            one(ClaimOf2007::StartupsNeeded, ClaimStatus::Unmeasured, ClaimFigures::None, false),
        ];
        let text = claims_grid(&claims).render(crate::grid::OutputFormat::Csv, None, false).unwrap();
        insta::assert_snapshot!(text);
    }
}
