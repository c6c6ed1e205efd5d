//! Who may ask: whoever has the token of this server, by a name of this server, from a page of its own.
//!
//! The token is in the address that is printed. The first request with it is answered with a cookie and the same address
//! without it, so that it stays in no history. `Host` is held against the names of the server, because the name of a hostile
//! page can be made to mean this machine (DNS rebinding); `Origin` and `Sec-Fetch-Site` against those of its pages.

use std::fmt;
use std::hint::black_box;
use std::net::SocketAddr;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, ORIGIN};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, Uri};
use sha2::{Digest as _, Sha256};

use crate::error::ServeError;
use crate::refusal::RequestRefusal;

/// Bytes of a token: nobody guesses one.
const TOKEN_BYTES: usize = 32;

/// The secret of a server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AccessToken(String);

impl AccessToken {
    /// Of the kernel's random bytes.
    pub(crate) fn random() -> Result<Self, ServeError> {
        let mut bytes = [0; TOKEN_BYTES];
        let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
        match filled {
            Ok(TOKEN_BYTES) => Ok(AccessToken(bytes.iter().map(|byte| format!("{byte:02x}")).collect())),
            Ok(few) => Err(ServeError::Start {
                what: "make a token",
                reason: format!("the kernel gave {few} random bytes of {TOKEN_BYTES}"),
            }),
            Err(error) => Err(ServeError::Start { what: "make a token", reason: error.to_string() }),
        }
    }

    /// As [`AccessToken::as_str`] has it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_digit = |letter: char| letter.is_ascii_digit() || matches!(letter, 'a'..='f');
        (text.len() == 2 * TOKEN_BYTES && text.chars().all(is_digit)).then(|| AccessToken(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is this one, in a time that tells nothing of how much of it is right.
    fn is_same(&self, tried: &str) -> bool {
        let [own, tried] = [self.0.as_str(), tried].map(|text| Sha256::digest(text.as_bytes()));
        let differing = own.iter().zip(tried.iter()).fold(0_u8, |found, (a, b)| black_box(found | (a ^ b)));
        black_box(differing) == 0
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken(..)")
    }
}

/// A name under which the server may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServedName {
    name: String,
    /// any, where a proxy is before it
    port: Option<u16>,
}

/// What is asked of every request before anything else.
#[derive(Debug, Clone)]
pub(crate) struct AccessRules {
    token: AccessToken,
    names: Vec<ServedName>,
    /// Cookies know no ports: one that is named after its port is not that of another server here.
    cookie: String,
    /// What pages show to write; none where nobody may.
    page_key: Option<AccessToken>,
}

/// What becomes of a request that is allowed to be asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// it is answered
    Granted,
    /// the token came in the address: this cookie is set, and the address asked for again without it
    CookieSet {
        /// for `Set-Cookie`
        cookie: String,
        /// path and query without the token
        location: String,
    },
}

/// Where a page shows its key.
const PAGE_KEY: HeaderName = HeaderName::from_static("x-perflab-key");

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

impl AccessRules {
    /// For a server on `address` (`None`: on a Unix socket) with the further names `hosts`.
    pub(crate) fn new(
        token: AccessToken,
        page_key: Option<AccessToken>,
        address: Option<SocketAddr>,
        hosts: &[String],
    ) -> Self {
        let port = address.map(|address| address.port());
        let mut names: Vec<ServedName> =
            ["localhost"].iter().map(|name| ServedName { name: (*name).to_owned(), port }).collect();
        if let Some(address) = address.filter(|address| !address.ip().is_unspecified()) {
            let name = match address {
                SocketAddr::V4(address) => address.ip().to_string(),
                SocketAddr::V6(address) => format!("[{}]", address.ip()),
            };
            names.push(ServedName { name, port });
        }
        names.extend(hosts.iter().map(|name| ServedName { name: name.to_ascii_lowercase(), port: None }));
        let cookie = port.map_or_else(|| "perflab_socket".to_owned(), |port| format!("perflab_{port}"));
        AccessRules { token, names, cookie, page_key }
    }

