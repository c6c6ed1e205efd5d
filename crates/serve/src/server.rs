//! The server: from an address to an end by signal. What is asynchronous stays behind [`serve_archive`], which blocks.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::rejection::{QueryRejection, RawPathParamsRejection};
use axum::extract::{Query, RawPathParams, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{Response, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::{get, post};
use perflab_archive::Archive;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::access::{AccessRules, AccessToken, Admission};
use crate::board_cache::BoardCache;
use crate::error::ServeError;
use crate::laboratory::WebLaboratory;
use crate::listener::{ClientListener, bind_socket, serve_clients};
use crate::live_feed::LiveFeed;
use crate::open_api::open_api_document;
use crate::page::{PAGE_POLICY, render_refusal};
use crate::page_cache::PageCache;
use crate::refusal::{RefusalDocument, RequestRefusal};
use crate::result_source::ResultSource;
use crate::route::{
    ApiRoute, HANDLER_THREADS, HandlerLimits, RouteAnswer, RouteContent, RouteMethod, RouteRequest,
};
use crate::route_table::ROUTES;
use crate::server_counts::ServerCounts;
use crate::token_file::read_token_file;

/// How long a request may take.
const REQUEST_TIME: Duration = Duration::from_secs(120);

/// Bytes of a request's body.
const MOST_BODY_BYTES: usize = 64 << 10;

/// Reports are made on threads as large as the main one.
const HANDLER_STACK: usize = 8 << 20;

/// How long is waited for handlers that nobody waits for any more.
const HANDLER_FAREWELL: Duration = Duration::from_millis(500);

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenPlace {
    /// an address and a port, 0 for any that is free
    Tcp(SocketAddr),
    /// a Unix socket
    Unix(PathBuf),
}

/// `8080` is a port of this machine alone; an address has its port behind a colon.
impl FromStr for ListenPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let local = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let address = text.parse().map(local).or_else(|_| text.parse());
        address
            .map(ListenPlace::Tcp)
            .map_err(|_| "write a port, or ADDRESS:PORT such as 127.0.0.1:8080".into())
    }
}

/// How to serve.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// where to listen
    pub place: ListenPlace,
    /// further names under which the server is reached, such as that of a proxy
    pub hosts: Vec<String>,
    /// whether labels may be changed and notes be written
    pub may_write: bool,
    /// the file that keeps the token; without one, each start makes another
    pub token_file: Option<PathBuf>,
}

struct ServerState {
    rules: AccessRules,
    laboratory: Arc<WebLaboratory>,
    limits: HandlerLimits,
}

/// Serves an archive until `stop` is set. `begun` is told the address, with the token, once clients can come.
///
/// # Errors
/// An address that cannot be listened on.
pub fn serve_archive(
    archive: Archive,
    source: Arc<dyn ResultSource>,
    options: &ServeOptions,
    stop: &AtomicBool,
    begun: impl FnOnce(&str),
) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(HANDLER_THREADS)
        .thread_name("serve")
        .thread_stack_size(HANDLER_STACK)
        .build()
        .map_err(|error| ServeError::Start {
            what: "start the server's runtime",
            reason: error.to_string(),
        })?;
    let served = runtime.block_on(async {
        let (listener, address) = listen(options).await?;
        let token = match &options.token_file {
            Some(path) => read_token_file(path)?,
            None => AccessToken::random()?,
        };
        let page_key = options.may_write.then(AccessToken::random).transpose()?;
        let place = match (address, options.hosts.first()) {
            (None, _) => "localhost".to_owned(),
            // All addresses of a machine are none that a browser could be given.
            (Some(address), Some(host)) if address.ip().is_unspecified() => {
                format!("{host}:{}", address.port())
            }
            (Some(address), _) => address.to_string(),
        };
        begun(&format!("http://{place}/?token={}", token.as_str()));
        let open_api = serde_json::to_vec(&open_api_document());
        let open_api = open_api
            .map_err(|error| ServeError::Start { what: "describe the API", reason: error.to_string() })?;
        let laboratory = WebLaboratory {
            archive,
            source,
            pages: PageCache::default(),
            boards: BoardCache::default(),
            feed: Arc::new(LiveFeed::new()),
            counts: Arc::new(ServerCounts::new()),
            open_api: open_api.into(),
            page_key: page_key.as_ref().map(|key| key.as_str().to_owned()),
        };
        let counts = Arc::clone(&laboratory.counts);
        let state = ServerState {
            rules: AccessRules::new(token, page_key, address, &options.hosts),
            laboratory: Arc::new(laboratory),
            limits: HandlerLimits::new(),
        };
        serve_clients(listener, build_router(Arc::new(state)), counts, stop).await;
        Ok(())
    });
    runtime.shutdown_timeout(HANDLER_FAREWELL);
    served
}

async fn listen(options: &ServeOptions) -> Result<(ClientListener, Option<SocketAddr>), ServeError> {
    let address = match &options.place {
        ListenPlace::Unix(path) => return Ok((bind_socket(path)?, None)),
        ListenPlace::Tcp(address) => *address,
    };
    let place = address.to_string();
    if !address.ip().is_loopback() && options.hosts.is_empty() {
        return Err(ServeError::Unnamed { place });
    }
    let refuse = |source| ServeError::Listen { place: place.clone(), source };
    let listener = TcpListener::bind(address).await.map_err(refuse)?;
    let address = listener.local_addr().map_err(refuse)?;
    Ok((ClientListener::Tcp(listener), Some(address)))
}

