//! `perflab prefetch status`

use std::cmp::Reverse;
use std::collections::HashMap;

use anyhow::Context as _;
use jiff::Timestamp;
use perflab_model::{Bytes, Nanos};
use perflab_prefetch::TraceStore;
use perflab_prefetch::daemon::{self, DaemonStatus, ProgramRecord, ProgramState, ProgramStatus};
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use serde_json::{Value, json};

use crate::arguments::prefetch;
use crate::context::App;
use crate::exit::Exit;

/// Asks the daemon; where none is, shows what the last one wrote.
pub fn show_daemon_status(
    context: &App,
    store: &TraceStore,
    wanted: &prefetch::PrefetchStatusArgs,
) -> anyhow::Result<Exit> {
    let asked = daemon::service::read_status(&wanted.socket);
    let daemon = match asked {
        Ok(status) => {
            note_daemon_status(context, &status);
            Some(status)
        }
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(error)
                .with_context(|| format!("{} is its daemon's user's alone", wanted.socket.display()));
        }
        Err(error) => {
            context.note(format!(
                "no daemon answers on {}: {error}; as the last one wrote:",
                wanted.socket.display()
            ));
            None
        }
    };
    let answers = daemon.is_some();
    let before = || DaemonStatus {
        programs: daemon::read_programs_file(store, &|text| context.note(text)),
        ..DaemonStatus::default()
    };
    let status = daemon.unwrap_or_else(before);
    let grid = program_status_grid(&status, select_shown_programs(context, &status, wanted.all));
    if context.format == OutputFormat::Json {
        context.print_json(&status_json(&status, answers, &grid)?)?;
    } else {
        context.print_grid(&grid)?;
    }
    Ok(Exit::Fine)
}

/// The daemon's own facts, where one answers, and its programs as the table has them.
fn status_json(status: &DaemonStatus, answers: bool, grid: &Grid) -> anyhow::Result<Value> {
    let mut daemon = serde_json::to_value(status)?;
    if let Some(facts) = daemon.as_object_mut() {
        facts.remove("programs");
    }
    let daemon = if answers { daemon } else { Value::Null };
    Ok(json!({ "daemon": daemon, "programs": grid.records() }))
}

fn note_daemon_status(context: &App, status: &DaemonStatus) {
    let since = Timestamp::from_second(status.since.try_into().unwrap_or_default());
    let since = since.map(|since| since.to_string()).unwrap_or_default();
    let places: Vec<String> = status.watched.iter().map(|place| place.display().to_string()).collect();
    context.note(format!("daemon {} since {since}, on {}", status.pid, places.join(" ")));
    context
        .note(format!("starts are judged by {}; none waits longer than {}", status.judged_by, status.bound));
    context.note(format!(
        "asked {} times; {} not looked at in storms, {} let through by the clock; {} of CPU, {} at most",
        status.asked,
        status.unseen,
        status.overdue,
        Nanos(status.cpu),
        Bytes(status.peak_rss),
    ));
    let guard = &status.guard;
    context.note(format!(
        "process {} guards execs while the daemon does not answer: {} let through, {} of memory locked, started again {} times",
        guard.pid,
        guard.let_through,
        Bytes(guard.locked),
        guard.restarts,
    ));
    for lack in &guard.lacks {
        context.note(format!("of the guard: {lack}"));
    }
    for trouble in &status.troubles {
        context.note(format!("trouble: {trouble}"));
    }
}

/// Programs that are listed where not all are asked for.
const LISTED: usize = 20;

/// Those for which most was read ahead, then those with most starts; all where they are asked for, or a tool reads them.
fn select_shown_programs<'a>(context: &App, status: &'a DaemonStatus, all: bool) -> Vec<&'a ProgramStatus> {
    let mut programs: Vec<_> = status.programs.iter().collect();
    if all || context.format == OutputFormat::Json || programs.len() <= LISTED {
        return programs;
    }
    programs.sort_by_key(|one| Reverse((one.program.ahead.bytes, one.program.starts)));
    context.note(format!("{LISTED} of {} programs; `--all` lists the rest", programs.len()));
    programs.truncate(LISTED);
    programs
}

fn program_status_grid(status: &DaemonStatus, programs: Vec<&ProgramStatus>) -> Grid {
    let (without, with) = match status.delays {
        true => ("waited without", "with"),
        false => ("read without", "with"),
    };
    let numbers =
        ["starts", "learnt", "ahead", "warm", "asked for", "used", without, with].map(GridColumn::right);
    let names = user_names();
    let titles = ["program", "user", "stands"].map(GridColumn::left).into_iter().chain(numbers);
    let mut grid = Grid::new(titles.chain([GridColumn::left("why")]));
    for ProgramStatus { key, program } in programs {
        let user = names.get(&key.user).cloned().unwrap_or_else(|| key.user.to_string());
        let [without, with] =
            program.median_costs(status.delays).map(|cost| replay_cost_cell(cost, status.delays));
        grid.add_row([
            key.path.display().to_string().into(),
            GridCell::with_text(user, u64::from(key.user)),
            program_state_word(program).into(),
            program.starts.into(),
            program.learned.into(),
            program.ahead.starts.into(),
            program.ahead.warm.into(),
            GridCell::with_text(Bytes(program.ahead.bytes).to_string(), program.ahead.bytes),
            used_share_cell(program),
            without,
            with,
            program.why.as_str().into(),
        ]);
    }
    grid
}

fn replay_cost_cell(cost: Option<u64>, delays: bool) -> GridCell {
    let shown = |cost: u64| if delays { Nanos(cost).to_string() } else { Bytes(cost).to_string() };
    cost.map_or_else(GridCell::missing, |cost| GridCell::with_text(shown(cost), cost))
}

/// How much of what was asked for lay in files that the starts opened.
fn used_share_cell(program: &ProgramRecord) -> GridCell {
    match program.ahead.judged {
        0 => GridCell::missing(),
        judged => GridCell::with_text(format!("{} %", program.ahead.used * 100 / judged), program.ahead.used),
    }
}

/// Names of this machine's own users.
fn user_names() -> HashMap<u32, String> {
    let text = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let entry = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        Some((fields.nth(1)?.parse().ok()?, name))
    };
    text.lines().filter_map(entry).collect()
}

fn program_state_word(program: &ProgramRecord) -> &'static str {
    match program.standing {
        ProgramState::Watched => "watched",
        ProgramState::Worth => "to be learnt",
        ProgramState::Known => "read ahead",
        ProgramState::Incomplete => "to be completed",
        ProgramState::Useless => "left alone",
    }
}
