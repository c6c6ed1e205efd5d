//! Runs to and from an archive in object storage: `perflab push`, `pull`, `sync`.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use perflab_archive::run_list::RunListEntry;
use perflab_archive::{Archive, ArchiveEntry, RunDir};
use perflab_model::{Bytes, RunStatus};
use perflab_present::comparison::{Grid, GridCell, GridColumn};
use perflab_remote::{PullOutcome, PushOutcome, PushScope, RemoteArchive, RemoteError, RemoteUrl};

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::keep::remote_choice::{RemoteChoice, choose_remote_runs, warn_of_damage};
use crate::keep::transfer_bar::TransferBar;
use crate::selection::{ChosenRuns, RunChoice};
use crate::verb::Verb;

/// Send runs to an archive in object storage
///
/// Without RUN, --label and --last all runs of the archive are sent that are not there yet. A run is sent as it is on the disk, file by
/// file, and is seen there only once all of it has arrived. What is there already is not sent again, but for labels and notes, which
/// become those of here; a push that was interrupted goes on where it was. A run that was removed there is sent only if it is named.
#[derive(Debug, Args)]
pub struct PushArgs {
    /// The runs
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    #[command(flatten)]
    pub choice: RunChoice,
    #[command(flatten)]
    pub remote: RemoteChoice,
    /// Send every file of the runs, whatever is there: repairs what was damaged there
    #[arg(long)]
    pub again: bool,
}

/// Bring runs from an archive in object storage
///
/// Without RUN, --label and --last all its runs are brought. Each file is held against the hash that it had when the run ended: a run
/// arrives as it was written, or not at all. Labels and notes of runs that are here already become those of there.
#[derive(Debug, Args)]
pub struct PullArgs {
    /// The runs, by the beginning of an id, a label or @latest, as they are called there
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    #[command(flatten)]
    pub choice: RunChoice,
    #[command(flatten)]
    pub remote: RemoteChoice,
    /// Keep nothing: only hold every file there against its hash
    #[arg(long)]
    pub check: bool,
}

/// Bring the archive and one in object storage in step
///
/// What either lacks, it gets. What was removed there is not sent again. Where a run has other labels here and there, both stay: push or
/// pull that run to say which one holds.
#[derive(Debug, Args)]
pub struct SyncArgs {
    #[command(flatten)]
    pub remote: RemoteChoice,
}

impl Verb for PushArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        push_runs(app, self)
    }
}

impl Verb for PullArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        pull_runs(app, self)
    }
}

impl Verb for SyncArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        sync_runs(app, self)
    }
}

/// Refuses an archive that would be sent to itself.
fn refuse_same_archive(app: &App, remote: &RemoteUrl) -> Result<(), Failure> {
    let is_folder = match remote {
        RemoteUrl::Folder { path } => path
            .canonicalize()
            .is_ok_and(|path| app.archive_path().canonicalize().is_ok_and(|own| own == path)),
        RemoteUrl::S3 { .. } => false,
    };
    if !is_folder && app.remote.as_ref() != Some(remote) {
        return Ok(());
    }
    Err(UsageError::new(
        format!("{remote} is the archive itself"),
        "name another one with --remote, or the archive here with --archive",
    )
    .into())
}

fn push_runs(app: &App, args: &PushArgs) -> Result<Exit, Failure> {
    refuse_same_archive(app, &args.remote.remote)?;
    let archive = app.archive()?;
    let runs = match args.runs.is_empty() {
        true => closed_runs(&archive, args.choice.list_runs(&archive)?)?,
        false => {
            let mut named = BTreeMap::new();
            for selector in &args.runs {
                named.extend(archive.find_runs(selector)?.into_iter().map(|run| (run.id().to_owned(), run)));
            }
            named.into_values().collect()
        }
    };
    let mut remote = RemoteArchive::open_or_create(&args.remote.remote)?;
    warn_of_damage(&remote);
    let mut table = TransferTable::new();
    let scope = match (args.again, args.runs.is_empty()) {
        (true, _) => PushScope::Everything,
        (false, false) => PushScope::Removed,
        (false, true) => PushScope::New,
    };
    let result = push_into(app, &mut remote, &runs, scope, &mut table);
    table.print(app)?;
    result?;
    Ok(Exit::Fine)
}

