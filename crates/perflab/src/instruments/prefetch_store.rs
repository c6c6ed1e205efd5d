//! What is stored about programs: `perflab prefetch show`, `forget`, `status`; and what a startup trace would bring,
//! for `perflab io coverage`.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use perflab_model::io_trace::{DeviceNumber, PAGE, SECTOR};
use perflab_model::{Bytes, Nanos, PageSet};
use perflab_observe::io::MountTable;
use perflab_prefetch::daemon::{self, DaemonStatus, ProgramRecord, ProgramState, ProgramStatus};
use perflab_prefetch::{
    CombinePolicy, PrefetchError, ProgramTraces, StartupTrace, TraceSource, TraceStore, combine_traces,
    trace_store,
};
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use serde_json::{Value, json};

use crate::app::{App, named_parser};
use crate::failure::{Exit, Failure, FailureContext as _, UsageError};

/// Where the daemon can be asked.
pub(crate) const SOCKET: &str = "/run/perflab/prefetch.socket";

/// `perflab prefetch show`
#[derive(Debug, Args)]
pub struct PrefetchShowArgs {
    /// The program, the script, or the name it is remembered under (default: all)
    pub program: Option<OsString>,
    /// How the remembered starts are combined
    #[arg(long, value_name = "POLICY", value_parser = named_parser::<CombinePolicy>(), default_value = "last")]
    pub policy: CombinePolicy,
}

/// `perflab prefetch forget`
#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// The programs
    #[arg(required = true, value_name = "PROGRAM")]
    pub programs: Vec<OsString>,
}

/// `perflab prefetch status`
#[derive(Debug, Args)]
pub struct PrefetchStatusArgs {
    /// List all programs, not only the twenty with most read ahead (JSON always lists all)
    #[arg(long)]
    pub all: bool,
    /// The socket of the daemon
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    pub socket: PathBuf,
}

/// A program is known, and none of its starts.
pub(crate) fn nothing_remembered_error() -> UsageError {
    UsageError::new("no start is remembered", "`perflab prefetch learn -- COMMAND` remembers one")
}

/// Prints all programs, or the files of one.
pub fn show_traces(context: &App, store: &TraceStore, args: &PrefetchShowArgs) -> Result<Exit, Failure> {
    match &args.program {
        Some(program) => {
            let known = store.read_trace(&store.resolve_name(program))?;
            let start = combine_traces(&known, args.policy).ok_or_else(nothing_remembered_error)?;
            context.print_grid(&traced_file_grid(&start))?;
        }
        None => context.print_grid(&traced_program_grid(store))?,
    }
    Ok(Exit::Fine)
}

/// Forgets programs.
pub fn forget_programs(context: &App, store: &TraceStore, args: &ForgetArgs) -> Result<Exit, Failure> {
    let mut grid = Grid::new(["program", "is now"].map(GridColumn::left));
    for program in &args.programs {
        // A program that is not there any more can still be forgotten.
        let path = store.resolve_name(program);
        let word = if store.forget(&path)? { "forgotten" } else { "was not known" };
        grid.add_row([path.display().to_string().into(), word.into()]);
    }
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

fn traced_pages_cell(pages: u64) -> GridCell {
    GridCell::with_text(Bytes(pages * PAGE).to_string(), pages * PAGE)
}

fn traced_program_grid(store: &TraceStore) -> Grid {
    let numbers = ["starts", "files", "data", "metadata"].map(GridColumn::right);
    let titles = std::iter::once(GridColumn::left("program")).chain(numbers);
    let mut grid = Grid::new(titles.chain(["known by", "last"].map(GridColumn::left)));
    for path in store.trace_paths() {
        match trace_store::read_trace_file(&path) {
            Ok(known) => add_program_rows(&mut grid, &known),
            Err(error) => stderr_line!("warning: {error}"),
        }
    }
    grid
}

fn add_program_rows(grid: &mut Grid, known: &ProgramTraces) {
    let Some(last) = known.starts.last() else { return };
    let when = Timestamp::from_second(last.when.try_into().unwrap_or_default());
    grid.add_row([
        known.program.as_str().into(),
        known.starts.len().into(),
        last.files.len().into(),
        traced_pages_cell(last.page_count()),
        traced_pages_cell(last.metadata_page_count()),
        match last.source {
            TraceSource::Traced => "tracing".into(),
            TraceSource::Residency => "residency".into(),
        },
        when.map(|when| when.to_string()).unwrap_or_default().into(),
    ]);
}

fn traced_file_grid(start: &StartupTrace) -> Grid {
    let numbers = ["data", "pieces", "inode", "on disk at"].map(GridColumn::right);
    let titles = [GridColumn::left("file")].into_iter().chain(numbers).chain([GridColumn::left("is now")]);
    let mut grid = Grid::new(titles);
    for file in &start.files {
        let place = file.place.map(|place| GridCell::with_text(Bytes(place).to_string(), place));
        grid.add_row([
            file.path.as_str().into(),
            traced_pages_cell(file.pages.page_count()),
            file.pages.iter().len().into(),
            file.inode.into(),
            place.unwrap_or_else(GridCell::missing),
            traced_file_state(file).into(),
        ]);
    }
    for system in start.systems.iter().filter(|system| !system.metadata.is_empty()) {
        let name = format!("{} on {}", system.kind, system.place);
        grid.add_row([
            name.into(),
            traced_pages_cell(system.metadata.page_count()),
            system.metadata.iter().len().into(),
        ]);
    }
    grid
}

fn traced_file_state(traced: &perflab_prefetch::TracedFile) -> &'static str {
    match perflab_observe::io::describe_file(Path::new(&traced.path)) {
        None => "gone",
        Some(now) if now.inode != traced.inode => "another",
        Some(now) if (now.size, now.changed) != (traced.size, traced.changed) => "changed",
        Some(_) => "the same",
    }
}

