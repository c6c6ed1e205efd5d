//! A verb on an archive in object storage: it reads and writes this machine's copy.
//!
//! Before it, the copy gets what others pushed; after it, what the verb changed goes there. A run is on this disk first, so that a dead
//! network loses nothing.

use std::collections::BTreeSet;
use std::fs::File;

use perflab_archive::{Archive, RunDir};
use perflab_model::error_class::{Classify as _, ErrorClass};
use perflab_model::{Bytes, RunStatus};
use perflab_remote::{PullOutcome, PushOutcome, PushScope, RemoteArchive, RemoteError, RemoteUrl};

use crate::app::App;
use crate::failure::{Exit, Failure};
use crate::keep::remote_choice::warn_of_damage;
use crate::keep::transfer_bar::TransferBar;
use crate::verb::{VerbEntry, VerbGroup};

/// What a verb does to the runs that an archive already has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VerbEffect {
    /// it adds some, or none
    Adds,
    /// it changes labels or notes
    Relabels,
    /// it removes some
    Removes,
}

fn verb_effect(verb: &VerbEntry) -> VerbEffect {
    match verb.name {
        "label" | "serve" => VerbEffect::Relabels,
        "rm" | "prune" => VerbEffect::Removes,
        _ => VerbEffect::Adds,
    }
}

/// Carries out a verb on the copy of an archive in object storage, between bringing the copy up to date and sending back what the verb
/// changed.
///
/// # Errors
/// The verb's own; a server that refuses or does not answer, where the copy alone does not do.
pub fn run_on_copy(
    app: &App,
    url: &RemoteUrl,
    verb: &VerbEntry,
    run: impl FnOnce() -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let effect = verb_effect(verb);
    let archive = Archive::open(app.archive_path())?;
    // Another verb of this machine would take what this one changes for what was changed there, and put it back.
    let mut lock = Some(lock_copy(&archive)?);
    let mut there = match open_and_update(app, url, &archive) {
        Ok(there) => there,
        Err(error) => {
            // Without an answer there is still what this machine has, but for verbs whose work is there.
            let does_copy_do = effect == VerbEffect::Adds
                && error.class() == ErrorClass::Environment
                && (is_recording(verb) || !list_ids(&archive)?.is_empty());
            if !does_copy_do {
                return Err(error.into());
            }
            stderr_line!("warning: {error}");
            stderr_line!("warning: going on with the copy in {}", archive.path().display());
            RemoteState::Silent
        }
    };
    let before = list_ids(&archive)?;
    let is_short = effect != VerbEffect::Adds && verb.name != "serve";
    if !is_short {
        lock = None;
    }
    let ended = run();
    if lock.is_none() {
        lock = Some(lock_copy(&archive)?);
    }
    let gone: Vec<String> = match effect {
        VerbEffect::Removes => before.difference(&list_ids(&archive)?).cloned().collect(),
        VerbEffect::Adds | VerbEffect::Relabels => Vec::new(),
    };
    if matches!(there, RemoteState::Silent) && !is_recording(verb) {
        // It would be silent once more, and there was a warning.
        return ended;
    }
    let sent = send_back(app, url, &archive, &mut there, effect, &gone);
    drop(lock);
    match (ended, sent) {
        (Ok(Exit::Fine), Err(error)) if is_recording(verb) || effect != VerbEffect::Adds => Err(error),
        (Ok(Exit::Fine), Err(error)) => {
            // What was asked for was done; what this machine has and the archive lacks stays here.
            stderr_line!("warning: {error}");
            Ok(Exit::Fine)
        }
        (ended, sent) => {
            if let Err(error) = sent {
                error.print();
            }
            ended
        }
    }
}

