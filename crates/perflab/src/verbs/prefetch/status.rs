//! `perflab prefetch status`

use std::cmp::Reverse;
use std::collections::HashMap;

use anyhow::Context as _;
use jiff::Timestamp;
use perflab_model::{Bytes, Nanos};
use perflab_prefetch::Store;
use perflab_prefetch::daemon::{self, KnownProgram, Program, Standing, Status};
use perflab_present::table::{Cell, Column, Format, Grid};
use serde_json::{Value, json};

use crate::arguments::prefetch;
use crate::context::Context;
use crate::exit::Exit;

/// Asks the daemon; where none is, shows what the last one wrote.
pub fn status(context: &Context, store: &Store, wanted: &prefetch::Status) -> anyhow::Result<Exit> {
    let asked = daemon::status::ask(&wanted.socket);
    let daemon = match asked {
        Ok(status) => {
            say(context, &status);
            Some(status)
        }
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(error)
                .with_context(|| format!("{} is its daemon's user's alone", wanted.socket.display()));
        }
        Err(error) => {
            context.say(format!(
                "no daemon answers on {}: {error}; as the last one wrote:",
                wanted.socket.display()
            ));
            None
        }
    };
    let answers = daemon.is_some();
    let before = || Status { programs: daemon::saved(store, &|text| context.say(text)), ..Status::default() };
    let status = daemon.unwrap_or_else(before);
    let grid = grid(&status, shown(context, &status, wanted.all));
    if context.format == Format::Json {
        context.document(&document(&status, answers, &grid)?)?;
    } else {
        context.print(&grid)?;
    }
    Ok(Exit::Fine)
}

/// The daemon's own facts, where one answers, and its programs as the table has them.
fn document(status: &Status, answers: bool, grid: &Grid) -> anyhow::Result<Value> {
    let mut daemon = serde_json::to_value(status)?;
    if let Some(facts) = daemon.as_object_mut() {
        facts.remove("programs");
    }
    let daemon = if answers { daemon } else { Value::Null };
    Ok(json!({ "daemon": daemon, "programs": grid.records() }))
}

fn say(context: &Context, status: &Status) {
    let since = Timestamp::from_second(status.since.try_into().unwrap_or_default());
    let since = since.map(|since| since.to_string()).unwrap_or_default();
    let places: Vec<String> = status.watched.iter().map(|place| place.display().to_string()).collect();
    context.say(format!("daemon {} since {since}, on {}", status.pid, places.join(" ")));
    context
        .say(format!("starts are judged by {}; none waits longer than {}", status.judged_by, status.bound));
    context.say(format!(
        "asked {} times; {} not looked at in storms, {} let through by the clock; {} of CPU, {} at most",
        status.asked,
        status.unseen,
        status.overdue,
        Nanos(status.cpu),
        Bytes(status.peak_rss),
    ));
    let guard = &status.guard;
    context.say(format!(
        "process {} guards execs while the daemon does not answer: {} let through, {} of memory locked, started again {} times",
        guard.pid,
        guard.let_through,
        Bytes(guard.locked),
        guard.restarts,
    ));
    for lack in &guard.lacks {
        context.say(format!("of the guard: {lack}"));
    }
    for trouble in &status.troubles {
        context.say(format!("trouble: {trouble}"));
    }
}

/// Programs that are listed where not all are asked for.
const LISTED: usize = 20;

/// Those for which most was read ahead, then those with most starts; all where they are asked for, or a tool reads them.
fn shown<'a>(context: &Context, status: &'a Status, all: bool) -> Vec<&'a KnownProgram> {
    let mut programs: Vec<_> = status.programs.iter().collect();
    if all || context.format == Format::Json || programs.len() <= LISTED {
        return programs;
    }
    programs.sort_by_key(|one| Reverse((one.program.ahead.bytes, one.program.starts)));
    context.say(format!("{LISTED} of {} programs; `--all` lists the rest", programs.len()));
    programs.truncate(LISTED);
    programs
}

fn grid(status: &Status, programs: Vec<&KnownProgram>) -> Grid {
    let (without, with) = match status.delays {
        true => ("waited without", "with"),
        false => ("read without", "with"),
    };
    let numbers =
        ["starts", "learnt", "ahead", "warm", "asked for", "used", without, with].map(Column::right);
    let names = user_names();
    let titles = ["program", "user", "stands"].map(Column::left).into_iter().chain(numbers);
    let mut grid = Grid::new(titles.chain([Column::left("why")]));
    for KnownProgram { key, program } in programs {
        let user = names.get(&key.user).cloned().unwrap_or_else(|| key.user.to_string());
        let [without, with] = program.gain(status.delays).map(|cost| cell(cost, status.delays));
        grid.add([
            key.path.display().to_string().into(),
            Cell::shown(user, u64::from(key.user)),
            stands(program).into(),
            program.starts.into(),
            program.learned.into(),
            program.ahead.starts.into(),
            program.ahead.warm.into(),
            Cell::shown(Bytes(program.ahead.bytes).to_string(), program.ahead.bytes),
            used(program),
            without,
            with,
            program.why.as_str().into(),
        ]);
    }
    grid
}

fn cell(cost: Option<u64>, delays: bool) -> Cell {
    let shown = |cost: u64| if delays { Nanos(cost).to_string() } else { Bytes(cost).to_string() };
    cost.map_or_else(Cell::missing, |cost| Cell::shown(shown(cost), cost))
}

/// How much of what was asked for lay in files that the starts opened.
fn used(program: &Program) -> Cell {
    match program.ahead.judged {
        0 => Cell::missing(),
        judged => Cell::shown(format!("{} %", program.ahead.used * 100 / judged), program.ahead.used),
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

fn stands(program: &Program) -> &'static str {
    match program.standing {
        Standing::Watched => "watched",
        Standing::Worth => "to be learnt",
        Standing::Known => "read ahead",
        Standing::Incomplete => "to be completed",
        Standing::Useless => "left alone",
    }
}
