//! The dashboards of `contrib/grafana/`: every query of theirs is asked of a real `perflab serve`, those in PromQL by a real
//! Prometheus that scrapes it. That their JSON is as Grafana's schema says is a test of `web/`.

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::laboratory::{Sandbox, find_test_python, skip_test};
use crate::serve::{HttpReply, LabServer, encode_query, prepare_stepped_archive};

fn read_dashboard(name: &str) -> Value {
    let path = format!("{}/../../contrib/grafana/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Every object of a document that has this key.
fn find_objects<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key(key) {
                found.push(value);
            }
            fields.values().for_each(|field| find_objects(field, key, found));
        }
        Value::Array(items) => items.iter().for_each(|item| find_objects(item, key, found)),
        _ => {}
    }
}

/// What the Infinity data source does with a query: asks the address, and takes columns of the rows at `root_selector`.
fn ask_infinity(server: &LabServer, query: &Value) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let chosen = |value: &str| {
        value.replace("${study}", "echo.toml").replace("${metric}", "primary").replace("${label}", "")
    };
    let parameters = query["url_options"]["params"].as_array().unwrap();
    let parameters = parameters.iter().map(|pair| {
        format!("{}={}", text(&pair["key"]), encode_query(&chosen(pair["value"].as_str().unwrap())))
    });
    let target = format!("{}?{}", text(&query["url"]), parameters.collect::<Vec<_>>().join("&"));
    let answer = server.get_json(&target);
    let rows = answer[query["root_selector"].as_str().unwrap()].as_array().unwrap();
    assert!(!rows.is_empty(), "{target}: {answer}");
    for column in query["columns"].as_array().unwrap() {
        let selector = column["selector"].as_str().unwrap();
        let cells: Vec<&Value> = rows
            .iter()
            .map(|row| row.get(selector).unwrap_or_else(|| panic!("{target}: {selector}")))
            .collect();
        let is_right = |cell: &&Value| match column["type"].as_str().unwrap() {
            "number" => cell.is_number() || cell.is_null(),
            "timestamp" => cell.as_str().is_some_and(|time| time.parse::<jiff::Timestamp>().is_ok()),
            "string" => cell.is_string() || cell.is_null(),
            other => panic!("{target}: a column of type {other}"),
        };
        assert!(cells.iter().all(is_right), "{target}: {selector}: {cells:?}");
    }
}

#[test]
fn queries_of_infinity_have_rows_and_columns() {
    let laboratory = prepare_stepped_archive();
    let server = LabServer::start(&laboratory, &[]);
    let dashboard = read_dashboard("perflab-studies");
    let mut queries = Vec::new();
    find_objects(&dashboard, "root_selector", &mut queries);
    assert_eq!(queries.len(), 4);
    queries.into_iter().for_each(|query| ask_infinity(&server, query));
}

/// The values are those that `perflab history` prints.
#[test]
fn points_are_those_of_the_history() {
    let laboratory = prepare_stepped_archive();
    let server = LabServer::start(&laboratory, &[]);
    let found = server.get_json("/api/v1/history?study=echo.toml&metric=speed&last=9");
    let printed = laboratory.run_json(&["history", "speed", "--study", "echo.toml", "--last", "9"]);
    let numbers = |rows: &Value, key: &str| -> Vec<f64> {
        rows.as_array().unwrap().iter().map(|row| row[key].as_f64().unwrap()).collect()
    };
    let series = &printed["series"][0];
    for key in ["value", "at"] {
        assert_eq!(numbers(&found["points"], key), numbers(&series["points"], key), "{key}");
    }
    assert_eq!((found["runs"].as_u64(), &found["notes"]), (Some(9), &printed["notes"]));
    let [step] = &found["steps"].as_array().unwrap()[..] else { panic!("{found}") };
    for key in ["first_bad", "last_good", "verdict"] {
        assert_eq!(step[key], series["steps"][0][key], "{key}");
    }
}

