//! What changes while somebody looks: new runs, and the progress of those that are being recorded, as server-sent events.
//!
//! One look serves all clients, and there is none while nobody listens: counting what a living run has written takes time of the
//! machine that measures.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use hyper::body::Frame;
use perflab_archive::{Archive, ArchiveEntry};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc};
use tokio::time::sleep;

use crate::refusal::RequestRefusal;

/// Clients that listen at once.
const MOST_LISTENERS: usize = 100;

/// Between two looks at the archive, at least.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A look takes at most this part of the time: one that takes longer is made less often.
const LOOK_SHARE: u32 = 20;

/// Runs that are looked at; a change of an older one is seen when its page is asked for.
const LATEST_RUNS: usize = 200;

/// Looks without news after which clients are told that the server is there.
const QUIET_LOOKS: u32 = 15;

/// Events that wait for a client; one that is slower than that is told to ask for the list again.
const MOST_WAITING: usize = 64;

/// A run that is new or has changed: an event of the name `run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct RunChangeDocument {
    /// Its id.
    id: String,
    /// The shortest beginning that names it.
    short: String,
    /// running, finished, failed, stopped, interrupted, disk-full, damaged, or removed
    status: String,
    /// The name that somebody gave it.
    label: Option<String>,
    /// The study's title.
    title: Option<String>,
    /// Iterations that ended.
    iterations: u64,
    /// Iterations that were planned.
    planned: u64,
}

impl RunChangeDocument {
    fn new(entry: &ArchiveEntry) -> Self {
        let summary = entry.summary.as_ref().ok();
        RunChangeDocument {
            id: entry.id.clone(),
            short: entry.short.clone(),
            status: summary.map_or("damaged", |run| run.status.as_str()).to_owned(),
            label: summary.and_then(|run| run.label.clone()),
            title: summary.map(|run| run.title.to_string()),
            iterations: summary.map_or(0, |run| run.iterations),
            planned: summary.map_or(0, |run| run.planned),
        }
    }
}

/// The clients that listen.
pub(crate) struct LiveFeed {
    news: broadcast::Sender<Bytes>,
    places: Arc<Semaphore>,
    is_looking: AtomicBool,
}

impl LiveFeed {
    pub(crate) fn new() -> Self {
        LiveFeed {
            news: broadcast::Sender::new(MOST_WAITING),
            places: Arc::new(Semaphore::new(MOST_LISTENERS)),
            is_looking: AtomicBool::new(false),
        }
    }
}

/// A stream of events for one client, until it goes.
pub(crate) fn open_feed(feed: &Arc<LiveFeed>, archive: &Archive) -> Result<Body, RequestRefusal> {
    let place = Arc::clone(&feed.places).try_acquire_owned().map_err(|_| {
        RequestRefusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{MOST_LISTENERS} pages listen already: close one, or reload this one from time to time"),
        )
    })?;
    let mut news = feed.news.subscribe();
    let (to_client, events) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            let event = tokio::select! {
                event = news.recv() => event,
                () = to_client.closed() => return,
            };
            let event = match event {
                Ok(event) => event,
                Err(RecvError::Lagged(_)) => Bytes::from_static(b"event: lost\ndata: {}\n\n"),
                Err(RecvError::Closed) => return,
            };
            if to_client.send(event).await.is_err() {
                return;
            }
        }
    });
    if !feed.is_looking.swap(true, Ordering::SeqCst) {
        tokio::spawn(look_for_news(Arc::clone(feed), archive.clone()));
    }
    Ok(Body::new(EventBody { events, begun: false, _place: place }))
}