/// Asks the daemon; where none is, shows what the last one wrote.
pub fn show_daemon_status(
    context: &App,
    store: &TraceStore,
    args: &PrefetchStatusArgs,
) -> Result<Exit, Failure> {
    let asked = daemon::service::read_status(&args.socket);
    let daemon = match asked {
        Ok(status) => {
            note_daemon_status(context, &status);
            Some(status)
        }
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(error).with_context(|| {
                format!("{} is accessible only to the user of its daemon", args.socket.display())
            });
        }
        Err(error) => {
            context.note(format!(
                "no daemon answers on {}: {error}; this is what the last one wrote:",
                args.socket.display()
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
    let grid = program_status_grid(&status, select_shown_programs(context, &status, args.all));
    if context.format == OutputFormat::Json {
        context.print_json(&status_json(&status, answers, &grid)?)?;
    } else {
        context.print_grid(&grid)?;
    }
    Ok(Exit::Fine)
}

/// The daemon's own facts, where one answers, and its programs as the table has them.
fn status_json(status: &DaemonStatus, answers: bool, grid: &Grid) -> Result<Value, Failure> {
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
        "{} execs; {} passed unseen in storms, {} passed by the time limit; {} of CPU, at most {} of memory",
        status.asked,
        status.unseen,
        status.overdue,
        Nanos(status.cpu),
        Bytes(status.peak_rss),
    ));
    let guard = &status.guard;
    context.note(format!(
        "process {} guards execs while the daemon does not answer: {} passed, {} of memory locked, {} restarts",
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

/// Those for which most was read ahead, then those with most startups; all where they are asked for, or a tool reads them.
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
    let titles = ["program", "user", "state"].map(GridColumn::left).into_iter().chain(numbers);
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
            program.why.to_string().into(),
        ]);
    }
    grid
}

fn replay_cost_cell(cost: Option<u64>, delays: bool) -> GridCell {
    let shown = |cost: u64| if delays { Nanos(cost).to_string() } else { Bytes(cost).to_string() };
    cost.map_or_else(GridCell::missing, |cost| GridCell::with_text(shown(cost), cost))
}

/// How much of what was asked for lay in files that the startups opened.
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
    match program.state {
        ProgramState::Watched => "watched",
        ProgramState::Worth => "to be learnt",
        ProgramState::Known => "read ahead",
        ProgramState::Incomplete => "to be completed",
        ProgramState::Useless => "left alone",
    }
}

/// Pages and sectors of a trace: of a file, or of a program in the usual store.
pub fn read_known_pages(trace: &Path) -> Result<perflab_analyze::TraceContents, Failure> {
    let found = match trace_store::read_trace_file(trace) {
        Ok(known) => known,
        Err(error) => {
            let store = TraceStore::locate(None);
            let program = store.resolve_name(trace.as_os_str());
            // A file that is no trace is named as such, unless it is a program.
            match store.read_trace(&program) {
                Err(PrefetchError::Unknown { .. })
                    if trace_store::find_program_path(trace.as_os_str()).is_err() =>
                {
                    return Err(error.into());
                }
                known => known?,
            }
        }
    };
    let start = combine_traces(&found, CombinePolicy::Last);
    let mut known = perflab_analyze::TraceContents::default();
    let Some(start) = start else { return Ok(known) };
    // Devices may have other numbers by now: they are those of where the file systems are mounted.
    let mounts = MountTable::read();
    let now = |place: &str| Some(mounts.find_by_path(Path::new(place))?.device);
    let devices: HashMap<usize, DeviceNumber> = start
        .systems
        .iter()
        .enumerate()
        .map(|(at, system)| (at, now(&system.place).unwrap_or(system.device)))
        .collect();
    for file in start.files {
        let device = devices.get(&file.system).copied().unwrap_or_default();
        known.files.insert((device, file.inode), file.pages);
    }
    for (at, system) in start.systems.iter().enumerate() {
        let device = devices.get(&at).copied().unwrap_or_default();
        let (disk, first) = perflab_observe::mounts::partition_of_device(device)
            .map_or((device, 0), |partition| (partition.disk, partition.start / SECTOR));
        let sectors = |(page, count)| (first + page * (PAGE / SECTOR), count * (PAGE / SECTOR));
        let sectors: PageSet = system.metadata.iter().map(sectors).collect();
        let all = known.sectors.entry(disk).or_default();
        *all = all.union(&sectors);
    }
    Ok(known)
}