    /// Whether the request may be answered.
    ///
    /// # Errors
    /// 421 for another `Host`, 403 for a page of somebody else's or a wrong token, 401 without a token.
    pub(crate) fn admit(&self, request: &Parts) -> Result<Admission, RequestRefusal> {
        self.check_host(request)?;
        self.check_origin(request)?;
        if let Some(tried) = query_token(&request.uri) {
            if !self.token.is_same(tried) {
                return Err(RequestRefusal::new(
                    StatusCode::FORBIDDEN,
                    "this token is of another start of perflab serve: take the address that the running one printed",
                ));
            }
            if request.method == Method::GET {
                let cookie =
                    format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie, self.token.as_str());
                return Ok(Admission::CookieSet { cookie, location: location_without_token(&request.uri) });
            }
            return Ok(Admission::Granted);
        }
        let tried: Vec<&str> =
            bearer_token(&request.headers).into_iter().chain(self.cookie_tokens(&request.headers)).collect();
        if tried.iter().any(|tried| self.token.is_same(tried)) {
            return Ok(Admission::Granted);
        }
        let (status, sentence) = if tried.is_empty() {
            (StatusCode::UNAUTHORIZED, "open the address that perflab serve printed: it has the token")
        } else {
            (
                StatusCode::FORBIDDEN,
                "perflab serve was started again: open the address that it printed, which has the new token",
            )
        };
        Err(RequestRefusal::new(status, sentence))
    }

    /// Whether the request may write. Whoever has the token itself may; a page shows a key that only pages of this start have, as a
    /// browser sends the cookie whoever asks.
    ///
    /// # Errors
    /// 403 where nobody may, or without the key; 415 for a body that a form of another site can send.
    pub(crate) fn admit_writing(&self, headers: &HeaderMap) -> Result<(), RequestRefusal> {
        let forbidden = |sentence: &str| Err(RequestRefusal::new(StatusCode::FORBIDDEN, sentence));
        let Some(key) = &self.page_key else {
            return forbidden(
                "perflab serve reads only: start it with --write to change labels and add notes",
            );
        };
        let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if media.split(';').next().map(str::trim) != Some("application/json") {
            return Err(RequestRefusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "what is written comes as JSON, with Content-Type: application/json",
            ));
        }
        if bearer_token(headers).is_some_and(|tried| self.token.is_same(tried)) {
            return Ok(());
        }
        let shown = headers.get(PAGE_KEY).and_then(|value| value.to_str().ok());
        if headers.contains_key(ORIGIN) && shown.is_some_and(|shown| key.is_same(shown)) {
            return Ok(());
        }
        forbidden("this page is of an earlier start of perflab serve: load it again")
    }

    fn check_host(&self, request: &Parts) -> Result<(), RequestRefusal> {
        let mut hosts = request.headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(RequestRefusal::bad_request("a request names the server once, in its header Host"));
        };
        let is_own = |authority: &str| self.is_own_authority(authority);
        if !host.to_str().is_ok_and(is_own)
            || request.uri.authority().is_some_and(|authority| !is_own(authority.as_str()))
        {
            return Err(RequestRefusal::new(
                StatusCode::MISDIRECTED_REQUEST,
                "this server has another name: use the address that perflab serve printed, or give it this one with --host",
            ));
        }
        Ok(())
    }

    fn check_origin(&self, request: &Parts) -> Result<(), RequestRefusal> {
        let header = |name: HeaderName| request.headers.get(name).and_then(|value| value.to_str().ok());
        let is_own_origin = match request.headers.get(ORIGIN) {
            None => true,
            Some(origin) => origin.to_str().is_ok_and(|origin| {
                let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
                rest.is_some_and(|authority| self.is_own_authority(authority))
            }),
        };
        // A link on another page may be followed; nothing else may be asked from there.
        let is_followed = request.method == Method::GET && header(SEC_FETCH_MODE) == Some("navigate");
        let is_own_site = header(SEC_FETCH_SITE).is_none_or(|site| matches!(site, "same-origin" | "none"));
        if is_own_origin && (is_own_site || is_followed) {
            return Ok(());
        }
        Err(RequestRefusal::new(
            StatusCode::FORBIDDEN,
            "another site's page asked for this: perflab answers its own pages and scripts on this machine",
        ))
    }

    fn is_own_authority(&self, authority: &str) -> bool {
        let (name, port) = match authority.rsplit_once(':') {
            // The colons of an address of version 6 are in brackets.
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            _ => (authority, Some(80)),
        };
        let Some(port) = port else { return false };
        let is_of =
            |own: &ServedName| own.name.eq_ignore_ascii_case(name) && own.port.is_none_or(|own| own == port);
        self.names.iter().any(is_of)
    }

    /// The values of this server's cookie: a browser may send several of one name.
    fn cookie_tokens<'h>(&'h self, headers: &'h HeaderMap) -> impl Iterator<Item = &'h str> {
        let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.filter(|(name, _)| *name == self.cookie).map(|(_, value)| value)
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    // A scheme's letters may be large or small (RFC 9110, section 11.1).
    scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim())
}

/// The key of the token in an address.
const TOKEN_KEY: &str = "token=";

fn query_token(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix(TOKEN_KEY))
}

