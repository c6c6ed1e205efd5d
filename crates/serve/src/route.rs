//! A route as it is declared: its path, what it takes, what it gives, and the function behind it; and its dispatch.

use std::str::FromStr;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use schemars::{Schema, SchemaGenerator};
use tokio::sync::Semaphore;

use crate::laboratory::WebLaboratory;
use crate::refusal::RequestRefusal;

/// One route.
pub(crate) struct ApiRoute {
    pub(crate) method: RouteMethod,
    /// As in OpenAPI: `/api/v1/runs/{id}`.
    pub(crate) path: &'static str,
    /// A name of its own, for generated clients.
    pub(crate) id: &'static str,
    /// What it gives, in a line.
    pub(crate) about: &'static str,
    pub(crate) parameters: &'static [RouteParameter],
    pub(crate) gives: RouteContent,
    pub(crate) handler: RouteHandler,
}

/// How a route is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteMethod {
    /// reads
    Get,
    /// writes, what its body says
    Post,
}

impl RouteMethod {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            RouteMethod::Get => "GET",
            RouteMethod::Post => "POST",
        }
    }
}

/// One parameter of a route.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouteParameter {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) kind: RouteParameterKind,
    pub(crate) is_required: bool,
}

impl RouteParameter {
    pub(crate) const fn optional(name: &'static str, kind: RouteParameterKind, about: &'static str) -> Self {
        RouteParameter { name, about, kind, is_required: false }
    }

    pub(crate) const fn required(name: &'static str, kind: RouteParameterKind, about: &'static str) -> Self {
        RouteParameter { name, about, kind, is_required: true }
    }
}

/// What a parameter holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteParameterKind {
    /// a part of the path
    Path,
    /// a text
    Text,
    /// a text, or several
    Texts,
    /// a whole number
    Number,
}

/// What a route gives.
pub(crate) enum RouteContent {
    /// a page
    Page,
    /// JSON of this schema
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// a stream of Arrow's IPC
    Arrow,
    /// server-sent events, with data of this schema
    Events(fn(&mut SchemaGenerator) -> Schema),
    /// text of this type
    Text(&'static str),
}

impl RouteContent {
    /// As in `Content-Type`.
    pub(crate) fn media_type(&self) -> &'static str {
        match self {
            RouteContent::Page => "text/html; charset=utf-8",
            RouteContent::Json(_) => "application/json",
            RouteContent::Arrow => "application/vnd.apache.arrow.stream",
            RouteContent::Events(_) => "text/event-stream",
            RouteContent::Text(media) => media,
        }
    }
}

/// What sends an answer that is there already.
type RouteFinder = fn(&WebLaboratory, &RouteRequest) -> Result<Option<RouteAnswer>, RequestRefusal>;

type RouteFunction = fn(&WebLaboratory, &RouteRequest) -> Result<RouteAnswer, RequestRefusal>;

/// The function behind a route; both kinds read files, on threads that may wait.
pub(crate) enum RouteHandler {
    /// looks things up
    Lookup(RouteFunction),
    /// makes pages and comparisons, which takes memory: few at once
    Rendering(RouteFunction),
    /// the same, unless the first function finds it made: who asks for that waits for nobody's rendering
    Kept(RouteFinder, RouteFunction),
    /// writes what a body of this schema says
    Writing(RouteFunction, fn(&mut SchemaGenerator) -> Schema),
    /// opens a stream, which waits for nothing
    Feed(fn(&WebLaboratory) -> Result<Body, RequestRefusal>),
}

/// The parameters of a request.
#[derive(Debug, Default)]
pub(crate) struct RouteRequest {
    pub(crate) path: Vec<(String, String)>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

/// What is sent.
#[derive(Debug)]
pub(crate) struct RouteAnswer {
    pub(crate) body: Body,
    /// The policy of a page that is not of the laboratory's own making.
    pub(crate) policy: Option<String>,
}

impl RouteAnswer {
    pub(crate) fn new(body: impl Into<Body>) -> Self {
        RouteAnswer { body: body.into(), policy: None }
    }

    /// A value as JSON.
    pub(crate) fn json(value: &impl serde::Serialize) -> Result<Self, RequestRefusal> {
        let text =
            serde_json::to_vec(value).map_err(|error| RequestRefusal::unexpected(error.to_string()))?;
        Ok(RouteAnswer::new(text))
    }
}

impl RouteRequest {
    /// A part of the path.
    pub(crate) fn path_part(&self, name: &str) -> &str {
        self.path.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
    }

    /// A text of the query; an empty one is as none, as forms send what was not filled in.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).next()
    }

