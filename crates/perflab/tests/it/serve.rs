//! `perflab serve`, asked over real sockets: what it answers is what the verbs print, and whoever has no business here gets a
//! sentence and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_ipc::reader::StreamReader;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::laboratory::Sandbox;

/// A server of a sandbox's archive.
pub struct LabServer {
    child: Child,
    /// `127.0.0.1:PORT`
    pub place: String,
    pub token: String,
    /// the token as a script sends it
    bearer: String,
}

/// What a server said.
#[derive(Debug)]
pub struct HttpReply {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl HttpReply {
    pub fn read(mut from: impl std::io::Read) -> Self {
        let mut bytes = Vec::new();
        // A server may close while we still write.
        let _ = from.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no head: {:?}", String::from_utf8_lossy(&bytes)));
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.map(|line| line.split_once(": ").unwrap());
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        HttpReply { status, headers, body: bytes[end + 4..].to_vec() }
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The columns of an answer in Arrow's stream.
    fn columns(&self) -> RecordBatch {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        let mut batches = StreamReader::try_new(&self.body[..], None).unwrap();
        batches.next().unwrap().unwrap()
    }
}

impl LabServer {
    pub fn start(laboratory: &Sandbox, more: &[&str]) -> Self {
        let words = [&["serve"], more].concat();
        let mut child =
            laboratory.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        let Some(rest) = address.trim().strip_prefix("http://") else {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{words:?}: {address}{said}");
        };
        let (place, token) = rest.split_once("/?token=").unwrap();
        LabServer {
            place: place.to_owned(),
            bearer: format!("Bearer {token}"),
            token: token.to_owned(),
            child,
        }
    }

    /// Sends bytes as they are.
    fn send(&self, request: &[u8]) -> HttpReply {
        let mut stream = TcpStream::connect(&self.place).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(150))).unwrap();
        let _ = stream.write_all(request);
        HttpReply::read(stream)
    }

    fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> HttpReply {
        let mut request = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        self.send((request + "\r\n").as_bytes())
    }

    /// What a script sends.
    fn own_headers(&self) -> [(&str, &str); 2] {
        [("Host", &self.place), ("Authorization", &self.bearer)]
    }

    pub fn get(&self, target: &str) -> HttpReply {
        self.ask("GET", target, &self.own_headers())
    }