fn push_into(
    app: &App,
    remote: &mut RemoteArchive,
    runs: &[RunDir],
    scope: PushScope,
    table: &mut TransferTable,
) -> Result<(), RemoteError> {
    let bar = TransferBar::new(app.quiet, "pushing", TransferBar::bytes_of(runs));
    remote.push_runs(runs, scope, &|bytes| bar.add(bytes), |run, outcome| {
        let label = run.manifest().ok().and_then(|manifest| manifest.label);
        let (what, bytes) = match outcome {
            PushOutcome::Pushed { bytes, .. } => ("pushed", Some(bytes)),
            PushOutcome::Updated => ("label and notes pushed", None),
            PushOutcome::AlreadyThere => ("there already", None),
            PushOutcome::WasRemoved => ("was removed there", None),
            PushOutcome::Unreadable => ("damaged here, or being recorded", None),
        };
        table.add(run.id(), label.as_deref(), what, bytes);
    })
}

/// The runs of a choice that have ended; of those that cannot be read or are being recorded a warning says so.
fn closed_runs(archive: &Archive, chosen: ChosenRuns) -> Result<Vec<RunDir>, Failure> {
    let is_closed = |entry: &&ArchiveEntry| match &entry.summary {
        Ok(summary) => summary.status != RunStatus::Running,
        Err(reason) => {
            stderr_line!("warning: left out: run {}: {reason}", entry.short);
            false
        }
    };
    if let Some(error) = chosen.unknown_label {
        return Err(error.into());
    }
    Ok(chosen.runs.iter().filter(is_closed).map(|entry| archive.open_run(entry)).collect())
}

fn pull_runs(app: &App, args: &PullArgs) -> Result<Exit, Failure> {
    if !args.check {
        refuse_same_archive(app, &args.remote.remote)?;
    }
    let scratch = tempfile::tempdir()
        .map_err(|source| RemoteError::Local { what: "make a temporary folder".into(), source })?;
    let archive = match args.check {
        true => Archive::open(scratch.path())?,
        false => app.archive()?,
    };
    let remote = RemoteArchive::open(&args.remote.remote)?;
    warn_of_damage(&remote);
    let chosen = choose_remote_runs(&remote, &args.runs, &args.choice)?;
    let mut table = TransferTable::new();
    let result = pull_into(app, &remote, &chosen, &archive, args.check, &mut table);
    table.print(app)?;
    result?;
    Ok(Exit::Fine)
}

fn pull_into(
    app: &App,
    remote: &RemoteArchive,
    chosen: &[RunListEntry],
    archive: &Archive,
    check: bool,
    table: &mut TransferTable,
) -> Result<(), RemoteError> {
    let is_lacking = |entry: &&RunListEntry| check || !archive.run_path(&entry.id).is_dir();
    let bytes = chosen.iter().filter(is_lacking).map(|entry| entry.bytes.unsigned_abs()).sum();
    let bar = TransferBar::new(app.quiet, if check { "checking" } else { "pulling" }, bytes);
    let mut first_error = None;
    for entry in chosen {
        let count = |bytes| bar.add(bytes);
        let pulled = match check {
            true => remote.check_run(&entry.id, archive, &count),
            false => remote.pull_run(&entry.id, archive, &count),
        };
        let (what, bytes) = match pulled {
            Ok(PullOutcome::Pulled { bytes, .. }) => ("pulled", Some(bytes)),
            Ok(PullOutcome::Updated) => ("label and notes pulled", None),
            Ok(PullOutcome::AlreadyHere) => ("here already", None),
            Ok(PullOutcome::Whole) => ("as it was written", None),
            Ok(PullOutcome::Unhashed) => ("not checked: it was interrupted, and has no hashes", None),
            // The others may be whole.
            Err(error) if error.is_about_one_run() => {
                if first_error.is_some() {
                    stderr_line!("warning: {error}");
                }
                first_error.get_or_insert(error);
                ("damaged there", None)
            }
            Err(error) => return Err(error),
        };
        table.add(&entry.id, entry.label.as_deref(), what, bytes);
    }
    first_error.map_or(Ok(()), Err)
}

