//! Logs and what is known around them, told as the events of one run.

use std::collections::VecDeque;
use std::path::Path;
use std::time::SystemTime;

use perflab_model::{Event, Facts, Manifest, Metric, Nanos, Outcome, Overhead, Sample, Status, What};

use super::feed::Feed;
use super::story::{Benchmark, Story, manifest};
use super::{Kind, Options, Source, Took};
use crate::ArchiveError;

/// The events of an import.
pub(crate) struct Session {
    story: Story,
    anchor: Nanos,
    feeds: Vec<Feed>,
    queue: VecDeque<Event>,
    last: Nanos,
    over: bool,
}

impl Session {
    pub(crate) fn new(
        kind: Kind,
        path: &Path,
        options: &Options,
        mut story: Story,
        feeds: Vec<Feed>,
    ) -> Self {
        let anchor = feeds.iter().filter_map(Feed::first_time).min();
        let anchor = anchor.unwrap_or_else(|| undated(path, &mut story));
        story.facts.add("import.kind", kind.name(), "perflab");
        story.facts.add("import.path", path.to_string_lossy().as_ref(), "perflab");
        let manifest = manifest(path, options, &story, &feeds, anchor);
        let mut session =
            Session { story, anchor, feeds, queue: VecDeque::new(), last: Nanos(0), over: false };
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
        let schemas: Vec<_> = self.feeds.iter().filter(|feed| !feed.is_over()).map(Feed::schema).collect();
        schemas.into_iter().for_each(|schema| self.tell(What::SeriesOpened(schema)));
        if self.story.benchmark.is_some() {
            self.tell(What::IterationBegan { slot: 0 });
        }
    }

    /// The next tick of all logs, in order of time.
    fn tick(&mut self) -> Result<Option<Event>, ArchiveError> {
        let anchor = self.anchor;
        let times = self.feeds.iter_mut().filter_map(|feed| Some((feed.next_at(anchor)?, feed)));
        let Some((_, feed)) = times.min_by_key(|(at, _)| *at) else { return Ok(None) };
        let monitor = feed.series().to_owned();
        let hole = feed.hole(anchor);
        let tick = feed.pop(anchor)?;
        hole.into_iter().for_each(|gap| self.queue.push_back(Event::new(self.last, What::Gap(gap))));
        Ok(tick.map(|(at, rows)| {
            self.last = self.last.max(at);
            Event::new(at, What::Rows { monitor, rows })
        }))
    }

    fn end(&mut self) {
        self.over = true;
        if let Some(benchmark) = self.story.benchmark.take() {
            self.results(benchmark);
        }
        let mut counts = Facts::default();
        for took in self.took() {
            let key = format!("import.rows.{}", took.name());
            // A tree of sysfs becomes two series.
            let key = if counts.get(&key).is_some() { format!("{key}.{}", took.became) } else { key };
            counts.add(&key, took.counts().as_str(), "perflab");
            warnings(&took).into_iter().for_each(|warning| self.tell(warning));
        }
        for (message, advice) in std::mem::take(&mut self.story.notes) {
            self.tell(What::Warning { message, advice });
        }
        self.tell(What::Facts(counts));
        let overhead = Overhead { wall: self.last, ..Overhead::default() };
        self.tell(What::Ended { status: Status::Finished, overhead });
    }

    fn results(&mut self, benchmark: Benchmark) {
        let anchor = self.anchor;
        let whole = (Nanos(0), self.last);
        let (start, end) =
            benchmark.span.map_or(whole, |(begin, end)| (begin.since(anchor), end.since(anchor)));
        for (metric, value) in benchmark.values {
            let Metric { name, unit, direction, primary } = metric;
            let (boot, case, iteration) = (0, 0, 0);
            let metric = name;
            let sample = Sample {
                boot,
                target: None,
                case,
                iteration,
                metric,
                value,
                unit,
                direction,
                primary,
                start,
                end,
            };
            self.tell(What::Sample(sample));
        }
        self.tell(What::IterationEnded { slot: 0, outcome: Outcome::Ok, start, end });
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
            self.end();
            self.queue.pop_front().map(Ok)
        })
    }
}

impl Source for Session {
    fn took(&self) -> Vec<Took> {
        self.feeds.iter().map(Feed::took).chain(self.story.took.iter().cloned()).collect()
    }
}

/// Without any time in the files, the run is dated by the file's own.
fn undated(path: &Path, story: &mut Story) -> Nanos {
    let changed = std::fs::metadata(path).and_then(|found| found.modified()).ok();
    let since = changed.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    story.notes.push((
        "the files give no time: the run is dated by the file's last change".into(),
        "put a line `time: EPOCH` before each dump, as in `(date +'time: %s'; cat /proc/slabinfo)`".into(),
    ));
    since.map_or(Nanos(0), Nanos::from)
}

fn warnings(took: &Took) -> Vec<What> {
    let file = took.name();
    let mut warnings = Vec::new();
    if let Some(first) = took.unusable.first().or(took.flagged.first()) {
        let message =
            format!("{file}: {}; the first at line {}: {}", took.counts(), first.line, first.reason);
        let advice = match took.became {
            "slabinfo-tool" => {
                "flagged rows are used as they are; the tool reads a file for each number, one after the other"
            }
            _ => "flagged rows say so in their column `flags`; look at the file where lines are unusable",
        };
        warnings.push(What::Warning { message, advice: advice.into() });
    }
    let note = |note: &String| What::Warning {
        message: format!("{file}: {note}"),
        advice: "take it into account when reading this run".into(),
    };
    warnings.extend(took.notes.iter().map(note));
    warnings
}