fn build_router(state: Arc<ServerState>) -> Router {
    let router = ROUTES.iter().fold(Router::new(), |router, route| {
        let answer = move |State(state): State<Arc<ServerState>>,
                           path: Result<RawPathParams, RawPathParamsRejection>,
                           query: Result<Query<Vec<(String, String)>>, QueryRejection>,
                           request: Request| async move {
            let answered = answer_route(&state, route, (path, query), request).await;
            answered.unwrap_or_else(refusal_mark)
        };
        let methods = match route.method {
            RouteMethod::Get => get(answer),
            RouteMethod::Post => post(answer),
        };
        router.route(route.path, methods)
    });
    router
        .fallback(|| async {
            refusal_mark(RequestRefusal::not_found(
                "there is no such page: `/` has the runs, `/api/v1/openapi.json` all there is",
            ))
        })
        .method_not_allowed_fallback(|| async {
            refusal_mark(RequestRefusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this is asked for with another method: `/api/v1/openapi.json` has them",
            ))
        })
        .layer(from_fn_with_state(Arc::clone(&state), guard_request))
        .with_state(state)
}

/// A refusal on its way to where it is written for people or for programs.
fn refusal_mark(refused: RequestRefusal) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = refused.status;
    response.extensions_mut().insert(refused);
    response
}

/// What stands in an address, where it can be read.
type AddressParts =
    (Result<RawPathParams, RawPathParamsRejection>, Result<Query<Vec<(String, String)>>, QueryRejection>);

async fn answer_route(
    state: &ServerState,
    route: &'static ApiRoute,
    (path, query): AddressParts,
    request: Request,
) -> Result<Response<Body>, RequestRefusal> {
    let path = path.map_err(|_| RequestRefusal::bad_request("a part of the path is no text in UTF-8"))?;
    let Query(query) = query.map_err(|_| {
        RequestRefusal::bad_request("the query cannot be read: write name=value, joined by &")
    })?;
    let body = if route.method == RouteMethod::Post {
        state.rules.admit_writing(request.headers())?;
        let read = to_bytes(request.into_body(), MOST_BODY_BYTES).await;
        read.map_err(|_| body_refusal())?
    } else {
        Bytes::new()
    };
    let path = path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let request = RouteRequest { path, query, body };
    let answer = state.limits.call(route, Arc::clone(&state.laboratory), request).await?;
    Ok(content_response(&route.gives, answer))
}

fn body_refusal() -> RequestRefusal {
    let sentence = format!("a request has {MOST_BODY_BYTES} bytes at most, and they come to an end");
    RequestRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, sentence)
}

fn content_response(gives: &RouteContent, answer: RouteAnswer) -> Response<Body> {
    let mut response = Response::new(answer.body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(gives.media_type()));
    if let Some(policy) = answer.policy.and_then(|policy| HeaderValue::try_from(policy).ok()) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// What stands before every route: who asks, how much, and how long it may take; and what every answer says to a browser.
async fn guard_request(
    State(state): State<Arc<ServerState>>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let is_api = request.uri().path().starts_with("/api/");
    let mut response = match admit_request(&state, request, next).await {
        Ok(response) => response,
        Err(refused) => refusal_mark(refused),
    };
    if let Some(refused) = response.extensions_mut().remove::<RequestRefusal>() {
        write_refusal(&mut response, &refused, is_api);
    }
    state.laboratory.counts.count_answer(response.status());
    let headers = response.headers_mut();
    for (name, value) in EVERYWHERE {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(PAGE_POLICY));
    response
}

/// Headers of every answer.
const EVERYWHERE: [(HeaderName, &str); 6] = [
    (CACHE_CONTROL, "no-store"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

async fn admit_request(
    state: &ServerState,
    request: Request,
    next: Next,
) -> Result<Response<Body>, RequestRefusal> {
    let (parts, body) = request.into_parts();
    if body.size_hint().lower() > MOST_BODY_BYTES as u64 {
        return Err(body_refusal());
    }
    match state.rules.admit(&parts)? {
        Admission::CookieSet { cookie, location } => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::SEE_OTHER;
            for (name, value) in [(SET_COOKIE, cookie), (LOCATION, location)] {
                let value = HeaderValue::try_from(value)
                    .map_err(|_| RequestRefusal::bad_request("the address has letters that none has"))?;
                response.headers_mut().insert(name, value);
            }
            Ok(response)
        }
        Admission::Granted => {
            let answered = timeout(REQUEST_TIME, next.run(Request::from_parts(parts, body))).await;
            answered.map_err(|_| {
                RequestRefusal::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "this takes longer than two minutes: ask again, as it goes on meanwhile, or use the command line",
                )
            })
        }
    }
}

fn write_refusal(response: &mut Response<Body>, refused: &RequestRefusal, is_api: bool) {
    let (body, media) = if is_api {
        let text = serde_json::to_vec(&RefusalDocument { error: &refused.sentence }).unwrap_or_default();
        (Bytes::from(text), "application/json")
    } else {
        (render_refusal(refused), "text/html; charset=utf-8")
    };
    *response.status_mut() = refused.status;
    *response.body_mut() = Body::from(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    if refused.status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if refused.status == StatusCode::PAYLOAD_TOO_LARGE {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_of_this_machine() {
        let tcp = |text: &str| ListenPlace::Tcp(text.parse().unwrap());
        assert_eq!("8080".parse(), Ok(tcp("127.0.0.1:8080")));
        assert_eq!("[::1]:0".parse(), Ok(tcp("[::1]:0")));
        assert!(
            ["", "localhost:1", "70000", "127.0.0.1"].iter().all(|text| text.parse::<ListenPlace>().is_err())
        );
    }
}
