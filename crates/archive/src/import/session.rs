//! Logs and what is known around them, told as the events of one run.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use indexmap::IndexMap;
use perflab_model::{Event, Facts, Manifest, Nanos, Overhead, Status, What};

use super::feed::{Feed, agree};
use super::foreign::{HASH, hash_of_files};
use super::story::{Story, manifest};
use super::{Kind, Options, Source, Took};
use crate::ArchiveError;

/// Files of an import whose rows are told one by one.
const MANY: usize = 32;

/// The events of an import.
pub(crate) struct Session {
    story: Story,
    root: PathBuf,
    anchor: Nanos,
    feeds: Vec<Feed>,
    queue: VecDeque<Event>,
    results: Option<Box<dyn Iterator<Item = Event>>>,
    /// The last tick of each series.
    lasts: BTreeMap<&'static str, Nanos>,
    last: Nanos,
    over: bool,
}

impl Session {
    pub(crate) fn new(
        kind: Kind,
        path: &Path,
        options: &Options,
        mut story: Story,
        mut feeds: Vec<Feed>,
    ) -> Self {
        agree(&mut feeds);
        let times =
            feeds.iter().filter_map(Feed::first_time).chain(story.results.first_time()).chain(story.begun);
        let anchor = times.min().unwrap_or_else(|| undated(path, &mut story, !feeds.is_empty()));
        story.facts.add("import.kind", kind.name(), "perflab");
        story.facts.add("import.path", path.to_string_lossy().as_ref(), "perflab");
        let manifest = manifest(path, options, &story, &feeds, anchor);
        let mut session = Session {
            story,
            root: path.into(),
            anchor,
            feeds,
            queue: VecDeque::new(),
            results: None,
            lasts: BTreeMap::new(),
            last: Nanos(0),
            over: false,
        };
        session.begin(manifest);
        session
    }

    fn tell(&mut self, what: What) {
        self.queue.push_back(Event::new(self.last, what));
    }

    fn begin(&mut self, manifest: Manifest) {
        self.tell(What::Began(Box::new(manifest)));
        for (name, of_benchmark, text) in std::mem::take(&mut self.story.texts) {
            self.tell(What::Output { slot: of_benchmark.then_some(0), name, text });
        }
        if let Some(file) = self.story.recording.take() {
            self.tell(What::Traced { slot: 0, tracer: crate::io::IO.into(), file });
        }
        let schemas: Vec<_> = self.feeds.iter().filter(|feed| !feed.is_over()).map(Feed::schema).collect();
        schemas.into_iter().for_each(|schema| self.tell(What::SeriesOpened(schema)));
    }

    /// The next tick of all logs, in order of time.
    fn tick(&mut self) -> Result<Option<Event>, ArchiveError> {
        let anchor = self.anchor;
        let times = self.feeds.iter_mut().filter_map(|feed| Some((feed.next_at(anchor)?, feed)));
        let Some((_, feed)) = times.min_by_key(|(at, _)| *at) else { return Ok(None) };
        let (series, monitor) = (feed.series(), feed.series().to_owned());
        let hole = feed.hole(anchor, self.lasts.get(series).copied());
        let tick = feed.pop(anchor)?;
        hole.into_iter().for_each(|gap| self.queue.push_back(Event::new(self.last, What::Gap(gap))));
        Ok(tick.map(|(at, rows)| {
            self.lasts.insert(series, at);
            self.last = self.last.max(at);
            Event::new(at, What::Rows { monitor, rows })
        }))
    }

    fn end(&mut self) {
        self.over = true;
        let took = self.took();
        let mut counts = counts(&took);
        if let Some(hash) = hash_of_files(&took) {
            counts.add(HASH, hash.as_str(), "the files");
        }
        warnings(&took, &self.root).into_iter().for_each(|warning| self.tell(warning));
        for (message, advice) in std::mem::take(&mut self.story.notes) {
            self.tell(What::Warning { message, advice });
        }
        self.tell(What::Facts(counts));
        let overhead = Overhead { wall: self.last, ..Overhead::default() };
        self.tell(What::Ended { status: Status::Finished, overhead });
    }

    /// What the benchmarks reported, once the logs are over.
    fn results(&mut self) -> &mut dyn Iterator<Item = Event> {
        let (story, last) = (&mut self.story, &mut self.last);
        let anchor = self.anchor;
        self.results.get_or_insert_with(|| {
            let results = std::mem::take(&mut story.results);
            let ended = results.last_time().map_or(Nanos(0), |time| time.since(anchor));
            *last = (*last).max(ended);
            Box::new(results.events(anchor, *last, (Nanos(0), *last)))
        })
    }
}

