//! The runs of an archive in object storage: pushed, pulled, listed, removed.
//!
//! | object | content |
//! |---|---|
//! | `archive.json` | that this is an archive, and its layout |
//! | `runs/RUN_ID/...` | the files of a run, as they are on a disk; `run.json` is written last |
//! | `lists/ULID.parquet` | what runs there are (`perflab_archive::run_list`): written once each, merged by who reads |

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use perflab_archive::run_id::is_run_id;
use perflab_archive::run_list::{MergedRunList, RunListEntry, read_run_list, write_run_list};
use perflab_archive::run_selector::SHORTEST_PREFIX;
use perflab_archive::{Archive, ArchiveError, IncomingRun, LISTED_FILES, MANIFEST, NOTES, RUNS, RunDir};
use perflab_files::sha256_hex;
use perflab_model::suggest_name;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::error::RemoteError;
use crate::object_client::{ByteCounter, ListedObject, ObjectClient};
use crate::remote_url::RemoteUrl;

const MARKER: &str = "archive.json";
const LISTS: &str = "lists";

/// The layout that this program writes, and the highest that it reads.
const LAYOUT: u32 = 1;

/// From so many lists on, a writer merges them into one: a reader asks for each.
const MOST_LISTS: usize = 24;

/// Runs whose files are there before a list says so: what a kill leaves to be looked at again.
const RUNS_A_LIST: usize = 64;

/// How often the lists are looked at again, where another writer merged them meanwhile.
const ATTEMPTS: usize = 5;

/// What `archive.json` says.
#[derive(Debug, Serialize, Deserialize)]
struct ArchiveMarker {
    layout: u32,
    writer: String,
    /// Tells it from every other archive.
    #[serde(default)]
    id: String,
}

/// What became of a run that was pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushOutcome {
    /// It is there now.
    Pushed {
        /// files that were sent; those that an earlier attempt had sent are not among them
        files: usize,
        /// their bytes
        bytes: u64,
    },
    /// It was there; its label and notes are those of here now.
    Updated,
    /// It was there, the same.
    AlreadyThere,
    /// It was removed there, and stays removed.
    WasRemoved,
    /// It is damaged here, or being recorded, and was not sent.
    Unreadable,
}

/// What of the runs that are named is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PushScope {
    /// those that were never there
    New,
    /// also those that were removed there
    Removed,
    /// every file of each, whatever is there: what was damaged there is whole afterwards
    Everything,
}

/// What became of a run that was pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullOutcome {
    /// It is here now.
    Pulled {
        /// its files
        files: usize,
        /// their bytes
        bytes: u64,
    },
    /// It was here; its label and notes are those of there now.
    Updated,
    /// It was here, the same.
    AlreadyHere,
    /// It was only looked at, and every file is as it was written.
    Whole,
    /// It was only looked at; it was never closed, so that nobody wrote down the hashes of its files.
    Unhashed,
}

/// An archive in object storage, as its lists were when it was opened.
pub struct RemoteArchive {
    client: ObjectClient,
    list: MergedRunList,
    /// Names of the lists that were merged.
    lists: BTreeSet<String>,
    /// What is wrong with lists that cannot be read, and with runs that only they can have named. A writer puts a whole one in the
    /// place of all.
    damage: Vec<RemoteError>,
    id: String,
}

impl std::fmt::Debug for RemoteArchive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteArchive").field("url", self.client.url()).finish_non_exhaustive()
    }
}

impl RemoteArchive {
    /// The archive at `url`.
    ///
    /// # Errors
    /// [`RemoteError::NoArchive`], [`RemoteError::NoBucket`], [`RemoteError::Newer`]; what the server refuses.
    pub fn open(url: &RemoteUrl) -> Result<Self, RemoteError> {
        let client = ObjectClient::open(url, false)?;
        match read_marker(&client)? {
            Some(marker) => RemoteArchive::with_client(client, marker.id),
            None => Err(RemoteError::NoArchive { url: url.clone() }),
        }
    }