/// Path and query without the token; a path of one slash at its beginning, as two would name another server.
fn location_without_token(uri: &Uri) -> String {
    let rest: Vec<&str> =
        uri.query().unwrap_or_default().split('&').filter(|pair| !pair.starts_with(TOKEN_KEY)).collect();
    let path = format!("/{}", uri.path().trim_start_matches(['/', '\\']));
    let rest = rest.join("&");
    if rest.is_empty() { path } else { format!("{path}?{rest}") }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn rules(hosts: &[&str]) -> AccessRules {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let key = Some(AccessToken("key".into()));
        AccessRules::new(AccessToken("secret".into()), key, Some("127.0.0.1:8080".parse().unwrap()), &hosts)
    }

    fn ask(rules: &AccessRules, uri: &str, headers: &[(&str, &str)]) -> Result<Admission, u16> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        rules.admit(&parts).map_err(|refused| refused.status.as_u16())
    }

    #[test]
    fn only_names_of_the_server_are_answered() {
        let rules = rules(&["lab.example"]);
        let admitted = |host: &str| ask(&rules, "/", &[("host", host), ("authorization", "Bearer secret")]);
        for own in ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080", "lab.example", "lab.example:443"] {
            assert_eq!(admitted(own), Ok(Admission::Granted), "{own}");
        }
        for other in
            ["127.0.0.1", "127.0.0.1:81", "evil.example:8080", "localhost:8080:8080", "", ":8080", "[::1]"]
        {
            assert_eq!(admitted(other), Err(421), "{other}");
        }
        assert_eq!(ask(&rules, "/", &[("authorization", "Bearer secret")]), Err(400));
        let twice =
            [("host", "localhost:8080"), ("host", "evil.example"), ("authorization", "Bearer secret")];
        assert_eq!(ask(&rules, "/", &twice), Err(400));
        let absolute = ask(&rules, "http://evil.example/", &[("host", "localhost:8080")]);
        assert_eq!(absolute, Err(421));
    }

    #[test]
    fn the_token_is_taken_from_the_address_the_cookie_or_the_header() {
        let rules = rules(&[]);
        let own = ("host", "localhost:8080");
        assert_eq!(ask(&rules, "/", &[own]), Err(401));
        assert_eq!(ask(&rules, "/?token=wrong", &[own]), Err(403));
        assert_eq!(ask(&rules, "/", &[own, ("cookie", "a=b; perflab_8080=secret")]), Ok(Admission::Granted));
        assert_eq!(ask(&rules, "/", &[own, ("cookie", "perflab_8081=secret")]), Err(401));
        assert_eq!(ask(&rules, "/", &[own, ("cookie", "perflab_8080=secre")]), Err(403));
        let Ok(Admission::CookieSet { cookie, location }) =
            ask(&rules, "//evil.example/x?a=1&token=secret", &[own])
        else {
            panic!("not admitted");
        };
        assert_eq!(cookie, "perflab_8080=secret; Path=/; HttpOnly; SameSite=Strict");
        assert_eq!(location, "/evil.example/x?a=1");
    }

    #[test]
    fn pages_of_others_ask_for_nothing() {
        let rules = rules(&[]);
        let with = |more: &[(&str, &str)]| {
            let own = [("host", "localhost:8080"), ("authorization", "Bearer secret")];
            ask(&rules, "/", &[&own, more].concat())
        };
        assert_eq!(with(&[("origin", "http://localhost:8080")]), Ok(Admission::Granted));
        let small = [("host", "localhost:8080"), ("authorization", "bearer secret")];
        assert_eq!(ask(&rules, "/", &small), Ok(Admission::Granted));
        for origin in ["http://evil.example", "null", "http://localhost:8081", "file://", ""] {
            assert_eq!(with(&[("origin", origin)]), Err(403), "{origin}");
        }
        let site = |site, mode| with(&[("sec-fetch-site", site), ("sec-fetch-mode", mode)]);
        assert_eq!(site("same-origin", "cors"), Ok(Admission::Granted));
        assert_eq!(site("cross-site", "navigate"), Ok(Admission::Granted));
        assert_eq!((site("cross-site", "no-cors"), site("same-site", "cors")), (Err(403), Err(403)));
    }

    #[test]
    fn a_page_writes_with_its_key_and_a_script_with_the_token() {
        let rules = rules(&[]);
        let write = |rules: &AccessRules, headers: &[(&'static str, &'static str)]| {
            let headers = headers.iter().map(|(name, value)| {
                (HeaderName::from_static(name), axum::http::HeaderValue::from_static(value))
            });
            rules.admit_writing(&headers.collect()).map_err(|refused| refused.status.as_u16())
        };
        let json = ("content-type", "application/json; charset=utf-8");
        let origin = ("origin", "http://localhost:8080");
        assert_eq!(write(&rules, &[json, ("authorization", "Bearer secret")]), Ok(()));
        assert_eq!(write(&rules, &[json, origin, ("x-perflab-key", "key")]), Ok(()));
        assert_eq!(write(&rules, &[json, ("x-perflab-key", "key")]), Err(403));
        assert_eq!(write(&rules, &[json, origin, ("x-perflab-key", "secret")]), Err(403));
        assert_eq!(write(&rules, &[json, origin, ("cookie", "perflab_8080=secret")]), Err(403));
        assert_eq!(write(&rules, &[("authorization", "Bearer secret")]), Err(415));
        let text = ("content-type", "text/plain");
        assert_eq!(write(&rules, &[text, ("authorization", "Bearer secret")]), Err(415));
        let reading = AccessRules { page_key: None, ..rules };
        assert_eq!(write(&reading, &[json, ("authorization", "Bearer secret")]), Err(403));
    }
}