/// The lock of a copy, which one process at a time has while it brings the copy and the archive in step; gone with the file.
fn lock_copy(archive: &Archive) -> Result<File, Failure> {
    let path = archive.path().join("remote.lock");
    let locked = std::fs::create_dir_all(archive.path()).and_then(|()| {
        let file = File::options().write(true).create(true).truncate(false).open(&path)?;
        file.lock()?;
        Ok(file)
    });
    let what = format!("lock {}", path.display());
    Ok(locked.map_err(|source| RemoteError::Local { what, source })?)
}

/// What is known of an archive in object storage before a verb.
enum RemoteState {
    /// it answers; of these runs the copy has notes that it lacks
    Open(Box<RemoteArchive>, BTreeSet<String>),
    /// it answers, and there is none yet
    Missing,
    /// it does not answer
    Silent,
}

/// In the copy: the id of the archive that it is of, once that was seen.
const KNOWN: &str = "remote.known";

fn read_known(copy: &Archive) -> Option<String> {
    std::fs::read_to_string(copy.path().join(KNOWN)).ok()
}

fn gone_error(url: &RemoteUrl, copy: &Archive) -> RemoteError {
    RemoteError::Gone { url: url.clone(), known: copy.path().join(KNOWN) }
}

/// Refuses another archive than that which the copy is of; notes it, where none is noted yet.
fn note_known(url: &RemoteUrl, copy: &Archive, remote: &RemoteArchive) -> Result<(), RemoteError> {
    match read_known(copy) {
        Some(known) if known == remote.id() => Ok(()),
        Some(_) => Err(gone_error(url, copy)),
        None => {
            let path = copy.path().join(KNOWN);
            let what = format!("write {}", path.display());
            std::fs::write(path, remote.id()).map_err(|source| RemoteError::Local { what, source })
        }
    }
}

/// Whether a verb makes runs, and has something to do where there are none.
fn is_recording(verb: &VerbEntry) -> bool {
    matches!(verb.group, VerbGroup::Measure | VerbGroup::LookInto)
        || matches!(verb.name, "import" | "queued-run")
}

fn list_ids(archive: &Archive) -> Result<BTreeSet<String>, Failure> {
    Ok(archive.list_runs()?.into_iter().map(|entry| entry.id).collect())
}

/// Pulls what the copy lacks, and removes from it what was removed there.
fn open_and_update(app: &App, url: &RemoteUrl, archive: &Archive) -> Result<RemoteState, RemoteError> {
    let remote = match RemoteArchive::open(url) {
        // A folder that is not mounted looks like one that nothing was pushed to yet.
        Err(RemoteError::NoArchive { .. }) if read_known(archive).is_some() => {
            return Err(gone_error(url, archive));
        }
        // The first run makes it.
        Err(RemoteError::NoArchive { .. }) => return Ok(RemoteState::Missing),
        opened => opened?,
    };
    note_known(url, archive, &remote)?;
    warn_of_damage(&remote);
    let mut held = BTreeSet::new();
    for entry in archive.list_runs()? {
        match remote.entry(&entry.id) {
            Some(there) if !there.is_present => archive.remove_run(&entry.id)?,
            _ => {
                held.insert(entry.id);
            }
        }
    }
    let lacking = remote.runs().filter(|entry| !held.contains(&entry.id));
    let bytes: u64 = lacking.map(|entry| entry.bytes.unsigned_abs()).sum();
    let bar = TransferBar::new(app.quiet, "pulling", bytes);
    let (mut pulled, mut relabelled, mut with_own_notes) = (0, 0, BTreeSet::new());
    for entry in remote.runs() {
        match remote.pull_run(&entry.id, archive, &|bytes| bar.add(bytes)) {
            Ok(PullOutcome::Pulled { .. }) => pulled += 1,
            Ok(PullOutcome::Updated) => {
                let run = RunDir::open(&archive.run_path(&entry.id))?;
                if run.hash_head()? == entry.head_hash {
                    relabelled += 1;
                } else {
                    with_own_notes.insert(entry.id.clone());
                }
            }
            Ok(PullOutcome::AlreadyHere | PullOutcome::Whole | PullOutcome::Unhashed) => {}
            // One that is damaged must not hide the others.
            Err(error) if error.is_about_one_run() => {
                stderr_line!("warning: run {} is left out: {error}", entry.id);
            }
            Err(error) => return Err(error),
        }
    }
    drop(bar);
    if pulled + relabelled > 0 {
        app.note(format!("{url}: {pulled} runs pulled ({}), {relabelled} changed", Bytes(bytes)));
    }
    Ok(RemoteState::Open(Box::new(remote), with_own_notes))
}