    /// The same; where there is none yet, it is made. Buckets are not.
    ///
    /// # Errors
    /// As [`RemoteArchive::open`]; [`RemoteError::Recorded`].
    pub fn open_or_create(url: &RemoteUrl) -> Result<Self, RemoteError> {
        let client = ObjectClient::open(url, true)?;
        if read_marker(&client)?.is_none() {
            if let RemoteUrl::Folder { path } = url
                && (path.join(RUNS).is_dir() && !path.join(LISTS).is_dir() || is_in_local_archive(path))
            {
                return Err(RemoteError::Recorded { url: url.clone() });
            }
            let writer = concat!("perflab ", env!("CARGO_PKG_VERSION")).to_owned();
            let id = Ulid::generate().to_string();
            let marker = serde_json::to_vec(&ArchiveMarker { layout: LAYOUT, writer, id });
            let marker = marker.map_err(|error| client.damaged(MARKER, error.to_string()))?;
            // Somebody else may be faster, and it is theirs then.
            client.write_new_object(MARKER, marker)?;
        }
        let marker = read_marker(&client)?.ok_or_else(|| RemoteError::NoArchive { url: url.clone() })?;
        RemoteArchive::with_client(client, marker.id)
    }

    /// What tells it from every other archive.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether it is still there, and no other in its place.
    ///
    /// # Errors
    /// What the server refuses.
    pub fn is_still_there(&self) -> Result<bool, RemoteError> {
        Ok(read_marker(&self.client)?.is_some_and(|marker| marker.id == self.id))
    }

    fn with_client(client: ObjectClient, id: String) -> Result<Self, RemoteError> {
        let mut archive = RemoteArchive {
            client,
            list: MergedRunList::default(),
            lists: BTreeSet::new(),
            damage: Vec::new(),
            id,
        };
        archive.refresh()?;
        Ok(archive)
    }

    /// Where it is.
    pub fn url(&self) -> &RemoteUrl {
        self.client.url()
    }