/// By another reader than ours, and with a hostile title among the labels.
#[test]
fn metrics_are_open_metrics() {
    let name = "metrics_are_open_metrics";
    let Some(python) = find_test_python() else {
        return skip_test(name, "no target/test-venv (cargo xtask test makes it)");
    };
    let laboratory = prepare_stepped_archive();
    let server = LabServer::start(&laboratory, &[]);
    let reply = server.get("/metrics");
    assert_eq!(reply.headers["content-type"], "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let path = laboratory.path("metrics");
    fs::write(&path, reply.text()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/open_metrics.py");
    let said = Command::new(python).args([script.as_ref(), path.as_os_str()]).output().unwrap();
    assert!(said.status.success(), "{}\n{}", String::from_utf8_lossy(&said.stderr), reply.text());
    let samples: Value = serde_json::from_slice(&said.stdout).unwrap();
    let of = |name: &str| {
        let all = samples.as_array().unwrap().iter().filter(|sample| sample["name"] == name);
        all.cloned().collect::<Vec<Value>>()
    };
    let values = of("perflab_metric_value");
    let board = server.get_json("/api/v1/boards");
    assert_eq!(
        (values.len(), values[1]["value"].as_f64()),
        (2, board["studies"][1]["rows"][0]["value"].as_f64())
    );
    for key in ["case", "metric", "unit", "machine"] {
        assert_eq!(values[1]["labels"][key], board["studies"][1]["rows"][0][key], "{key}");
    }
    assert_eq!(values[0]["labels"]["study"], board["studies"][0]["study"]);
    let open: Vec<f64> =
        of("perflab_metric_open_step").iter().map(|one| one["value"].as_f64().unwrap()).collect();
    assert_eq!(open, [0.0, 1.0]);
    let finished = of("perflab_runs").into_iter().find(|sample| sample["labels"]["status"] == "finished");
    assert_eq!(finished.unwrap()["value"], 11.0);
}

/// A Prometheus that scrapes a server every second.
struct ScrapingPrometheus {
    child: Child,
    place: String,
}

impl ScrapingPrometheus {
    /// `None` where there is none on this machine.
    fn start(laboratory: &Sandbox, server: &LabServer) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let place = format!("127.0.0.1:{port}");
        let config = laboratory.path("prometheus.yml");
        // As docs/serve.md has it.
        let text = format!(
            "global: {{ scrape_interval: 1s }}\nscrape_configs:\n  - job_name: perflab\n    authorization: {{ credentials: {} }}\n    \
             static_configs: [ {{ targets: [ \"{}\" ] }} ]\n",
            server.token, server.place
        );
        fs::write(&config, text).unwrap();
        let spawned = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", laboratory.path("prometheus").display()))
            .arg(format!("--web.listen-address={place}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        spawned.ok().map(|child| ScrapingPrometheus { child, place })
    }

    /// `None` while it does not answer.
    fn ask(&self, target: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(&self.place).ok()?;
        write!(stream, "GET {target} HTTP/1.0\r\nHost: {}\r\n\r\n", self.place).ok()?;
        let reply = HttpReply::read(stream);
        assert!(reply.status == 200 || reply.status == 503, "{target}: {}", reply.text());
        (reply.status == 200).then(|| reply.json()["data"].clone())
    }

    /// Waits for an answer that has something: it takes two scrapes for a rate.
    fn wait_for(&self, target: &str, rows: impl Fn(&Value) -> &Value) {
        for _ in 0..600 {
            if self
                .ask(target)
                .is_some_and(|data| rows(&data).as_array().is_some_and(|rows| !rows.is_empty()))
            {
                return;
            }
            sleep(Duration::from_millis(100));
        }
        panic!("{target}: {:?}", self.ask(target));
    }
}

impl Drop for ScrapingPrometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn queries_of_prometheus_have_values() {
    let laboratory = prepare_stepped_archive();
    let server = LabServer::start(&laboratory, &[]);
    let Some(prometheus) = ScrapingPrometheus::start(&laboratory, &server) else {
        return skip_test("queries_of_prometheus_have_values", "no prometheus (apt install prometheus)");
    };
    let mut recording =
        laboratory.command(&["run", "--iterations", "10000", "--quiet", "--no-report", "--", "sleep", "0.2"]);
    let mut recording = recording.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let dashboard = read_dashboard("perflab-serve");
    let mut queries = Vec::new();
    find_objects(&dashboard, "expr", &mut queries);
    assert_eq!(queries.len(), 12);
    for query in queries {
        let query = query["expr"].as_str().unwrap();
        let query = query.replace("$study", ".*").replace("$__rate_interval", "10s");
        prometheus.wait_for(&format!("/api/v1/query?query={}", encode_query(&query)), |data| &data["result"]);
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let studies = variables.iter().find(|variable| variable["name"] == "study").unwrap();
    let query = studies["query"]["query"].as_str().unwrap();
    let (metric, label) =
        query.strip_prefix("label_values(").unwrap().trim_end_matches(')').split_once(", ").unwrap();
    prometheus.wait_for(&format!("/api/v1/label/{label}/values?match[]={metric}"), |data| data);
    kill_process(Pid::from_child(&recording), Signal::INT).unwrap();
    recording.wait().unwrap();
}