fn sync_runs(app: &App, args: &SyncArgs) -> Result<Exit, Failure> {
    refuse_same_archive(app, &args.remote.remote)?;
    let archive = app.archive()?;
    let mut remote = RemoteArchive::open_or_create(&args.remote.remote)?;
    warn_of_damage(&remote);
    let mut table = TransferTable::new();
    let result = sync_both_ways(app, &archive, &mut remote, &mut table);
    table.print(app)?;
    result?;
    Ok(Exit::Fine)
}

fn sync_both_ways(
    app: &App,
    archive: &Archive,
    remote: &mut RemoteArchive,
    table: &mut TransferTable,
) -> Result<(), Failure> {
    let here = archive.list_runs()?;
    let (mut unsent, mut with_other_notes) = (Vec::new(), BTreeSet::new());
    for entry in &here {
        match (&entry.summary, remote.entry(&entry.id)) {
            (Err(reason), _) => stderr_line!("warning: left out: run {}: {reason}", entry.short),
            (Ok(summary), None) if summary.status != RunStatus::Running => {
                unsent.push(archive.open_run(entry))
            }
            (Ok(summary), Some(there)) if there.is_present && there.label != summary.label => {
                let name = |label: &Option<String>| label.as_deref().unwrap_or("nothing").to_owned();
                table.add(&entry.id, summary.label.as_deref(), "labelled otherwise there", None);
                app.note_line(&format!(
                    "run {} is labelled {} here and {} there; push or pull it to say which one holds",
                    entry.short,
                    name(&summary.label),
                    name(&there.label)
                ));
            }
            (Ok(_), Some(there)) if there.is_present => {
                let run = archive.open_run(entry);
                // Of one label, so it is the notes: both get those of the other.
                if run.hash_head()? != there.head_hash {
                    with_other_notes.insert(entry.id.clone());
                    unsent.push(run);
                }
            }
            _ => {}
        }
    }
    // What is here goes first: it has no second copy.
    push_into(app, remote, &unsent, PushScope::New, table)?;
    let is_wanted =
        |entry: &&RunListEntry| !archive.run_path(&entry.id).is_dir() || with_other_notes.contains(&entry.id);
    let lacking: Vec<RunListEntry> = remote.runs().filter(is_wanted).cloned().collect();
    pull_into(app, remote, &lacking, archive, false, table)?;
    Ok(())
}

/// What became of each run.
struct TransferTable {
    grid: Grid,
    counts: BTreeMap<&'static str, usize>,
    bytes: u64,
}

impl TransferTable {
    fn new() -> Self {
        let columns = ["run", "label", "what was done"].map(GridColumn::left);
        TransferTable {
            grid: Grid::new(columns.into_iter().chain([GridColumn::right("size")])),
            counts: BTreeMap::new(),
            bytes: 0,
        }
    }

    fn add(&mut self, id: &str, label: Option<&str>, what: &'static str, bytes: Option<u64>) {
        *self.counts.entry(what).or_default() += 1;
        self.bytes += bytes.unwrap_or(0);
        let size = bytes
            .map_or_else(GridCell::missing, |bytes| GridCell::with_text(Bytes(bytes).to_string(), bytes));
        self.grid.add_row([
            id.into(),
            label.map_or_else(GridCell::missing, GridCell::from),
            what.into(),
            size,
        ]);
    }

    fn print(&self, app: &App) -> Result<(), Failure> {
        app.print_grid(&self.grid)?;
        let counts: Vec<String> = self.counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
        app.note(match counts.is_empty() {
            true => "nothing to do".to_owned(),
            false => format!("{}; {}", counts.join(", "), Bytes(self.bytes)),
        });
        Ok(())
    }
}
