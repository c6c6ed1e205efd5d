//! `perflab noise`

use std::path::PathBuf;

use anyhow::Context as _;
use perflab_analyze::{AnalysisOptions, ComparisonSide, NoiseCard, compare_levels};
use perflab_conduct::RunPermissions;
use perflab_model::study::{Factor, FactorKind, FactorLevel};
use perflab_model::{Scalar, Study};
use perflab_present::comparison::{Grid, GridCell, GridColumn};

use super::run;
use crate::arguments::{self, history};
use crate::context::{App, read_text_file};
use crate::exit::{Exit, UsageError};
use crate::output_path::replace_file;

/// The factor whose levels are the same, and the label of such runs.
const FACTOR: &str = "noise";

/// Measures the noise of this machine, or shows its card.
pub fn measure_or_show_noise(context: &App, wanted: &history::NoiseArgs) -> anyhow::Result<Exit> {
    if wanted.show {
        let card = read_noise_card(context)?;
        let hint = "measure it with `perflab noise`";
        let card = card.ok_or_else(|| UsageError::new("there is no noise card for this machine", hint))?;
        print_noise_card(context, &card)?;
        return Ok(Exit::Fine);
    }
    run::undo_leftovers(context);
    let manifest = run::prepare_manifest(context, &noise_run_args(wanted), use_same_variant_twice)?;
    let stop = run::stop_on_interrupt()?;
    let host = run::host_target(context, context.catalogue()?)?;
    let (_, directory) = run::execute_study(context, &host, &manifest, &RunPermissions::default(), &stop)?;
    let record = directory.read_record()?;
    let side = ComparisonSide { name: FACTOR.into(), runs: vec![record] };
    let comparison = compare_levels(&side, FACTOR, &AnalysisOptions::default())?;
    let manifest = side.runs.first().map(|run| &run.manifest).context("the run is gone")?;
    let (card, without) = NoiseCard::from_comparison(&comparison, manifest);
    without.iter().for_each(|reason| stderr_line!("without a card: {reason}"));
    if card.rows.is_empty() {
        stderr_line!(
            "perflab: no noise card: no metric has an interval; 6 iterations a side are the fewest, 20 (the default) are better"
        );
        return Ok(Exit::NothingJudged);
    }
    keep_noise_card(context, &card)?;
    print_noise_card(context, &card)?;
    Ok(Exit::Fine)
}

fn noise_run_args(wanted: &history::NoiseArgs) -> arguments::RunArgs {
    arguments::RunArgs {
        study: wanted.study.clone(),
        label: Some(FACTOR.into()),
        set: Vec::new(),
        only: wanted.only.clone(),
        seed: wanted.seed,
        iterations: Some(wanted.iterations),
        install: false,
        apply: false,
        scratch: None,
        no_report: true,
    }
}

/// The first level of every factor, under two labels that nothing reads.
fn use_same_variant_twice(study: &mut Study) {
    study.factor.values_mut().for_each(|factor| factor.levels.truncate(1));
    let level = |name: &str| FactorLevel {
        name: name.into(),
        value: Scalar::from(name),
        apply: Vec::new(),
        undo: Vec::new(),
    };
    let (kind, key) = (FactorKind::Environment, Some("PERFLAB_NOISE".into()));
    let factor = Factor { kind, key, workload: None, on: None, levels: vec![level("a"), level("b")] };
    study.factor.insert(FACTOR.into(), factor);
}

/// Where the card of this machine lies.
fn noise_card_path(context: &App) -> PathBuf {
    let id = std::fs::read_to_string(context.root.path("/etc/machine-id")).unwrap_or_default();
    let name: String = id.trim().chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let name = if name.is_empty() { "machine".to_owned() } else { name };
    context.archive_path().join("noise").join(format!("{name}.json"))
}

/// This machine's card, if it has one.
///
/// A card that cannot be read is an error: silently comparing without it would look like no card.
pub fn read_noise_card(context: &App) -> anyhow::Result<Option<NoiseCard>> {
    let path = noise_card_path(context);
    let text = match read_text_file(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read the noise card {}", path.display()));
        }
    };
    let card = serde_json::from_str(&text).with_context(|| {
        format!(
            "the noise card {} is damaged: remove it, and measure again with `perflab noise`",
            path.display()
        )
    })?;
    Ok(Some(card))
}

/// Keeps rows of other cases: several studies share one card.
fn keep_noise_card(context: &App, card: &NoiseCard) -> anyhow::Result<()> {
    let path = noise_card_path(context);
    let mut card = card.clone();
    if let Some(old) = read_noise_card(context).unwrap_or_default().filter(|old| old.kernel == card.kernel) {
        let is_new = |one: &perflab_analyze::compare::noise_card::NoiseRow| {
            card.rows.iter().any(|row| row.subject == one.subject && row.metric == one.metric)
        };
        let kept: Vec<_> = old.rows.into_iter().filter(|row| !is_new(row)).collect();
        card.rows.extend(kept);
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    replace_file(&path, serde_json::to_string_pretty(&card)?.as_bytes())
        .with_context(|| format!("cannot write the noise card {}", path.display()))?;
    context.note(format!("noise card: {}", path.display()));
    Ok(())
}

fn print_noise_card(context: &App, card: &NoiseCard) -> anyhow::Result<()> {
    let left = ["case", "metric"].map(GridColumn::left);
    let right = ["n", "noise", "change a → b", "reaches", "finds", "alarms interleaved", "alarms in turn"];
    let mut grid = Grid::new(left.into_iter().chain(right.map(GridColumn::right)));
    let percent = |value: f64| GridCell::with_text(format!("{:.2} %", value * 100.0), value);
    let share = |value: Option<f64>| {
        value.map_or_else(GridCell::missing, |v| GridCell::with_text(format!("{:.0} %", v * 100.0), v))
    };
    for row in &card.rows {
        grid.add_row([
            GridCell::from(row.subject.as_str()),
            GridCell::from(row.metric.as_str()),
            GridCell::from(row.n),
            percent(row.noise),
            GridCell::with_text(format!("{:+.2} %", row.change * 100.0), row.change),
            GridCell::with_text(format!("± {:.2} %", row.reach * 100.0), row.reach),
            row.detects.map_or_else(GridCell::missing, percent),
            share(row.interleaved),
            share(row.in_turn),
        ]);
    }
    context.print_grid(&grid)?;
    context.note(
        "note: noise: standard deviation of one iteration; reaches: the largest change that the interval admits although \
         nothing changed; finds: the change that as many iterations find in 80 % of experiments; alarms: share of small \
         experiments (6 a side, cut out of this run) with p below 5 %, the sides interleaved or one after the other",
    );
    Ok(())
}
