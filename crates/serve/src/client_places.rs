//! Places of clients, which are few: when all are taken, whoever has rested longest goes, so that a new client always gets in.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::server_counts::ServerCounts;

/// Between two looks for somebody who rests.
const REST_LOOK: Duration = Duration::from_millis(250);

/// A client that takes nothing of its answer for so long rests; for less it is only slower than we are.
const STALL_OF_REST: Duration = Duration::from_secs(1);

/// What is known of one client, by which it is seen to rest.
#[derive(Debug)]
pub(crate) struct ClientActivity(Mutex<ActivityState>);

#[derive(Debug)]
struct ActivityState {
    /// requests that are not answered to their end
    requests: usize,
    /// the end of the last one, or when it came
    idle_since: Instant,
    /// since when it takes nothing of an answer
    stalled_since: Option<Instant>,
}

impl ClientActivity {
    fn new() -> Self {
        ClientActivity(Mutex::new(ActivityState {
            requests: 0,
            idle_since: Instant::now(),
            stalled_since: None,
        }))
    }

    fn state(&self) -> MutexGuard<'_, ActivityState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request has come; it lasts as long as its mark.
    pub(crate) fn begin_request(self: &Arc<Self>) -> RequestMark {
        self.state().requests += 1;
        RequestMark(Arc::clone(self))
    }

    /// Whether the client takes nothing of what is written.
    pub(crate) fn set_stalled(&self, is_stalled: bool) {
        let mut state = self.state();
        state.stalled_since = is_stalled.then(|| state.stalled_since.unwrap_or_else(Instant::now));
    }

    /// Since when nothing is done for it; `None` while something is.
    fn resting_since(&self, now: Instant) -> Option<Instant> {
        let state = self.state();
        match state.stalled_since {
            Some(since) => (now.saturating_duration_since(since) >= STALL_OF_REST).then_some(since),
            None => (state.requests == 0).then_some(state.idle_since),
        }
    }
}

/// A request that is not answered to its end.
#[derive(Debug)]
pub(crate) struct RequestMark(Arc<ClientActivity>);

impl Drop for RequestMark {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests = state.requests.saturating_sub(1);
        state.idle_since = Instant::now();
    }
}

/// The body of an answer, with whose end its request ends.
pub(crate) struct MarkedBody {
    body: Body,
    _mark: RequestMark,
}

impl MarkedBody {
    pub(crate) fn new(body: Body, mark: RequestMark) -> Self {
        MarkedBody { body, _mark: mark }
    }
}

impl HttpBody for MarkedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A client that is served: what it does, and what ends it.
type ServedClient = (Arc<ClientActivity>, AbortHandle);

/// As many places as there are, and who has them.
#[derive(Debug)]
pub(crate) struct ClientPlaces {
    places: Arc<Semaphore>,
    clients: Mutex<ClientRegister>,
    counts: Arc<ServerCounts>,
}

#[derive(Debug, Default)]
struct ClientRegister {
    next: u64,
    served: HashMap<u64, ServedClient>,
}

/// A place, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct ClientPlace {
    places: Arc<ClientPlaces>,
    number: u64,
    _permit: OwnedSemaphorePermit,
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let mut register = self.places.register();
        register.served.remove(&self.number);
        self.places.counts.set_clients(register.served.len());
    }
}

impl ClientPlaces {
    pub(crate) fn new(most: usize, counts: Arc<ServerCounts>) -> Self {
        ClientPlaces { places: Arc::new(Semaphore::new(most)), clients: Mutex::default(), counts }
    }

    fn register(&self) -> MutexGuard<'_, ClientRegister> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, that of the client who has rested longest where none is free; while something is done for every client, it is waited for.
    pub(crate) async fn take(self: &Arc<Self>) -> Option<ClientPlace> {
        let permit = loop {
            if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
                break permit;
            }
            self.end_longest_rest();
            if let Ok(permit) = timeout(REST_LOOK, Arc::clone(&self.places).acquire_owned()).await {
                break permit.ok()?;
            }
        };
        let mut register = self.register();
        register.next += 1;
        Some(ClientPlace { places: Arc::clone(self), number: register.next, _permit: permit })
    }

    fn end_longest_rest(&self) {
        let now = Instant::now();
        let mut register = self.register();
        let resting = register.served.iter();
        let resting =
            resting.filter_map(|(number, (activity, _))| Some((activity.resting_since(now)?, *number)));
        let longest = resting.min().and_then(|(_, number)| register.served.remove(&number));
        drop(register);
        if let Some((_, end)) = longest {
            end.abort();
            self.counts.count_sent_away();
        }
    }
}

impl ClientPlace {
    /// Serves a client here, by what `serve` makes of its activity.
    pub(crate) fn spawn<F>(self, serve: impl FnOnce(Arc<ClientActivity>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (places, number) = (Arc::clone(&self.places), self.number);
        let activity = Arc::new(ClientActivity::new());
        let served = serve(Arc::clone(&activity));
        // Locked before it can end, so that it is not written down after that.
        let mut register = places.register();
        let task = tokio::spawn(async move {
            let _place = self;
            served.await;
        });
        register.served.insert(number, (activity, task.abort_handle()));
        places.counts.set_clients(register.served.len());
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;
    use tokio::sync::oneshot;

    use super::*;

    /// A client that is served until it is sent away; the receiver fails then.
    fn serve_for_ever(place: ClientPlace) -> (Arc<ClientActivity>, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        let mut found = None;
        place.spawn(|activity| {
            found = Some(activity);
            async move {
                let _sender = sender;
                std::future::pending::<()>().await;
            }
        });
        (found.unwrap(), receiver)
    }

    #[test]
    fn who_has_rested_longest_goes_and_who_is_answered_stays() {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let places = Arc::new(ClientPlaces::new(3, Arc::new(ServerCounts::new())));
            let (answered, mut first) = serve_for_ever(places.take().await.unwrap());
            let mark = answered.begin_request();
            let (_, mut second) = serve_for_ever(places.take().await.unwrap());
            let (_, mut third) = serve_for_ever(places.take().await.unwrap());
            let (_, mut fourth) = serve_for_ever(places.take().await.unwrap());
            assert!(second.try_recv() == Err(oneshot::error::TryRecvError::Closed));
            let is_there = |client: &mut oneshot::Receiver<()>| {
                client.try_recv() == Err(oneshot::error::TryRecvError::Empty)
            };
            assert!(is_there(&mut first) && is_there(&mut third) && is_there(&mut fourth));
            drop(mark);
            let _fifth = serve_for_ever(places.take().await.unwrap());
            assert!(!is_there(&mut third) && is_there(&mut first) && is_there(&mut fourth));
        });
    }

    #[test]
    fn a_client_rests_when_it_takes_nothing_for_a_while() {
        let activity = Arc::new(ClientActivity::new());
        let now = Instant::now();
        assert!(activity.resting_since(now).is_some());
        let mark = activity.begin_request();
        assert!(activity.resting_since(now).is_none());
        activity.set_stalled(true);
        let since = activity.state().stalled_since.unwrap();
        assert!(activity.resting_since(since).is_none());
        assert_eq!(activity.resting_since(since + STALL_OF_REST), Some(since));
        activity.set_stalled(false);
        assert!(activity.resting_since(since + STALL_OF_REST).is_none());
        drop(mark);
        assert!(activity.resting_since(now).is_some());
    }
}