    /// The runs that are there, the oldest first.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = &RunListEntry> {
        self.list.present()
    }

    /// What is said of a run, be it there or removed.
    pub fn entry(&self, id: &str) -> Option<&RunListEntry> {
        self.list.get(id)
    }

    /// What is wrong with its lists: what they may have said was read from the runs that are there.
    pub fn damage(&self) -> &[RemoteError] {
        &self.damage
    }

    /// Reads what other writers have listed since. What a damaged list may have said is read from the runs themselves.
    ///
    /// # Errors
    /// What the server refuses.
    pub fn refresh(&mut self) -> Result<(), RemoteError> {
        for _ in 0..ATTEMPTS {
            let found = self.client.list_objects(LISTS)?;
            // What others put there is no list of ours.
            let is_list = |name: &str| {
                let name = name.strip_prefix(LISTS).and_then(|name| name.strip_prefix('/'));
                name.and_then(|name| name.strip_suffix(".parquet")).is_some_and(is_run_id)
            };
            let names = found.into_iter().map(|object| object.name).filter(|name| is_list(name));
            let names: BTreeSet<String> = names.collect();
            let new: Vec<String> = names.difference(&self.lists).cloned().collect();
            let contents = self.client.read_objects(&new)?;
            let (mut is_whole, mut damaged) = (true, Vec::new());
            for (name, content) in new.iter().zip(contents) {
                match content {
                    Some(content) => match parse_list(&self.client, name, &content) {
                        Ok(entries) => self.list.add(entries),
                        Err(error @ RemoteError::Damaged { .. }) => damaged.push(error),
                        Err(error) => return Err(error),
                    },
                    // Another writer has merged it into one that was not there when we looked.
                    None => is_whole = false,
                }
            }
            if is_whole {
                self.lists = names;
                if !damaged.is_empty() {
                    self.damage.append(&mut damaged);
                    self.list_runs_anew()?;
                }
                return Ok(());
            }
        }
        Err(self.client.damaged(LISTS, "its lists vanish faster than they can be read; try again"))
    }

    /// Says of every run that is there what a list says, where the lists do not say it: from the run itself.
    fn list_runs_anew(&mut self) -> Result<(), RemoteError> {
        let local = |source| RemoteError::Local { what: "make a temporary folder".into(), source };
        let mut folders: BTreeMap<String, Vec<ListedObject>> = BTreeMap::new();
        for object in self.client.list_objects(RUNS)? {
            let name = object.name.strip_prefix(RUNS).and_then(|name| name.strip_prefix('/'));
            if let Some((id, _)) = name.and_then(|name| name.split_once('/')).filter(|(id, _)| is_run_id(id))
            {
                folders.entry(id.to_owned()).or_default().push(object);
            }
        }
        let scratch = tempfile::tempdir().map_err(local)?;
        for (id, objects) in folders {
            let folder = run_folder(&id);
            let names: BTreeSet<&str> = objects.iter().map(|object| object.name.as_str()).collect();
            // It is written last.
            if !names.contains(format!("{folder}/{MANIFEST}").as_str())
                || self.list.get(&id).is_some_and(|held| !held.is_present)
                || self.list.get(&id).map(|held| &held.head_hash) == Some(&self.hash_head(&id)?)
            {
                continue;
            }
            let place = scratch.path().join(&id);
            let needed = LISTED_FILES.map(|name| (format!("{folder}/{name}"), place.join(name)));
            let needed: Vec<_> =
                needed.into_iter().filter(|(object, _)| names.contains(object.as_str())).collect();
            std::fs::create_dir_all(&place).map_err(local)?;
            self.client.download_files(&needed, &|_| ())?;
            match RunDir::open(&place).and_then(|run| RunListEntry::of_run(&run)) {
                Ok(entry) => {
                    let bytes = objects.iter().map(|object| object.bytes).sum();
                    let entry = entry.with_size(objects.len(), bytes);
                    self.list.add([RunListEntry { revision: self.list.next_revision(&id), ..entry }]);
                }
                Err(error) => self.damage.push(self.client.damaged(&folder, error.to_string())),
            }
        }
        Ok(())
    }

    /// Sends runs that are not there yet, and the labels and notes of those that are. What was sent stays, whatever comes after it;
    /// `each` is told of each run as it is done. One that cannot be read here is left out, and is the error at the end.
    ///
    /// # Errors
    /// A run that is being recorded, or is not as it was written; what the server refuses.
    pub fn push_runs(
        &mut self,
        runs: &[RunDir],
        scope: PushScope,
        count: ByteCounter<'_>,
        mut each: impl FnMut(&RunDir, PushOutcome),
    ) -> Result<(), RemoteError> {
        let mut unlisted = Vec::new();
        let mut result = Ok(());
        for run in runs {
            match self.push_run(run, scope, count, &mut unlisted) {
                Ok(outcome) => each(run, outcome),
                Err(error @ RemoteError::Archive(_)) => {
                    each(run, PushOutcome::Unreadable);
                    result = result.and(Err(error));
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
            if unlisted.len() >= RUNS_A_LIST {
                self.write_list(std::mem::take(&mut unlisted))?;
            }
        }
        // Those before the one that failed are there.
        self.write_list(unlisted).and(result)
    }

    fn push_run(
        &self,
        run: &RunDir,
        scope: PushScope,
        count: ByteCounter<'_>,
        unlisted: &mut Vec<RunListEntry>,
    ) -> Result<PushOutcome, RemoteError> {
        let held = self.list.get(run.id());
        match held {
            Some(held) if !held.is_present && scope < PushScope::Removed => {
                return Ok(PushOutcome::WasRemoved);
            }
            Some(held)
                if held.is_present
                    && scope < PushScope::Everything
                    && held.head_hash == run.hash_head()? =>
            {
                return Ok(PushOutcome::AlreadyThere);
            }
            _ => {}
        }
        let revision = self.list.next_revision(run.id());
        let is_there = held.is_some_and(|held| held.is_present);
        if is_there && scope < PushScope::Everything {
            unlisted.push(RunListEntry { revision, ..self.push_head(run)? });
            return Ok(PushOutcome::Updated);
        }
        run.verify_files()?;
        let folder = run_folder(run.id());
        let there = self.client.list_objects(&folder)?;
        let there: BTreeMap<&str, u64> =
            there.iter().map(|object| (object.name.as_str(), object.bytes)).collect();
        let (mut heads, mut files, mut bytes) = (Vec::new(), Vec::new(), 0);
        for name in run.list_files()? {
            let (path, object) = (run.path().join(&name), format!("{folder}/{name}"));
            let size = path.metadata().map(|found| found.len());
            let size = size
                .map_err(|source| RemoteError::Local { what: format!("read {}", path.display()), source })?;
            let is_head = matches!(name.as_str(), MANIFEST | NOTES);
            // An earlier attempt sent it: it is there as a whole or not at all, and a run's files do not change.
            if scope < PushScope::Everything && !is_head && there.get(object.as_str()) == Some(&size) {
                count(size);
                continue;
            }
            bytes += size;
            if is_head { heads.push((path, object)) } else { files.push((path, object)) }
        }
        self.client.upload_files(&files, count)?;
        let entry = if is_there {
            self.push_head(run)?
        } else {
            self.client.upload_files(&heads, count)?;
            RunListEntry::of_run(run)?
        };
        unlisted.push(RunListEntry { revision, ..entry });
        Ok(PushOutcome::Pushed { files: files.len() + heads.len(), bytes })
    }

    /// The hash of what may change of a run that is there, as `RunDir::hash_head` has it of one here.
    fn hash_head(&self, id: &str) -> Result<String, RemoteError> {
        let mut head = Vec::new();
        for name in [MANIFEST, NOTES] {
            let object = format!("{}/{name}", run_folder(id));
            head.extend(self.client.read_object(&object)?.map(|(content, _)| content).unwrap_or_default());
        }
        sha256_hex(&mut head.as_slice())
            .map_err(|source| RemoteError::Local { what: "hash a run's head".into(), source })
    }

    /// Puts the label and the notes of a run that is there in step with those of here: the label of here holds, of the notes nothing is
    /// lost. Gives what a list says of the run then: there may be more notes than here.
    fn push_head(&self, run: &RunDir) -> Result<RunListEntry, RemoteError> {
        let read = |name: &str| match std::fs::read(run.path().join(name)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some).map_err(|source| RemoteError::Local {
                what: format!("read {}", run.path().join(name).display()),
                source,
            }),
        };
        for name in [NOTES, MANIFEST] {
            let Some(here) = read(name)? else { continue };
            let object = format!("{}/{name}", run_folder(run.id()));
            let mut is_written = false;
            for _ in 0..ATTEMPTS {
                let (content, version) = match self.client.read_object(&object)? {
                    Some((there, _)) if there == here => {
                        is_written = true;
                        break;
                    }
                    Some((there, version)) if name == NOTES => (merge_notes(&there, &here), Some(version)),
                    Some((_, version)) => (here.clone(), Some(version)),
                    None => (here.clone(), None),
                };
                if self.client.replace_object(&object, content, version)? {
                    is_written = true;
                    break;
                }
            }
            if !is_written {
                return Err(self.client.damaged(&object, "others change it all the time; try again"));
            }
        }
        Ok(RunListEntry { head_hash: self.hash_head(run.id())?, ..RunListEntry::of_run(run)? })
    }

    /// The runs that `selector` means there, the oldest first, at least one: `@latest` and `@latest~N`, the beginning of an id, a label.
    ///
    /// # Errors
    /// [`RemoteError::NotFound`] with a hint.
    pub fn find_runs(&self, selector: &str) -> Result<Vec<RunListEntry>, RemoteError> {
        if let Some(back) = selector.strip_prefix("@latest") {
            let steps =
                if back.is_empty() { Some(0) } else { back.strip_prefix('~').and_then(|n| n.parse().ok()) };
            let found = steps.and_then(|steps: usize| self.runs().nth_back(steps));
            return found
                .map(|entry| vec![entry.clone()])
                .ok_or_else(|| self.not_found(selector, format!("there are {} runs", self.runs().count())));
        }
        let upper = selector.to_ascii_uppercase();
        let is_prefix = selector.len() >= SHORTEST_PREFIX;
        let found: Vec<RunListEntry> =
            self.runs().filter(|entry| is_prefix && entry.id.starts_with(&upper)).cloned().collect();
        match found.len() {
            0 => self.find_labelled_runs(selector),
            1 => Ok(found),
            several => {
                Err(self.not_found(selector, format!("it is the beginning of {several} ids: add a letter")))
            }
        }
    }

    /// The runs of a label, at least one.
    ///
    /// # Errors
    /// [`RemoteError::NotFound`] with the nearest labels.
    pub fn find_labelled_runs(&self, label: &str) -> Result<Vec<RunListEntry>, RemoteError> {
        let found: Vec<RunListEntry> =
            self.runs().filter(|entry| entry.label.as_deref() == Some(label)).cloned().collect();
        if found.is_empty() {
            let labels: BTreeSet<&str> = self.runs().filter_map(|entry| entry.label.as_deref()).collect();
            let hint = match labels.is_empty() {
                true => "no run there has a label".to_owned(),
                false => suggest_name(label, labels),
            };
            return Err(self.not_found(label, hint));
        }
        Ok(found)
    }

    fn not_found(&self, selector: &str, hint: String) -> RemoteError {
        RemoteError::NotFound { url: self.url().clone(), selector: selector.into(), hint }
    }

    /// Brings a run into `archive`, whose every file is held against its hash, or the label and notes of one that is there.
    ///
    /// # Errors
    /// [`RemoteError::NotFound`]; a run that is not as it was written; what the server or the disk refuses.
    pub fn pull_run(
        &self,
        id: &str,
        archive: &Archive,
        count: ByteCounter<'_>,
    ) -> Result<PullOutcome, RemoteError> {
        let entry = self.present_entry(id)?;
        let place = archive.run_path(id);
        if place.is_dir() {
            let run = RunDir::open(&place)?;
            if run.hash_head()? == entry.head_hash {
                return Ok(PullOutcome::AlreadyHere);
            }
            return self.pull_head(&run, archive);
        }
        let incoming = self.receive_run(entry, archive, count)?;
        match incoming.keep(id) {
            Ok(_) => {}
            // Another perflab of this machine was faster.
            Err(ArchiveError::Exists { .. }) => return Ok(PullOutcome::AlreadyHere),
            Err(error) => return Err(error.into()),
        }
        Ok(PullOutcome::Pulled { files: to_count(entry.files), bytes: entry.bytes.unsigned_abs() })
    }

    /// Holds every file of a run there against its hash, and keeps nothing; `scratch` has room for it meanwhile.
    ///
    /// # Errors
    /// As [`RemoteArchive::pull_run`].
    pub fn check_run(
        &self,
        id: &str,
        scratch: &Archive,
        count: ByteCounter<'_>,
    ) -> Result<PullOutcome, RemoteError> {
        let entry = self.present_entry(id)?;
        let run = self.receive_run(entry, scratch, count)?;
        Ok(if run.has_hashes(id) { PullOutcome::Whole } else { PullOutcome::Unhashed })
    }

    fn present_entry(&self, id: &str) -> Result<&RunListEntry, RemoteError> {
        let found = self.list.get(id).filter(|entry| entry.is_present);
        found.ok_or_else(|| self.not_found(id, "`perflab list --remote URL` shows what is there".into()))
    }

    /// A run, put together beside the others and held against its hashes.
    fn receive_run<'a>(
        &self,
        entry: &RunListEntry,
        archive: &'a Archive,
        count: ByteCounter<'_>,
    ) -> Result<IncomingRun<'a>, RemoteError> {
        let folder = run_folder(&entry.id);
        let there = self.client.list_objects(&folder)?;
        if there.len() < to_count(entry.files) {
            let reason = format!("{} of its {} files are there", there.len(), entry.files);
            return Err(self.client.damaged(&folder, reason));
        }
        let incoming = archive.receive_run()?;
        let mut files = Vec::with_capacity(there.len());
        for object in &there {
            let name = object.name.strip_prefix(&folder).and_then(|name| name.strip_prefix('/'));
            let name = name.ok_or_else(|| self.client.damaged(&object.name, "it lies elsewhere"))?;
            files.push((object.name.clone(), incoming.place_file(&entry.id, name)?));
        }
        self.client.download_files(&files, count)?;
        // What is wrong with what arrived is wrong with what is there.
        let blame = |path: &Path, reason: String| {
            let parts = path.iter().skip_while(|part| *part != OsStr::new(&entry.id)).skip(1);
            let name = parts.collect::<PathBuf>();
            self.client.damaged(&format!("{folder}/{}", name.display()), reason)
        };
        incoming.verify(&entry.id).map_err(|error| match error {
            ArchiveError::Altered { path, .. } => blame(&path, "it is not as it was written".into()),
            ArchiveError::Damaged { path, reason } => blame(&path, reason),
            other => other.into(),
        })?;
        if incoming.hash_head(&entry.id)? != entry.head_hash {
            let reason = "it, or the notes, are not those that the list names; if somebody changed them just now, try again";
            return Err(self.client.damaged(&format!("{folder}/{MANIFEST}"), reason));
        }
        Ok(incoming)
    }

    /// Takes over the label and the notes of a run: the label of there holds, of the notes nothing is lost.
    fn pull_head(&self, run: &RunDir, archive: &Archive) -> Result<PullOutcome, RemoteError> {
        let object = |name: &str| format!("{}/{name}", run_folder(run.id()));
        let manifest = self.client.read_object(&object(MANIFEST))?;
        let (manifest, _) =
            manifest.ok_or_else(|| self.client.damaged(&object(MANIFEST), "it is not there"))?;
        let notes = self.client.read_object(&object(NOTES))?.map(|(there, _)| {
            let here = std::fs::read(run.path().join(NOTES)).unwrap_or_default();
            merge_notes(&here, &there)
        });
        archive.replace_run_head(run.id(), &manifest, notes.as_deref())?;
        Ok(PullOutcome::Updated)
    }

    /// Removes runs: first a list says so, then their files go.
    ///
    /// # Errors
    /// What the server refuses.
    pub fn remove_runs(&mut self, ids: &[String]) -> Result<(), RemoteError> {
        let removed = ids.iter().filter_map(|id| {
            let held = self.list.get(id).filter(|held| held.is_present)?;
            Some(RunListEntry { revision: self.list.next_revision(id), is_present: false, ..held.clone() })
        });
        let removed: Vec<RunListEntry> = removed.collect();
        let gone: Vec<String> = removed.iter().map(|entry| entry.id.clone()).collect();
        self.write_list(removed)?;
        for id in gone {
            let objects = self.client.list_objects(&run_folder(&id))?;
            let names: Vec<String> = objects.into_iter().map(|object| object.name).collect();
            self.client.remove_objects(&names)?;
        }
        Ok(())
    }

    /// Writes a list of these rows, and merges all lists into one where there are many.
    fn write_list(&mut self, rows: Vec<RunListEntry>) -> Result<(), RemoteError> {
        if !rows.is_empty() {
            self.list.add(rows.iter().cloned());
            let name = self.write_new_list(rows.iter())?;
            self.lists.insert(name);
        }
        if self.lists.len() < MOST_LISTS && self.damage.is_empty() {
            return Ok(());
        }
        // What a list says that is removed here stands in the one that is written here.
        self.refresh()?;
        let merged = self.write_new_list(self.list.rows())?;
        let old: Vec<String> = std::mem::take(&mut self.lists).into_iter().collect();
        self.lists.insert(merged);
        self.damage.clear();
        self.client.remove_objects(&old)
    }

    fn write_new_list<'a>(
        &self,
        rows: impl IntoIterator<Item = &'a RunListEntry>,
    ) -> Result<String, RemoteError> {
        let content = format_list(rows)?;
        loop {
            let name = format!("{LISTS}/{}.parquet", Ulid::generate());
            if self.client.write_new_object(&name, content.clone())? {
                return Ok(name);
            }
        }
    }
}

