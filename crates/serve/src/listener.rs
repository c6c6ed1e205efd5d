//! Where clients come in: a TCP port or a Unix socket. Bounded in number, in the bytes of a head, and in time: a client that is
//! slow, or half open, holds a place for some seconds, or until a new client needs it, and no memory to speak of.

use std::convert::Infallible;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, UnixListener};
use tokio::time::{Sleep, sleep, timeout};

use crate::client_places::{ClientActivity, ClientPlace, ClientPlaces, MarkedBody};
use crate::error::ServeError;
use crate::server_counts::ServerCounts;

/// Clients at once; a further one has the place of whoever rested longest.
const MOST_CONNECTIONS: usize = 512;

/// How long a client may take for the head of a request, and rest between two.
const HEAD_TIME: Duration = Duration::from_secs(15);

/// How long a client may take nothing of an answer.
const STALL_TIME: Duration = Duration::from_secs(30);

/// Bytes of the head of a request.
const MOST_HEAD_BYTES: usize = 32 << 10;

/// Headers of a request.
const MOST_HEADERS: usize = 64;

/// How often is looked whether to stop.
const STOP_LOOK: Duration = Duration::from_millis(100);

/// How long requests may take that were begun before.
const FAREWELL: Duration = Duration::from_secs(2);

/// After a failed accept, such as one without a free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Clients that come in.
pub(crate) enum ClientListener {
    Tcp(TcpListener),
    Unix { listener: UnixListener, _file: SocketFile },
}

/// The file of a socket, removed with it.
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A connection of either kind.
trait ClientStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ClientStream for S {}

impl ClientListener {
    async fn accept(&self) -> io::Result<Box<dyn ClientStream>> {
        match self {
            ClientListener::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
            ClientListener::Unix { listener, .. } => Ok(Box::new(listener.accept().await?.0)),
        }
    }
}

/// A socket at `path` that only this user can connect to. One that nobody serves any more is replaced.
pub(crate) fn bind_socket(path: &Path) -> Result<ClientListener, ServeError> {
    let refuse = |source: io::Error| ServeError::Listen { place: path.display().to_string(), source };
    if let Ok(found) = path.symlink_metadata() {
        let is_served = || std::os::unix::net::UnixStream::connect(path).is_ok();
        if !found.file_type().is_socket() || is_served() {
            return Err(ServeError::SocketTaken { path: path.into() });
        }
        std::fs::remove_file(path).map_err(refuse)?;
    }
    let bind = || -> io::Result<_> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        let file = SocketFile(path.into());
        // Nobody can connect before it listens.
        rustix::fs::chmod(path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
        rustix::net::listen(&socket, 1024)?;
        Ok((UnixListener::from_std(socket.into())?, file))
    };
    bind().map(|(listener, file)| ClientListener::Unix { listener, _file: file }).map_err(refuse)
}

/// Serves clients until `stop` is set, and then those for a moment that have asked before.
pub(crate) async fn serve_clients(
    listener: ClientListener,
    router: Router,
    counts: Arc<ServerCounts>,
    stop: &AtomicBool,
) {
    let places = Arc::new(ClientPlaces::new(MOST_CONNECTIONS, counts));
    let clients = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MOST_HEAD_BYTES)
        .max_headers(MOST_HEADERS);
    loop {
        let next = tokio::select! {
            next = next_client(&listener, &places) => next,
            () = wait_for(stop) => break,
        };
        let Ok((stream, place)) = next else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        place.spawn(|activity| {
            let stream = StallLimit { stream, stalled: None, activity: Arc::clone(&activity) };
            let routed = TowerToHyperService::new(router.clone());
            let service = service_fn(move |request| {
                let mark = activity.begin_request();
                let answered = routed.call(request);
                async move { Ok::<_, Infallible>(answered.await?.map(|body| MarkedBody::new(body, mark))) }
            });
            let served = clients.watch(http.serve_connection(TokioIo::new(stream), service));
            async move {
                // What is wrong with a connection is its client's business.
                let _ = served.await;
            }
        });
    }
    drop(listener);
    let _ = timeout(FAREWELL, clients.shutdown()).await;
}

/// The next client. It is there before it gets a place, so that nobody is sent away for one who may come.
async fn next_client(
    listener: &ClientListener,
    places: &Arc<ClientPlaces>,
) -> io::Result<(Box<dyn ClientStream>, ClientPlace)> {
    let stream = listener.accept().await?;
    let place = places.take().await.ok_or_else(|| io::Error::other("the server ends"))?;
    Ok((stream, place))
}

async fn wait_for(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        sleep(STOP_LOOK).await;
    }
}

/// A connection that fails when its client takes nothing for [`STALL_TIME`].
struct StallLimit {
    stream: Box<dyn ClientStream>,
    stalled: Option<Pin<Box<Sleep>>>,
    activity: Arc<ClientActivity>,
}

impl StallLimit {
    fn limit<T>(&mut self, polled: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            if self.stalled.take().is_some() {
                self.activity.set_stalled(false);
            }
            return polled;
        }
        self.activity.set_stalled(true);
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(STALL_TIME)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for StallLimit {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for StallLimit {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limit(polled, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.limit(polled, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.limit(polled, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.limit(polled, context)
    }
}