    pub(crate) fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        let of_name = self.query.iter().filter(move |(known, _)| known == name);
        of_name.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(crate) fn required_text(&self, name: &str) -> Result<&str, RequestRefusal> {
        self.text(name)
            .ok_or_else(|| RequestRefusal::bad_request(format!("the parameter `{name}` is missing")))
    }

    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, RequestRefusal> {
        let parse = |text: &str| {
            text.parse().map_err(|_| {
                RequestRefusal::bad_request(format!("`{name}={text}` is no whole number in its range"))
            })
        };
        self.text(name).map(parse).transpose()
    }

    /// The address of a page with the same query but for a parameter.
    pub(crate) fn address_with(&self, path: &str, name: &str, value: &str) -> String {
        let kept = self.query.iter().filter(|(known, value)| known != name && !value.is_empty());
        let pairs = kept.map(|(name, value)| (name.as_str(), value.as_str())).chain([(name, value)]);
        let pairs: Vec<String> =
            pairs.map(|(name, value)| format!("{name}={}", encode_query(value))).collect();
        format!("{path}?{}", pairs.join("&"))
    }

    /// Refuses what a route does not know, and several of what it takes once: a slip would change nothing, in silence.
    pub(crate) fn check_parameters(&self, route: &ApiRoute) -> Result<(), RequestRefusal> {
        let known = |name: &str| {
            route.parameters.iter().find(|known| known.name == name && known.kind != RouteParameterKind::Path)
        };
        for (name, _) in &self.query {
            let Some(parameter) = known(name) else {
                let names: Vec<&str> = route
                    .parameters
                    .iter()
                    .filter(|parameter| parameter.kind != RouteParameterKind::Path)
                    .map(|parameter| parameter.name)
                    .collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(RequestRefusal::bad_request(format!(
                    "`{name}` is no parameter of {}: there are {names}",
                    route.path
                )));
            };
            if parameter.kind != RouteParameterKind::Texts && self.texts(name).count() > 1 {
                return Err(RequestRefusal::bad_request(format!("`{name}` is given twice")));
            }
        }
        Ok(())
    }
}

/// A text as a value of a query.
pub(crate) fn encode_query(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode =
        |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

/// How many requests read files at once.
#[derive(Debug)]
pub(crate) struct HandlerLimits {
    lookups: Arc<Semaphore>,
    renderings: Arc<Semaphore>,
}

/// Lookups at once.
const MOST_LOOKUPS: usize = 4;

/// Pages and comparisons that are made at once.
const MOST_RENDERINGS: usize = 2;

/// Threads that may wait for files.
pub(crate) const HANDLER_THREADS: usize = MOST_LOOKUPS + MOST_RENDERINGS;

impl HandlerLimits {
    pub(crate) fn new() -> Self {
        HandlerLimits {
            lookups: Arc::new(Semaphore::new(MOST_LOOKUPS)),
            renderings: Arc::new(Semaphore::new(MOST_RENDERINGS)),
        }
    }

    /// Calls the function behind a route.
    pub(crate) async fn call(
        &self,
        route: &'static ApiRoute,
        laboratory: Arc<WebLaboratory>,
        request: RouteRequest,
    ) -> Result<RouteAnswer, RequestRefusal> {
        request.check_parameters(route)?;
        let request = Arc::new(request);
        let (limit, function) = match route.handler {
            RouteHandler::Lookup(function) => (&self.lookups, function),
            RouteHandler::Rendering(function) => (&self.renderings, function),
            RouteHandler::Kept(find, function) => {
                let (laboratory, request) = (Arc::clone(&laboratory), Arc::clone(&request));
                if let Some(answer) =
                    call_on_thread(&self.lookups, move || find(&laboratory, &request)).await?
                {
                    return Ok(answer);
                }
                (&self.renderings, function)
            }
            RouteHandler::Writing(function, _) => (&self.lookups, function),
            RouteHandler::Feed(open) => return open(&laboratory).map(RouteAnswer::new),
        };
        call_on_thread(limit, move || function(&laboratory, &request)).await
    }
}

/// Calls a function on a thread that may wait, once there is a place. The place is free when the function has ended, though nobody
/// waits for it any more.
async fn call_on_thread<T: Send + 'static>(
    places: &Arc<Semaphore>,
    function: impl FnOnce() -> Result<T, RequestRefusal> + Send + 'static,
) -> Result<T, RequestRefusal> {
    let place = Arc::clone(places)
        .acquire_owned()
        .await
        .map_err(|_| RequestRefusal::new(StatusCode::SERVICE_UNAVAILABLE, "perflab serve is ending"))?;
    let called = tokio::task::spawn_blocking(move || {
        let _place = place;
        function()
    });
    called.await.unwrap_or_else(|_| {
        Err(RequestRefusal::unexpected(
            "perflab made a mistake here: its terminal has the message; please report it",
        ))
    })
}