/// Whether a folder lies within an archive that runs are recorded in.
fn is_in_local_archive(path: &Path) -> bool {
    path.ancestors().skip(1).any(|above| above.join("index.sqlite").is_file() && above.join(RUNS).is_dir())
}

fn to_count(stored: i64) -> usize {
    usize::try_from(stored).unwrap_or(0)
}

fn run_folder(id: &str) -> String {
    format!("{RUNS}/{id}")
}

/// What an archive says of itself, where there is one that this program can read.
fn read_marker(client: &ObjectClient) -> Result<Option<ArchiveMarker>, RemoteError> {
    let Some((text, _)) = client.read_object(MARKER)? else { return Ok(None) };
    let marker: ArchiveMarker =
        serde_json::from_slice(&text).map_err(|error| client.damaged(MARKER, error.to_string()))?;
    match marker.layout > LAYOUT {
        true => Err(RemoteError::Newer {
            url: client.url().clone(),
            found: marker.layout,
            known: LAYOUT,
            writer: marker.writer,
        }),
        false => Ok(Some(marker)),
    }
}

fn format_list<'a>(rows: impl IntoIterator<Item = &'a RunListEntry>) -> Result<Vec<u8>, RemoteError> {
    let local =
        |source| RemoteError::Local { what: "write a list of runs to a temporary file".into(), source };
    let folder = tempfile::tempdir().map_err(local)?;
    let path = folder.path().join("list.parquet");
    write_run_list(&path, rows)?;
    std::fs::read(&path).map_err(local)
}