/// Pushes what the archive there lacks, and what the verb changed.
fn send_back(
    app: &App,
    url: &RemoteUrl,
    archive: &Archive,
    there: &mut RemoteState,
    effect: VerbEffect,
    gone: &[String],
) -> Result<(), Failure> {
    let mut runs = Vec::new();
    for entry in archive.list_runs()? {
        let is_closed = entry.summary.as_ref().is_ok_and(|run| run.status != RunStatus::Running);
        let is_listed = match there {
            RemoteState::Open(remote, with_own_notes) => {
                remote.entry(&entry.id).is_some() && !with_own_notes.contains(&entry.id)
            }
            RemoteState::Missing | RemoteState::Silent => false,
        };
        if is_closed && (!is_listed || effect == VerbEffect::Relabels) {
            runs.push(archive.open_run(&entry));
        }
    }
    if runs.is_empty() && gone.is_empty() {
        return Ok(());
    }
    let mut send = || -> Result<(usize, u64), RemoteError> {
        if !matches!(there, RemoteState::Open(..)) {
            let opened = match read_known(archive) {
                Some(_) => RemoteArchive::open(url).map_err(|error| match error {
                    RemoteError::NoArchive { .. } => gone_error(url, archive),
                    other => other,
                })?,
                None => RemoteArchive::open_or_create(url)?,
            };
            note_known(url, archive, &opened)?;
            *there = RemoteState::Open(Box::new(opened), BTreeSet::new());
        }
        let RemoteState::Open(remote, _) = there else { return Ok((0, 0)) };
        // It may have gone while the verb ran.
        if !remote.is_still_there()? {
            return Err(gone_error(url, archive));
        }
        remote.remove_runs(gone)?;
        push_with_bar(app, remote, &runs)
    };
    match send() {
        Ok((0, _)) if gone.is_empty() => Ok(()),
        Ok((sent, bytes)) => {
            app.note(format!("{url}: {sent} runs pushed ({}), {} removed", Bytes(bytes), gone.len()));
            Ok(())
        }
        Err(error) => {
            match effect {
                VerbEffect::Adds => {
                    let copy = archive.path().display();
                    stderr_line!(
                        "warning: what could not be sent is in {copy}; the next verb on {url} sends it"
                    );
                }
                VerbEffect::Relabels | VerbEffect::Removes => {
                    stderr_line!("warning: {url} is not changed; repeat this verb once it answers");
                }
            }
            Err(error.into())
        }
    }
}

/// Pushes runs, those that are not there yet; gives how many and their bytes.
fn push_with_bar(
    app: &App,
    remote: &mut RemoteArchive,
    runs: &[RunDir],
) -> Result<(usize, u64), RemoteError> {
    let bar = TransferBar::new(app.quiet, "pushing", TransferBar::bytes_of(runs));
    let (mut sent, mut bytes) = (0, 0);
    remote.push_runs(runs, PushScope::New, &|bytes| bar.add(bytes), |_, outcome| match outcome {
        PushOutcome::Pushed { bytes: run, .. } => {
            sent += 1;
            bytes += run;
        }
        PushOutcome::Updated => sent += 1,
        PushOutcome::AlreadyThere | PushOutcome::WasRemoved | PushOutcome::Unreadable => {}
    })?;
    Ok((sent, bytes))
}
