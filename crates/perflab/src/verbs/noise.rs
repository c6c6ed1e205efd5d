//! `perflab noise`

use std::path::PathBuf;

use anyhow::Context as _;
use perflab_analyze::{NoiseCard, Options, Side, compare_by_factor};
use perflab_conduct::Permissions;
use perflab_model::study::{Factor, FactorKind, Level};
use perflab_model::{Study, Value};
use perflab_present::table::{Cell, Column, Grid};

use super::run;
use crate::arguments::{self, history};
use crate::context::{Context, read_text_file};
use crate::exit::{Exit, Usage};
use crate::output_path::replace;

/// The factor whose levels are the same, and the label of such runs.
const FACTOR: &str = "noise";

/// Measures the noise of this machine, or shows its card.
pub fn run(context: &Context, wanted: &history::Noise) -> anyhow::Result<Exit> {
    if wanted.show {
        let card = stored(context)?;
        let hint = "measure it with `perflab noise`";
        let card = card.ok_or_else(|| Usage::new("there is no noise card for this machine", hint))?;
        print(context, &card)?;
        return Ok(Exit::Fine);
    }
    run::undo_leftovers(context);
    let manifest = run::prepare(context, &as_run(wanted), twice)?;
    let stop = run::stop_on_interrupt()?;
    let host = run::host(context, context.catalogue()?)?;
    let (_, directory) = run::carry_out(context, &host, &manifest, &Permissions::default(), &stop)?;
    let record = directory.record()?;
    let side = Side { name: FACTOR.into(), runs: vec![record] };
    let comparison = compare_by_factor(&side, FACTOR, &Options::default())?;
    let manifest = side.runs.first().map(|run| &run.manifest).context("the run is gone")?;
    let (card, without) = NoiseCard::of(&comparison, manifest);
    without.iter().for_each(|reason| stderr_line!("without a card: {reason}"));
    if card.rows.is_empty() {
        stderr_line!(
            "perflab: no noise card: no metric has an interval; 6 iterations a side are the fewest, 20 (the default) are better"
        );
        return Ok(Exit::NothingJudged);
    }
    store(context, &card)?;
    print(context, &card)?;
    Ok(Exit::Fine)
}

fn as_run(wanted: &history::Noise) -> arguments::Run {
    arguments::Run {
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
fn twice(study: &mut Study) {
    study.factor.values_mut().for_each(|factor| factor.levels.truncate(1));
    let level = |name: &str| Level {
        name: name.into(),
        value: Value::from(name),
        apply: Vec::new(),
        undo: Vec::new(),
    };
    let (kind, key) = (FactorKind::Environment, Some("PERFLAB_NOISE".into()));
    let factor = Factor { kind, key, workload: None, on: None, levels: vec![level("a"), level("b")] };
    study.factor.insert(FACTOR.into(), factor);
}

/// Where the card of this machine lies.
fn path(context: &Context) -> PathBuf {
    let id = std::fs::read_to_string(context.root.path("/etc/machine-id")).unwrap_or_default();
    let name: String = id.trim().chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let name = if name.is_empty() { "machine".to_owned() } else { name };
    context.archive_path().join("noise").join(format!("{name}.json"))
}

/// This machine's card, if it has one.
///
/// A card that cannot be read is an error: silently comparing without it would look like no card.
pub fn stored(context: &Context) -> anyhow::Result<Option<NoiseCard>> {
    let path = path(context);
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
fn store(context: &Context, card: &NoiseCard) -> anyhow::Result<()> {
    let path = path(context);
    let mut card = card.clone();
    if let Some(old) = stored(context).unwrap_or_default().filter(|old| old.kernel == card.kernel) {
        let is_new = |one: &perflab_analyze::noise_card::NoiseRow| {
            card.rows.iter().any(|row| row.subject == one.subject && row.metric == one.metric)
        };
        let kept: Vec<_> = old.rows.into_iter().filter(|row| !is_new(row)).collect();
        card.rows.extend(kept);
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    replace(&path, serde_json::to_string_pretty(&card)?.as_bytes())
        .with_context(|| format!("cannot write the noise card {}", path.display()))?;
    context.say(format!("noise card: {}", path.display()));
    Ok(())
}

fn print(context: &Context, card: &NoiseCard) -> anyhow::Result<()> {
    let left = ["case", "metric"].map(Column::left);
    let right = ["n", "noise", "change a → b", "reaches", "finds", "alarms interleaved", "alarms in turn"];
    let mut grid = Grid::new(left.into_iter().chain(right.map(Column::right)));
    let percent = |value: f64| Cell::shown(format!("{:.2} %", value * 100.0), value);
    let share = |value: Option<f64>| {
        value.map_or_else(Cell::missing, |v| Cell::shown(format!("{:.0} %", v * 100.0), v))
    };
    for row in &card.rows {
        grid.add([
            Cell::from(row.subject.as_str()),
            Cell::from(row.metric.as_str()),
            Cell::from(row.n),
            percent(row.noise),
            Cell::shown(format!("{:+.2} %", row.change * 100.0), row.change),
            Cell::shown(format!("± {:.2} %", row.reach * 100.0), row.reach),
            row.detects.map_or_else(Cell::missing, percent),
            share(row.interleaved),
            share(row.in_turn),
        ]);
    }
    context.print(&grid)?;
    context.say(
        "note: noise: standard deviation of one iteration; reaches: the largest change that the interval admits although \
         nothing changed; finds: the change that as many iterations find in 80 % of experiments; alarms: share of small \
         experiments (6 a side, cut out of this run) with p below 5 %, the sides interleaved or one after the other",
    );
    Ok(())
}