fn parse_list(client: &ObjectClient, name: &str, content: &[u8]) -> Result<Vec<RunListEntry>, RemoteError> {
    let local =
        |source| RemoteError::Local { what: "write a list of runs to a temporary file".into(), source };
    let folder = tempfile::tempdir().map_err(local)?;
    let path = folder.path().join("list.parquet");
    std::fs::write(&path, content).map_err(local)?;
    read_run_list(&path).map_err(|error| match error {
        ArchiveError::Damaged { reason, .. } => client.damaged(name, reason),
        other => other.into(),
    })
}

/// The lines of both, each once, in an order that does not depend on who merges: by their text, which begins with the time.
fn merge_notes(first: &[u8], second: &[u8]) -> Vec<u8> {
    let lines = [first, second].into_iter().flat_map(|text| text.split(|byte| *byte == b'\n'));
    let merged: BTreeSet<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
    merged.into_iter().flat_map(|line| [line, b"\n"].concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_note_is_lost_and_none_doubled() {
        let (here, there) = (b"\n{\"a\":1}\n{\"c\":3}".as_slice(), b"{\"b\":2}\n{\"a\":1}\n".as_slice());
        assert_eq!(merge_notes(here, there), b"{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
        assert_eq!(merge_notes(here, there), merge_notes(there, here));
    }
}