impl Iterator for Session {
    type Item = Result<Event, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(event) = self.queue.pop_front() {
            return Some(Ok(event));
        }
        if self.over {
            return None;
        }
        let tick = self.tick().transpose();
        if matches!(tick, Some(Err(_))) {
            self.over = true;
        }
        tick.or_else(|| {
            let result = self.results().next().map(Ok);
            result.or_else(|| {
                self.end();
                self.queue.pop_front().map(Ok)
            })
        })
    }
}

impl Source for Session {
    fn took(&self) -> Vec<Took> {
        self.feeds.iter().map(Feed::took).chain(self.story.took.iter().cloned()).collect()
    }
}

/// Without any time in the files, the run is dated by the file's own.
fn undated(path: &Path, story: &mut Story, logs: bool) -> Nanos {
    let changed = std::fs::metadata(path).and_then(|found| found.modified()).ok();
    let since = changed.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    story.notes.push((
        "the files give no time: the run is dated by the file's last change".into(),
        match logs {
            true => {
                "put a line `time: EPOCH` before each dump, as in `(date +'time: %s'; cat /proc/slabinfo)`"
            }
            false => "copy such files with their times (cp -p), so that runs keep their order",
        }
        .into(),
    ));
    since.map_or(Nanos(0), Nanos::from)
}

/// How many rows each file gave; of many files, what they gave together.
fn counts(took: &[Took]) -> Facts {
    let mut counts = Facts::default();
    if took.len() > MANY {
        let used: u64 = took.iter().map(|took| took.rows_used).sum();
        let unusable: u64 = took.iter().map(|took| took.rows_unusable).sum();
        let text = format!("{} files, {used} rows used, {unusable} unusable", took.len());
        counts.add("import.rows", text.as_str(), "perflab");
        return counts;
    }
    for took in took {
        let key = format!("import.rows.{}", took.name());
        // A tree of sysfs becomes two series.
        let key = if counts.get(&key).is_some() { format!("{key}.{}", took.became) } else { key };
        counts.add(&key, took.counts().as_str(), "perflab");
    }
    counts
}

/// What is wrong with rows, file by file; and what is to be known of files, once for all of which it is.
fn warnings(took: &[Took], root: &Path) -> Vec<What> {
    let mut notes: IndexMap<&str, Vec<String>> = IndexMap::new();
    for took in took {
        for note in &took.notes {
            let (files, file) = (notes.entry(note).or_default(), within(took, root));
            if files.last() != Some(&file) {
                files.push(file);
            }
        }
    }
    let note = |(note, files): (&str, Vec<String>)| What::Warning {
        message: format!("{}: {note}", among(&files)),
        advice: "take it into account when reading this run".into(),
    };
    let refused = took.iter().filter_map(|took| refused(took, root));
    let unusable = took.iter().filter_map(|took| unusable(took, root));
    refused.chain(unusable).chain(notes.into_iter().map(note)).collect()
}

/// The path of a file within what is imported.
fn within(took: &Took, root: &Path) -> String {
    let inner = took.file.strip_prefix(root).unwrap_or(&took.file);
    if inner.as_os_str().is_empty() { took.name() } else { inner.display().to_string() }
}

/// `a`, `a, b and 3 more`
fn among(files: &[String]) -> String {
    match files {
        [first, second, _, ..] => format!("{first}, {second} and {} more", files.len() - 2),
        _ => files.join(", "),
    }
}

fn refused(took: &Took, root: &Path) -> Option<What> {
    let reason = took.refused.as_ref()?;
    let message = format!("{} cannot be read: {reason}; nothing of it is in this run", within(took, root));
    Some(What::Warning { message, advice: "import again once it can be, for what it holds".into() })
}

fn unusable(took: &Took, root: &Path) -> Option<What> {
    let first = took.unusable.first().or(took.flagged.first())?;
    let (file, counts) = (within(took, root), took.counts());
    let place = if first.line > 0 { format!(" at line {}", first.line) } else { String::new() };
    let message = format!("{file}: {counts}; the first{place}: {}", first.reason);
    let advice = match took.became {
        "slabinfo-tool" => {
            "flagged rows are used as they are; the tool reads a file for each number, one after the other"
        }
        "samples" => "what is unusable or was not counted gives no sample; look at the file there",
        _ => "flagged rows say so in their column `flags`; look at the file where lines are unusable",
    };
    Some(What::Warning { message, advice: advice.into() })
}