    fn post(&self, target: &str, headers: &[(&str, &str)], body: &str) -> HttpReply {
        let mut request = format!(
            "POST {target} HTTP/1.1\r\nConnection: close\r\nHost: {}\r\nContent-Length: {}\r\n",
            self.place,
            body.len()
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        self.send(format!("{request}\r\n{body}").as_bytes())
    }

    pub fn get_json(&self, target: &str) -> Value {
        let reply = self.get(target);
        assert_eq!(reply.status, 200, "{target}: {}", reply.text());
        reply.json()
    }

    /// Ends it with a signal; what it said meanwhile on stderr.
    fn stop(mut self, signal: Signal) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for LabServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A text as a value of a query.
pub fn encode_query(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    let encode = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

/// Two labels of the same study, watched by monitors.
fn prepare_watched_archive() -> Sandbox {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "watched.toml",
        "run = { iterations = 6, warmup = 0 }\nmonitors = { vmstat = \"2ms\", net-dev = \"5ms\" }\n\
         [workload.slow]\n[factor.part]\nkind = \"environment\"\nkey = \"PART\"\nlevels = [\"a\", \"b\"]",
    );
    laboratory.write_workload("slow", "", "sleep 0.05; echo speed 1$(date +%N | tail -c 3)");
    for label in ["before", "after"] {
        laboratory.run_successfully(&["run", &study, "--label", label, "--quiet"]);
    }
    laboratory
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn run_folders(laboratory: &Sandbox) -> Vec<PathBuf> {
    let runs = fs::read_dir(laboratory.path("archive/runs")).unwrap();
    let mut runs: Vec<PathBuf> = runs.map(|run| run.unwrap().path()).collect();
    runs.sort();
    runs
}

fn folder_name(path: &std::path::Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn the_token_becomes_a_cookie_that_opens_every_page() {
    let laboratory = prepare_watched_archive();
    let server = LabServer::start(&laboratory, &[]);
    let host = ("Host", server.place.as_str());
    let entered = server.ask("GET", &format!("/?token={}&q=before", server.token), &[host]);
    assert_eq!((entered.status, entered.headers["location"].as_str()), (303, "/?q=before"));
    let cookie = &entered.headers["set-cookie"];
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let id = folder_name(&run_folders(&laboratory)[0]);
    let pages = [
        "/",
        "/boards",
        "/?q=before",
        "/runs/@latest",
        &format!("/runs/{id}"),
        "/compare?a=before&b=after",
        "/history",
    ];
    for page in pages {
        let reply = server.ask("GET", page, &[host, ("Cookie", cookie)]);
        assert_eq!(reply.status, 200, "{page}: {}", reply.text());
        assert_eq!(reply.headers["content-type"], "text/html; charset=utf-8");
        let policy = &reply.headers["content-security-policy"];
        assert!(
            policy.starts_with("default-src 'none'") && policy.ends_with("frame-ancestors 'none'"),
            "{policy}"
        );
        assert_eq!(reply.headers["referrer-policy"], "no-referrer");
        assert!(!reply.text().contains(&server.token), "{page} has the token");
    }
    let tokens = [("nothing", vec![]), ("another", vec![("Cookie", "perflab_1=a")])];
    for (what, more) in tokens {
        let reply = server.ask("GET", "/api/v1/runs", &[&[host], more.as_slice()].concat());
        assert_eq!((reply.status, reply.json()["error"].is_string()), (401, true), "{what}");
    }
    let wrong = server.ask("GET", "/", &[host, ("Authorization", "Bearer 00")]);
    assert_eq!(wrong.status, 403);
    let (code, said) = server.stop(Signal::INT);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn what_it_answers_is_what_the_verbs_print() {
    let laboratory = prepare_watched_archive();
    let server = LabServer::start(&laboratory, &[]);
    let listed = server.get_json("/api/v1/runs");
    let printed = laboratory.run_json(&["list"]);
    let ids = |rows: &Value, key: &str| -> Vec<String> {
        rows.as_array().unwrap().iter().map(|row| row[key].as_str().unwrap().to_owned()).collect()
    };
    let newest_first: Vec<String> = ids(&printed, "run").into_iter().rev().collect();
    assert_eq!(ids(&listed["runs"], "id"), newest_first);
    assert_eq!(ids(&server.get_json("/api/v1/runs?label=before")["runs"], "label"), ["before"]);
    assert_eq!(server.get_json("/api/v1/runs?q=WATCHED%20after")["matched"], 1);
    let first_page = server.get_json("/api/v1/runs?limit=1");
    let next = first_page["next"].as_str().unwrap();
    let second_page = server.get_json(&format!("/api/v1/runs?limit=1&before={next}"));
    assert_eq!((second_page["runs"][0]["label"].as_str(), second_page.get("next")), (Some("before"), None));

    let same = |target: &str, words: &[&str]| {
        let (asked, printed) = (server.get_json(target), laboratory.run_json(words));
        assert_eq!(asked, printed, "{target}");
        assert!(asked["rows"].as_array().is_some_and(|rows| !rows.is_empty()));
    };
    same("/api/v1/compare?a=before&b=after", &["compare", "before", "after"]);
    same("/api/v1/compare?a=after&by=part", &["compare", "after", "--by", "part"]);

    let run = server.get_json("/api/v1/runs/after");
    assert_eq!(
        (run["iterations"].as_u64(), run["failed"].as_u64(), run["planned"].as_u64()),
        (Some(12), Some(0), Some(12))
    );
    assert_eq!(run["factors"]["part"], serde_json::json!(["a", "b"]));
    let speed = run["cases"][0]["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .find(|metric| metric["name"] == "speed")
        .unwrap();
    assert_eq!(
        (speed["n"].as_u64(), speed["unit"].as_str(), speed["primary"].as_bool()),
        (Some(6), Some("ops/s"), Some(true))
    );
    assert_eq!(run["monitors"], serde_json::json!(["net-dev", "vmstat"]));
    assert_eq!(
        run["facts"]["kernel.release"],
        laboratory
            .run_json(&["show", "after", "--facts"])
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["fact"] == "kernel.release")
            .unwrap()["value"]
    );

    let report = laboratory.run_successfully(&["report", "before", "after", "-o", "-"]).out;
    let page = server.get("/compare?a=before&b=after").text();
    let main = |page: &str| page[page.find("<main").unwrap()..page.find("<footer").unwrap()].to_owned();
    assert_eq!(main(&page), main(&report));
}

/// A slip in a filter is refused by every route that takes it: a list of nothing would be believed.
#[test]
fn filters_by_what_is_not_there_are_refused() {
    let laboratory = prepare_watched_archive();
    let server = LabServer::start(&laboratory, &[]);
    for route in ["/api/v1/runs", "/"] {
        for query in ["status=finishd", "label=nothing", "study=nothing", "limit=0", "limt=1", "before=zzz"] {
            assert_eq!(server.get(&format!("{route}?{query}")).status, 400, "{route} {query}");
        }
        for query in
            ["status=failed", "label=after", "study=watched.toml", "study=watched", "q=nothing", "status="]
        {
            assert_eq!(server.get(&format!("{route}?{query}")).status, 200, "{route} {query}");
        }
    }
    for route in ["/api/v1/boards", "/boards"] {
        for query in ["study=nothing", "machine=nothing", "steps=all"] {
            assert_eq!(server.get(&format!("{route}?{query}")).status, 400, "{route} {query}");
        }
        assert_eq!(server.get(&format!("{route}?study=watched.toml")).status, 200, "{route}");
    }
    for query in ["study=nothing", "label=nothing", "metric=nothing", "workload=nothing", "last=0"] {
        let reply = server.get(&format!("/history?{query}"));
        assert_eq!((reply.status, reply.text().contains("--")), (400, false), "{query}: {}", reply.text());
    }
    let by = server.get("/api/v1/compare?a=after&by=nothing");
    assert_eq!((by.status, by.text().contains("--")), (400, false), "{}", by.text());
}

fn times(columns: &RecordBatch) -> Vec<i64> {
    columns.column_by_name("time_ns").unwrap().as_primitive::<Int64Type>().values().to_vec()
}

#[test]
fn series_are_columns_by_range_and_resolution_whose_extremes_stay() {
    let laboratory = prepare_watched_archive();
    let server = LabServer::start(&laboratory, &[]);
    let whole = server.get("/api/v1/runs/after/series/vmstat?points=100000").columns();
    let at = times(&whole);
    assert!(at.len() > 100 && at.is_sorted());
    let schema = whole.schema();
    assert_eq!(
        (schema.metadata()["perflab.thinned"].as_str(), schema.metadata()["perflab.source"].as_str()),
        ("false", "/proc/vmstat")
    );
    let of = |columns: &RecordBatch, name: &str| {
        columns.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone()
    };

    let (from, to) = (at[10], at[at.len() - 10]);
    let window =
        server.get(&format!("/api/v1/runs/after/series/vmstat?from={from}&to={to}&column=pgfault")).columns();
    assert_eq!((times(&window), window.num_columns()), (at[10..=at.len() - 10].to_vec(), 2));

    let thinned = server.get("/api/v1/runs/after/series/vmstat?points=20").columns();
    assert!(thinned.num_rows() <= 20 && thinned.schema().metadata()["perflab.thinned"] == "true");
    assert_eq!((times(&thinned)[0], *times(&thinned).last().unwrap()), (at[0], *at.last().unwrap()));
    for name in ["pgfault", "nr_free_pages"] {
        let (all, kept) = (of(&whole, name), of(&thinned, name));
        let ends = |column: &arrow_array::Int64Array| {
            (column.iter().flatten().min().unwrap(), column.iter().flatten().max().unwrap())
        };
        assert_eq!(ends(&all), ends(&kept), "{name}");
    }

    let keyed = server.get("/api/v1/runs/after/series/net-dev?where=interface=lo&column=rx_bytes").columns();
    let interfaces = keyed.column_by_name("interface").unwrap().as_dictionary::<Int32Type>().values().clone();
    assert!(keyed.num_rows() > 0 && keyed.num_columns() == 3);
    assert!(interfaces.as_string::<i32>().iter().flatten().all(|name| name == "lo"));

    let beyond = server.get("/api/v1/runs/after/series/vmstat?from=1&to=2").columns();
    assert_eq!(beyond.num_rows(), 0);
    let refused = [
        ("vmstat?from=NaN", 400),
        ("vmstat?from=-1", 400),
        ("vmstat?from=99999999999999999999999", 400),
        ("vmstat?from=9&to=1", 400),
        ("vmstat?points=1", 400),
        ("vmstat?points=1000000", 400),
        ("vmstat?poinst=10", 400),
        ("vmstat?from=1&from=2", 400),
        ("vmstat?where=nothing", 400),
        ("vmstat?column=nothing", 400),
        ("vmstat?where=pgfault=1", 400),
        ("vmstatt", 404),
        ("..%2f..%2frun.json", 404),
        ("%2e%2e", 404),
    ];
    for (series, status) in refused {
        let reply = server.get(&format!("/api/v1/runs/after/series/{series}"));
        assert_eq!(
            (reply.status, reply.json()["error"].is_string()),
            (status, true),
            "{series}: {}",
            reply.text()
        );
    }
}

/// Every route of the table, asked as its parameters say.
#[test]
fn the_reference_and_openapi_are_what_the_server_answers() {
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/api.md")).unwrap();
    let laboratory = prepare_watched_archive();
    let printed = laboratory.run_successfully(&["reference", "--api"]).out;
    assert_eq!(page.trim(), printed.trim(), "run `cargo xtask docs`");
    let server = LabServer::start(&laboratory, &[]);
    let api = server.get_json("/api/v1/openapi.json");
    let paths = api["paths"].as_object().unwrap();
    let declared = paths.iter().flat_map(|(path, methods)| {
        methods.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    let headings = page.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned);
    assert_eq!(declared.collect::<BTreeSet<_>>(), headings.collect::<BTreeSet<_>>());
    for (path, methods) in paths {
        let Some(get) = methods.get("get") else { continue };
        let mut query = Vec::new();
        for parameter in get["parameters"].as_array().unwrap() {
            if parameter["in"] == "query" {
                let value = match parameter["name"].as_str().unwrap() {
                    "a" => "before",
                    "b" | "label" => "after",
                    "by" => "part",
                    "status" => "finished",
                    "study" => "watched.toml",
                    "metric" => "speed",
                    "workload" => "slow",
                    "limit" | "last" | "points" => "3",
                    "from" => "0",
                    "to" => "9000000000000000000",
                    "column" => "pgfault",
                    "q" => "watched",
                    "case" => "slow%20part%3Da",
                    "run" => "before",
                    "skip" => "0",
                    "before" => "01M86D3BNFDJPTHCANQJZN3H5V",
                    "steps" => "any",
                    _ => "",
                };
                query.push(format!("{}={value}", parameter["name"].as_str().unwrap()));
            }
        }
        // A factor is of one side.
        query.retain(|pair| path != "/api/v1/compare" || !pair.starts_with("by="));
        // Boards know a study by its title, and a machine by what it says of itself.
        query.retain(|pair| {
            !path.ends_with("/boards") || !["study=", "machine="].iter().any(|name| pair.starts_with(name))
        });
        // What a picture takes depends on its kind; a test of its own has them.
        let is_of_every_kind =
            |pair: &String| ["run=", "metric=", "workload="].iter().any(|name| pair.starts_with(name));
        query.retain(|pair| !path.contains("/pictures/") || is_of_every_kind(pair));
        let target = path.replace("{id}", "after").replace("{monitor}", "vmstat");
        let target = target.replace("{picture}", "strip.svg").replace("{matter}", "timelines");
        if path == "/api/v1/events" {
            // It has no end; a test of its own listens.
            continue;
        }
        let reply = server.get(&format!("{target}?{}", query.join("&")));
        let declared = get["responses"]["200"]["content"].as_object().unwrap().keys().next().unwrap().clone();
        assert_eq!(
            (reply.status, reply.headers["content-type"].clone()),
            (200, declared),
            "{path}: {}",
            String::from_utf8_lossy(&reply.body)
        );
        let unknown = server.get(&format!("{target}?nobody-knows=1"));
        assert_eq!(unknown.status, 400, "{path}");
        if methods.get("post").is_some() {
            continue;
        }
        let posted = server.ask("POST", &target, &server.own_headers());
        assert_eq!(posted.status, 405, "{path}");
    }
    let metrics = server.get("/metrics").text();
    assert!(
        metrics.contains("perflab_runs{status=\"finished\"} 2\n") && metrics.ends_with("# EOF\n"),
        "{metrics}"
    );
}

/// The same sections as in the report, each alone; and for what the run does not have, a sentence with a command that there is.
#[test]
fn a_matter_has_the_section_of_the_report_or_says_what_records_it() {
    let laboratory = prepare_watched_archive();
    let server = LabServer::start(&laboratory, &[]);
    let section = |page: &str, id: &str| -> Option<String> {
        let begin = page.find(&format!("<section id=\"{id}\""))?;
        let end = begin + page[begin..].find("</section>")?;
        Some(page[begin..end].to_owned())
    };
    let report = server.get("/runs/after").text();
    let timelines = server.get("/runs/after/timelines").text();
    assert!(section(&report, "timelines").is_some());
    assert_eq!(section(&timelines, "timelines"), section(&report, "timelines"));
    assert_eq!(
        (timelines.matches("<section ").count(), server.get("/runs/after/timelines").text()),
        (1, timelines)
    );
    let id = folder_name(run_folders(&laboratory).last().unwrap());
    for matter in ["slab", "operations", "flame", "io", "guests", "startups"] {
        let reply = server.get(&format!("/runs/after/{matter}"));
        let page = reply.text();
        assert_eq!((reply.status, page.matches("<section ").count()), (200, 0), "{matter}");
        let sentence = page.split("<p class=\"answer\">").nth(1).unwrap().split("</p>").next().unwrap();
        let command = sentence.split("<code>").nth(1).unwrap().split("</code>").next().unwrap();
        let words = command.trim_start_matches("sudo ").trim_start_matches("perflab ").split(' ');
        let verbs: Vec<&str> = words.take_while(|word| !word.starts_with('-') && *word != "STUDY").collect();
        let helped = laboratory.run(&[&verbs[..], &["--help"]].concat());
        assert_eq!(helped.code, Some(0), "{command}: {}", helped.err);
        assert!(report.replace("&#x2f;", "/").contains(&format!("/runs/{id}/{matter}\"")), "{matter}");
    }
    for (target, status) in
        [("after/nothing", 404), ("nothing/slab", 404), ("after/..%2fslab", 404), ("after/slab?x=1", 400)]
    {
        assert_eq!(server.get(&format!("/runs/{target}")).status, status, "{target}");
    }
}

/// The file that `perflab plot` writes, byte for byte; and a badge with the words of `perflab guard`.
#[test]
fn pictures_are_those_of_the_verb_and_a_badge_says_what_the_guard_says() {
    let laboratory = prepare_watched_archive();
    let server = LabServer::start(&laboratory, &[]);
    let pictures: [(&str, &[&str]); 5] = [
        ("strip.svg?run=before&run=after&metric=speed", &["strip", "before", "after", "--metric", "speed"]),
        (
            "ecdf.svg?run=after&by=part&log=x&confidence=90%25",
            &["ecdf", "after", "--by", "part", "--log", "x", "--confidence", "90%"],
        ),
        (
            "interval.svg?run=before&run=after&x-range=-50%25:50%25&title=%3Cb%3E",
            &["interval", "before", "after", "--x-range=-50%:50%", "--title", "<b>"],
        ),
        (
            "timeline.svg?run=after&column=vmstat.nr_dirty&size=400x300",
            &["timeline", "after", "--column", "vmstat.nr_dirty", "--size", "400x300"],
        ),
        (
            "heatmap.svg?column=net-dev.rx_bytes&log=false",
            &["heatmap", "@latest", "--column", "net-dev.rx_bytes"],
        ),
    ];
    for (target, words) in pictures {
        let reply = server.get(&format!("/api/v1/pictures/{target}"));
        assert_eq!(
            (reply.status, reply.headers["content-type"].as_str()),
            (200, "image/svg+xml"),
            "{}",
            reply.text()
        );
        let printed = laboratory.run_successfully(&[&["plot"], words, &["-o", "-"]].concat()).out;
        assert_eq!(reply.text(), printed, "{target}");
    }
    let outside = laboratory.path("outside.json");
    fs::write(&outside, "{}").unwrap();
    let outside = outside.display().to_string().replace('/', "%2F");
    let refused = [
        ("pictures/strip.png".to_owned(), 404),
        ("pictures/pie.svg".to_owned(), 404),
        ("pictures/..%2fstrip.svg".to_owned(), 404),
        ("pictures/strip.svg?run=nothing".to_owned(), 404),
        (format!("pictures/strip.svg?run={outside}"), 404),
        ("pictures/strip.svg?run=after&metric=nothing".to_owned(), 400),
        ("pictures/strip.svg?run=after&metric=speed&x-range=NaN:1".to_owned(), 400),
        ("pictures/strip.svg?run=after&x-range=2:1&metric=speed".to_owned(), 400),
        ("pictures/strip.svg?confidence=NaN".to_owned(), 400),
        ("pictures/strip.svg?bins=fd".to_owned(), 400),
        ("pictures/strip.svg?output=%2Ftmp%2Fx.svg".to_owned(), 400),
        ("pictures/strip.svg?size=99999x99999".to_owned(), 400),
        ("pictures/timeline.svg?run=after".to_owned(), 400),
        ("pictures/timeline.svg?run=after&column=vmstat.nothing".to_owned(), 400),
        ("pictures/timeline.svg?run=after&column=nothing.x".to_owned(), 400),
        ("badge.svg".to_owned(), 400),
        ("badge.svg?study=watched.toml".to_owned(), 400),
        ("badge.svg?study=nothing&metric=speed".to_owned(), 400),
        ("badge.svg?study=watched.toml&metric=nothing".to_owned(), 400),
        ("badge.svg?study=watched.toml&metric=speed".to_owned(), 400),
        ("badge.svg?study=watched.toml&metric=speed&case=nothing".to_owned(), 400),
        ("badge.svg?study=watched.toml&metric=speed&last=NaN".to_owned(), 400),
    ];
    for (target, status) in refused {
        let reply = server.get(&format!("/api/v1/{target}"));
        assert_eq!(
            (reply.status, reply.json()["error"].is_string()),
            (status, true),
            "{target}: {}",
            reply.text()
        );
        // Options of a command line are no words of an address.
        assert!(!reply.text().contains("--") && !reply.text().contains("Usage:"), "{}", reply.text());
    }
    let judged = laboratory.run(&["guard", "speed", "--study", "watched.toml", "--format", "json"]).out;
    let judged: Value = serde_json::from_str(&judged).unwrap();
    let row = judged["rows"].as_array().unwrap().iter().find(|row| row["subject"] == "slow part=a").unwrap();
    let badge = server.get("/api/v1/badge.svg?study=watched.toml&metric=speed&case=slow%20part%3Da");
    assert_eq!(
        (badge.status, badge.headers["content-type"].as_str()),
        (200, "image/svg+xml"),
        "{}",
        badge.text()
    );
    assert_eq!(row["verdict"], "unclear");
    assert!(
        badge.text().contains("? too few runs</text>") && badge.text().contains(">speed</text>"),
        "{}",
        badge.text()
    );
}

/// Ten runs of a study, slower after the sixth, and one of a study with a hostile title.
pub fn prepare_stepped_archive() -> Sandbox {
    let laboratory = Sandbox::new();
    for speed in [1000, 1003, 998, 1001, 997, 1002, 900, 903, 898, 901] {
        laboratory.run_echo("nightly", speed);
    }
    laboratory.write_workload("hostile", "", "echo speed 7");
    let study = laboratory.path("hostile.toml").display().to_string();
    let text =
        format!("title = '{HOSTILE_TITLE}'\nrun = {{ iterations = 2, warmup = 0 }}\n[workload.hostile]");
    fs::write(&study, text).unwrap();
    laboratory.run_successfully(&["run", &study, "--quiet"]);
    laboratory
}

const HOSTILE_TITLE: &str = "\"><script>alert(1)</script>";

#[test]
fn boards_have_the_steps_of_histories() {
    let laboratory = prepare_stepped_archive();
    let server = LabServer::start(&laboratory, &["--write"]);
    let boards = server.get_json("/api/v1/boards");
    let history = laboratory.run_json(&["history", "--study", "echo.toml"]);
    let found = &history["series"][0]["steps"][0];
    let studies = boards["studies"].as_array().unwrap();
    let titles: Vec<&str> = studies.iter().map(|study| study["study"].as_str().unwrap()).collect();
    assert_eq!((boards["total"].as_u64(), titles), (Some(2), vec![HOSTILE_TITLE, "echo.toml"]));
    let [row] = &studies[1]["rows"].as_array().unwrap()[..] else { panic!("{boards}") };
    let figures = (row["metric"].as_str(), row["runs"].as_u64(), row["value"].as_f64());
    assert_eq!(figures, (Some("speed"), Some(10), Some(901.0)));
    for key in ["first_bad", "last_good", "verdict", "facts"] {
        assert_eq!(row["step"][key], found[key], "{key}");
    }
    assert_eq!((&row["notes"], &studies[0]["rows"][0]["step"]), (&serde_json::json!([]), &Value::Null));

    let page = server.get("/boards").text();
    assert!(!page.contains("<script>alert(1)") && page.contains("&lt;script&gt;alert(1)"), "{page}");
    let counts = ["role=\"img\"", "Acknowledge</summary>"].map(|text| page.matches(text).count());
    assert_eq!(counts, [2, 1]);
    let decoded = page.replace("&#x2f;", "/").replace("&amp;", "&");
    let addresses = decoded.split("href=\"/history?").skip(1).map(|rest| rest.split('"').next().unwrap());
    let addresses: Vec<String> = addresses.map(|query| format!("/history?{query}")).collect();
    assert_eq!(addresses.len(), 4);
    for address in addresses {
        assert_eq!(server.get(&address).status, 200, "{address}");
    }
    for (target, status) in [
        ("/boards?steps=all", 400),
        ("/boards?skip=NaN", 400),
        ("/boards?skip=-1", 400),
        ("/boards?study=nothing", 400),
        ("/boards?machine=nothing", 400),
        ("/boards?skip=7", 200),
    ] {
        assert_eq!(server.get(target).status, status, "{target}");
    }
}

/// Rows whose last step is for the worse, and of which nobody has said anything.
fn count_open_steps(server: &LabServer) -> usize {
    let found = server.get_json("/api/v1/boards?steps=open");
    found["studies"].as_array().unwrap().iter().map(|study| study["rows"].as_array().unwrap().len()).sum()
}

/// A step stays open until somebody writes a note that names it.
#[test]
fn a_step_is_acknowledged_with_a_note_of_its_own() {
    let laboratory = prepare_stepped_archive();
    let server = LabServer::start(&laboratory, &["--write"]);
    let row = server.get_json("/api/v1/boards")["studies"][1]["rows"][0].clone();
    let run = row["step"]["first_bad"].as_str().unwrap();
    let headers = [("Content-Type", "application/json"), ("Authorization", server.bearer.as_str())];
    let write = |body: &Value| server.post(&format!("/api/v1/runs/{run}/notes"), &headers, &body.to_string());
    let case = row["case"].as_str().unwrap();
    let note = |case: &str, metric: &str| {
        write(
            &serde_json::json!({ "text": "the new allocator", "by": "Ada", "case": case, "metric": metric }),
        )
    };
    let alone = serde_json::json!({ "text": "a", "metric": "speed" });
    let refused = [note(case, "nothing"), note("nothing", "speed"), write(&alone)].map(|reply| reply.status);
    assert_eq!(refused, [400, 400, 400]);
    assert_eq!(write(&serde_json::json!({ "text": "about the run alone" })).status, 200);
    assert_eq!(count_open_steps(&server), 1);
    assert_eq!(note(case, "speed").json()["metric"], "speed");
    assert_eq!(count_open_steps(&server), 0);
    assert_eq!(server.get_json("/api/v1/boards")["studies"][1]["rows"][0]["notes"][0]["by"], "Ada");
    let report = server.get(&format!("/runs/{run}")).text();
    assert!(report.contains("by Ada on the step of speed, echo"), "{report}");

    // One run more: what is kept of the study is made anew.
    laboratory.run_echo("nightly", 899);
    assert_eq!(server.get_json("/api/v1/boards")["studies"][0]["rows"][0]["runs"], 11);
    assert_eq!(count_open_steps(&server), 0);
    // As `perflab guard --accept` writes it, which takes a longer history.
    let step = serde_json::json!({
        "subject": case, "metric": "speed", "unit": "ops/s", "run": run,
        "began": row["step"]["at"], "note": "as wanted", "accepted": 1,
    });
    let file = serde_json::json!({ "format": 1, "steps": [step] });
    fs::write(laboratory.path("archive/accepted.json"), file.to_string()).unwrap();
    let accepted = &server.get_json("/api/v1/boards")["studies"][0]["rows"][0]["step"]["accepted"];
    assert_eq!(accepted, "as wanted");
}

#[test]
fn nothing_leads_out_of_the_archive() {
    let laboratory = prepare_watched_archive();
    let runs = run_folders(&laboratory);
    let (linked, held) = (runs[0].with_file_name("01AAAAAAAAAAAAAAAAAAAAAAAA"), folder_name(&runs[1]));
    std::os::unix::fs::symlink(&runs[0], &linked).unwrap();
    fs::remove_file(runs[1].join("series/vmstat.parquet")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", runs[1].join("series/vmstat.parquet")).unwrap();
    fs::write(laboratory.path("archive/secret"), "secret").unwrap();
    let outside = laboratory.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::copy(runs[0].join("run.json"), outside.join("run.json")).unwrap();
    let server = LabServer::start(&laboratory, &[]);
    let outside = outside.display().to_string();
    let encoded = outside.replace('/', "%2F");
    let targets = [
        ("/runs/../../secret".to_owned(), 404),
        ("/runs/..%2f..%2fsecret".to_owned(), 404),
        ("/runs/%2e%2e%2fruns".to_owned(), 404),
        ("/runs/..".to_owned(), 404),
        ("/runs/.".to_owned(), 404),
        (format!("/runs/{encoded}"), 404),
        (format!("/runs{outside}"), 404),
        (format!("/api/v1/compare?a={encoded}&b=before"), 404),
        (format!("/api/v1/compare?a=x.perflab&b={encoded}"), 404),
        ("/runs/%00".to_owned(), 404),
        ("/runs/%ff%fe".to_owned(), 400),
        ("/runs/nothing".to_owned(), 404),
        ("/runs/01".to_owned(), 404),
        ("/runs/@latest~99".to_owned(), 404),
        ("/runs/01AAAAAAAAAA".to_owned(), 403),
        (format!("/runs/{held}"), 403),
        (format!("/api/v1/runs/{held}/series/vmstat"), 403),
        ("/compare?a=before".to_owned(), 400),
        ("/nothing".to_owned(), 404),
        ("/assets/../secret".to_owned(), 404),
        ("/%zz".to_owned(), 404),
    ];
    for (target, status) in targets {
        let reply = server.get(&target);
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        assert_eq!(reply.status, status, "{target}: {text}");
        assert!(!text.contains("root:") && !text.contains(">secret"), "{target}: {text}");
        assert!(text.len() > 20, "{target}: no sentence");
    }
}

#[test]
fn a_damaged_run_and_a_deleted_archive_are_told_and_end_nothing() {
    let laboratory = prepare_watched_archive();
    let runs = run_folders(&laboratory);
    let bad = folder_name(&runs[1]);
    fs::write(runs[1].join("run.json"), "{ no json <b>").unwrap();
    let server = LabServer::start(&laboratory, &[]);
    let page = server.get("/");
    assert_eq!(page.status, 200);
    assert!(page.text().contains("damaged") && page.text().contains(&folder_name(&runs[0])));
    let listed = server.get_json("/api/v1/runs?status=damaged");
    assert_eq!((listed["matched"].as_u64(), listed["runs"][0]["id"].as_str()), (Some(1), Some(bad.as_str())));
    let boards = server.get_json("/api/v1/boards");
    assert_eq!(
        (boards["unreadable_runs"].as_u64(), bad.starts_with(text(&boards["unreadable"][0]["run"]))),
        (Some(1), true)
    );
    // What cannot be read is told where its value is missing, too.
    for page in ["/boards", "/history"] {
        let page = server.get(page).text();
        assert!(page.contains(text(&boards["unreadable"][0]["run"])), "{page}");
    }
    assert_eq!((server.get(&format!("/runs/{bad}")).status, server.get("/runs/before").status), (500, 200));
    assert_eq!(server.get(&format!("/api/v1/runs/{bad}")).status, 500);
    fs::remove_dir_all(laboratory.path("archive")).unwrap();
    for target in [
        "/",
        "/boards",
        "/api/v1/runs",
        "/runs/before",
        "/api/v1/compare?a=before&b=before",
        "/history",
        "/metrics",
    ] {
        assert_eq!(server.get(target).status, 503, "{target}");
    }
    fs::create_dir(laboratory.path("archive")).unwrap();
    assert_eq!(server.get_json("/api/v1/runs")["total"], 0);
    let (code, said) = server.stop(Signal::TERM);
    assert_eq!((code, said.matches("panicked").count()), (Some(0), 0), "{said}");
}

#[test]
fn hosts_origins_and_malformed_requests_are_refused() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("one", 1);
    let server = LabServer::start(&laboratory, &["--host", "lab.example"]);
    let own = ("Authorization", server.bearer.as_str());
    let asked =
        |headers: &[(&str, &str)]| server.ask("GET", "/api/v1/runs", &[&[own], headers].concat()).status;
    let host = ("Host", server.place.as_str());
    assert_eq!((asked(&[host]), asked(&[("Host", "lab.example")])), (200, 200));
    assert_eq!(
        (asked(&[("Host", "evil.example")]), asked(&[("Host", "127.0.0.1:1")]), asked(&[])),
        (421, 421, 400)
    );
    assert_eq!(
        (asked(&[host, ("Origin", "http://evil.example")]), asked(&[host, ("Origin", "null")])),
        (403, 403)
    );
    assert_eq!(asked(&[host, ("Origin", &format!("http://{}", server.place))]), 200);
    assert_eq!(asked(&[host, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")]), 403);
    let length = server.ask("GET", "/", &[host, own, ("Content-Length", "1073741824")]);
    assert_eq!(length.status, 413);
    let posted = server.ask("POST", "/", &[host, own, ("Content-Length", "1073741824")]);
    assert_eq!(posted.status, 413);
    for malformed in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ] {
        let reply = server.send(malformed);
        assert!((400..=505).contains(&reply.status), "{reply:?}");
    }
    let long = server.ask("GET", "/", &[host, own, ("X", &"x".repeat(1 << 20))]);
    assert_eq!(long.status, 431);
    assert_eq!(asked(&[host]), 200);
}

/// Two hundred clients that say nothing, half a request, or ask and take no answer.
#[test]
fn clients_that_rest_hold_up_nobody() {
    let laboratory = prepare_watched_archive();
    let server = LabServer::start(&laboratory, &[]);
    let mut held = Vec::new();
    for number in 0..200 {
        let mut stream = TcpStream::connect(&server.place).unwrap();
        let asked = format!(
            "GET /runs/before HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
            server.place, server.token
        );
        match number % 4 {
            0 => {}
            1 => stream.write_all(b"GET / HTTP/1.1\r\nHos").unwrap(),
            2 => stream.write_all(asked.as_bytes()).unwrap(),
            _ => {
                stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
            }
        }
        held.push(stream);
    }
    assert_eq!(server.get_json("/api/v1/runs")["total"], 2);
    assert_eq!(server.get("/runs/after").status, 200);
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
    let peak: u64 = peak.split(' ').next().unwrap().parse().unwrap();
    assert!(peak < 200 << 10, "{peak} KiB");
    drop(held);
}

/// More clients than there are places, all of which rest.
#[test]
fn a_new_client_gets_in_however_many_rest() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("one", 1);
    let server = LabServer::start(&laboratory, &[]);
    let asked = format!(
        "GET /api/v1/runs HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\n\r\n",
        server.place, server.bearer
    );
    let mut held = Vec::new();
    for number in 0..600 {
        let mut stream = TcpStream::connect(&server.place).unwrap();
        if number % 2 == 0 {
            stream.write_all(asked.as_bytes()).unwrap();
            let mut first = [0; 15];
            stream.read_exact(&mut first).unwrap();
            assert_eq!(&first, b"HTTP/1.1 200 OK");
        }
        held.push(stream);
    }
    assert_eq!(server.get_json("/api/v1/runs")["total"], 1);
    drop(held);
}

#[test]
fn a_socket_is_this_users_alone_and_goes_with_the_server() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("one", 1);
    let path = laboratory.path("perflab.sock");
    let socket = path.display().to_string();
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let server = LabServer::start(&laboratory, &["--socket", &socket, "--format", "table"]);
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let mut stream = UnixStream::connect(&path).unwrap();
    let asked = format!(
        "GET /api/v1/runs?token={} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        server.token
    );
    stream.write_all(asked.as_bytes()).unwrap();
    assert_eq!(HttpReply::read(stream).status, 303);
    let second = laboratory.run(&["serve", "--socket", &socket]);
    assert_eq!(second.code, Some(2), "{}", second.err);
    assert_eq!(server.stop(Signal::TERM).0, Some(0));
    assert!(!path.exists());
    fs::write(&path, "mine").unwrap();
    assert_eq!(laboratory.run(&["serve", "--socket", &socket]).code, Some(2));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

/// For programs that are configured once: the token of the next start is that of the file.
#[test]
fn a_token_file_outlasts_the_server() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("one", 1);
    let path = laboratory.path("token");
    let place = path.display().to_string();
    let first = LabServer::start(&laboratory, &["--token-file", &place]);
    let token = first.token.clone();
    assert_eq!(fs::read_to_string(&path).unwrap().trim(), token);
    drop(first);
    let second = LabServer::start(&laboratory, &["--token-file", &place]);
    assert_eq!((&second.token, second.get("/api/v1/runs").status), (&token, 200));
    drop(second);
    fs::write(&path, "short").unwrap();
    assert_eq!(laboratory.run(&["serve", "--token-file", &place]).code, Some(2));
}

#[test]
fn an_address_that_cannot_be_had_is_told() {
    let laboratory = Sandbox::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let codes = ["70000", "localhost:80", "0.0.0.0:0", &port]
        .map(|place| laboratory.run(&["serve", "--listen", place]).code);
    assert_eq!(codes, [Some(2), Some(2), Some(2), Some(3)]);
    let csv = laboratory.run(&["serve", "--format", "csv"]);
    assert_eq!(csv.code, Some(2));
}

#[test]
fn labels_and_notes_are_written_by_whoever_may() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("one", 1);
    let reading = LabServer::start(&laboratory, &[]);
    let json = ("Content-Type", "application/json");
    let label = "/api/v1/runs/one/label";
    let script = |server: &LabServer| server.bearer.clone();
    let refused = reading.post(label, &[json, ("Authorization", &script(&reading))], r#"{"label":"two"}"#);
    assert_eq!(refused.status, 403, "{}", refused.text());
    drop(reading);

    let server = LabServer::start(&laboratory, &["--write"]);
    let bearer = ("Authorization", server.bearer.as_str());
    let cookie = format!("perflab_{}={}", server.place.split(':').nth(1).unwrap(), server.token);
    let origin = format!("http://{}", server.place);
    let page = server.get("/runs/one/notes").text();
    let key = page.split("data-key=\"").nth(1).unwrap().split('"').next().unwrap();
    let body = r#"{"label":"two"}"#;
    let by_page = [json, ("Cookie", cookie.as_str()), ("Origin", origin.as_str())];
    assert_eq!(server.post(label, &by_page, body).status, 403);
    assert_eq!(server.post(label, &[json, ("Cookie", &cookie), ("X-Perflab-Key", key)], body).status, 403);
    let foreign =
        [json, ("Cookie", cookie.as_str()), ("Origin", "http://evil.example"), ("X-Perflab-Key", key)];
    assert_eq!(server.post(label, &foreign, body).status, 403);
    assert_eq!(server.post(label, &[bearer], body).status, 415);
    assert_eq!(server.post(label, &[json], body).status, 401);
    let by_page = [&by_page[..], &[("X-Perflab-Key", key)]].concat();
    assert_eq!(server.post(label, &by_page, body).status, 200);
    let bad = [
        r#"{"label":""}"#,
        r#"{"label":"@x"}"#,
        r#"{"label":"a\nb"}"#,
        "{}",
        r#"{"label":1}"#,
        r#"{"lable":"x"}"#,
    ];
    for body in bad {
        assert_eq!(server.post("/api/v1/runs/two/label", &[json, bearer], body).status, 400, "{body}");
    }
    let long = format!(r#"{{"label":"{}"}}"#, "x".repeat(70_000));
    assert_eq!(server.post("/api/v1/runs/two/label", &[json, bearer], &long).status, 413);
    assert_eq!(laboratory.run_json(&["list"])[0]["label"], "two");

    let notes = "/api/v1/runs/two/notes";
    let hostile = "<script>alert(1)</script>\nsecond line";
    let body = serde_json::json!({ "text": hostile, "by": "A. \"B\" <b>" }).to_string();
    assert_eq!(server.post(notes, &[json, bearer], &body).json()["text"], hostile);
    assert_eq!(server.post(notes, &[json, bearer], r#"{"text":" "}"#).status, 400);
    assert_eq!(server.get_json(notes)["notes"][0]["by"], "A. \"B\" <b>");
    let (page, report) = (server.get("/runs/two/notes").text(), server.get("/runs/two").text());
    for page in [&page, &report] {
        assert!(page.contains("&lt;script&gt;alert(1)") && !page.contains("<script>alert(1)"));
    }
    let file = laboratory.path("two.perflab").display().to_string();
    laboratory.run_successfully(&["export", "two", &file]);
    laboratory.run_successfully(&["--archive", "elsewhere", "import", &file]);
    let runs = fs::read_dir(laboratory.path("elsewhere/runs")).unwrap();
    let imported = runs.map(|run| run.unwrap().path()).find(|path| path.join("run.json").exists()).unwrap();
    assert!(fs::read_to_string(imported.join("notes.jsonl")).unwrap().contains("second line"));
    assert_eq!(server.post("/api/v1/runs/two/label", &[json, bearer], r#"{"label":null}"#).status, 200);
    assert_eq!(laboratory.run_json(&["list"])[0]["label"], Value::Null);
    assert_eq!(server.post(label, &[json, bearer], r#"{"label":null}"#).status, 404);
}

/// A run that is recorded while somebody looks.
#[test]
fn a_run_is_followed_while_it_is_recorded() {
    let laboratory = Sandbox::new();
    laboratory.write_workload("slow", "", "sleep 0.4; echo speed 7");
    let study = laboratory.write_study("slow.toml", "run = { iterations = 8, warmup = 0 }\n[workload.slow]");
    fs::create_dir(laboratory.path("archive")).unwrap();
    let server = LabServer::start(&laboratory, &[]);
    let stream = TcpStream::connect(&server.place).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let asked = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\n\r\n",
        server.place, server.bearer
    );
    (&stream).write_all(asked.as_bytes()).unwrap();
    let mut events = BufReader::new(stream).lines().map(Result::unwrap);
    let type_line = events.find(|line| line.starts_with("content-type")).unwrap();
    assert_eq!(type_line, "content-type: text/event-stream");
    let mut recording = laboratory.command(&["run", &study, "--quiet", "--no-report"]);
    let mut recording = recording.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut seen = Vec::new();
    let mut page = String::new();
    for line in events {
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let run: Value = serde_json::from_str(data).unwrap();
        if page.is_empty() {
            page = server.get("/").text();
            let live = server.get(&format!("/runs/{}", run["id"].as_str().unwrap()));
            assert_eq!(live.status, 200, "{}", live.text());
        }
        seen.push((run["status"].as_str().unwrap().to_owned(), run["iterations"].as_u64().unwrap()));
        if run["status"] != "running" {
            break;
        }
    }
    assert!(recording.wait().unwrap().success());
    assert!(page.contains("<progress max=\"8\""), "{page}");
    assert_eq!(seen.last().unwrap(), &("finished".to_owned(), 8));
    let counts: Vec<u64> = seen.iter().map(|(_, iterations)| *iterations).collect();
    assert!(counts.is_sorted() && counts.len() > 2, "{seen:?}");
}