/// Looks at the archive while somebody listens.
async fn look_for_news(feed: Arc<LiveFeed>, archive: Archive) {
    let mut known: Option<BTreeMap<String, RunChangeDocument>> = None;
    let mut quiet = 0;
    loop {
        if feed.news.receiver_count() == 0 {
            feed.is_looking.store(false, Ordering::SeqCst);
            // Somebody may have come between the two lines.
            if feed.news.receiver_count() == 0 || feed.is_looking.swap(true, Ordering::SeqCst) {
                return;
            }
        }
        let begun = Instant::now();
        let looking = archive.clone();
        let looked = tokio::task::spawn_blocking(move || looking.list_latest_runs(LATEST_RUNS)).await;
        if let Ok(Ok(entries)) = looked {
            let found: BTreeMap<String, RunChangeDocument> =
                entries.iter().map(|entry| (entry.id.clone(), RunChangeDocument::new(entry))).collect();
            let changes = list_changes(known.as_ref(), &found);
            quiet = if changes.is_empty() { quiet + 1 } else { 0 };
            for change in changes {
                let text = serde_json::to_string(&change).unwrap_or_default();
                let _ = feed.news.send(format!("event: run\ndata: {text}\n\n").into());
            }
            known = Some(found);
        }
        if quiet >= QUIET_LOOKS {
            quiet = 0;
            let _ = feed.news.send(Bytes::from_static(b": still here\n\n"));
        }
        sleep(LOOK_INTERVAL.max(begun.elapsed() * LOOK_SHARE)).await;
    }
}

/// What differs from the look before. At the first, what a page that was made a moment ago may not know: living runs, and the newest.
fn list_changes(
    before: Option<&BTreeMap<String, RunChangeDocument>>,
    now: &BTreeMap<String, RunChangeDocument>,
) -> Vec<RunChangeDocument> {
    let Some(before) = before else {
        let newest = now.last_key_value().map(|(id, _)| id);
        let is_news = |run: &&RunChangeDocument| run.status == "running" || Some(&run.id) == newest;
        return now.values().filter(is_news).cloned().collect();
    };
    let oldest = now.keys().next();
    let gone = before
        .values()
        .filter(|run| !now.contains_key(&run.id) && oldest.is_some_and(|oldest| run.id > *oldest));
    let gone = gone.map(|run| RunChangeDocument { status: "removed".into(), ..run.clone() });
    let changed = now.values().filter(|run| before.get(&run.id) != Some(run)).cloned();
    // With a removed run, an older one comes into view that is no news.
    let begins = before.keys().next();
    changed.filter(|run| begins.is_none_or(|begins| run.id >= *begins)).chain(gone).collect()
}

/// Events on their way to a client.
struct EventBody {
    events: mpsc::Receiver<Bytes>,
    begun: bool,
    _place: OwnedSemaphorePermit,
}

impl HttpBody for EventBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if !self.begun {
            self.begun = true;
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"retry: 3000\n\n")))));
        }
        self.events.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(runs: &[(&str, &str, u64)]) -> BTreeMap<String, RunChangeDocument> {
        let run = |(id, status, iterations): &(&str, &str, u64)| {
            let run = RunChangeDocument {
                id: (*id).into(),
                short: (*id).into(),
                status: (*status).into(),
                label: None,
                title: None,
                iterations: *iterations,
                planned: 9,
            };
            ((*id).to_owned(), run)
        };
        runs.iter().map(run).collect()
    }

    fn changes(before: Option<&[(&str, &str, u64)]>, now: &[(&str, &str, u64)]) -> Vec<(String, String)> {
        let found = list_changes(before.map(look).as_ref(), &look(now));
        found.into_iter().map(|run| (run.id, run.status)).collect()
    }

    #[test]
    fn news_are_what_is_new_changed_or_gone() {
        let words = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(id, status)| ((*id).to_owned(), (*status).to_owned())).collect::<Vec<_>>()
        };
        let before = [("1", "finished", 9), ("2", "running", 3)];
        assert_eq!(changes(None, &before), words(&[("2", "running")]));
        assert_eq!(changes(Some(&before), &before), words(&[]));
        let now = [("1", "finished", 9), ("2", "running", 4), ("3", "running", 0)];
        assert_eq!(changes(Some(&before), &now), words(&[("2", "running"), ("3", "running")]));
        assert_eq!(changes(Some(&now), &[now[0], now[2]]), words(&[("2", "removed")]));
        // The window moved by one: what is no longer in it is not gone, and what came back into it is not new.
        assert_eq!(changes(Some(&now), &now[1..]), words(&[]));
        assert_eq!(changes(Some(&now[1..]), &now), words(&[]));
    }
}
