//! Phoronix Test Suite's `composite.xml`: each test's every run on each system.
//!
//! Systems become the levels of a factor, as comparing them is what such a file is for.

use indexmap::IndexMap;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use perflab_formats::reading_parser::LineOutcome;
use perflab_model::{Direction, Nanos, Scalar};
use quick_xml::Reader;
use quick_xml::events::Event;

use crate::document_import::{count_unusable, open_document};
use crate::import_report::FileReport;
use crate::imported_run::{RunMetadata, imported_metric};
use crate::importer::{Importer, Recognition};
use crate::input_document::{DocumentError, InputDocument};
use crate::log_stream::LogStream;

/// Composite.xml of the Phoronix Test Suite.
pub(crate) const IMPORTER: Importer = Importer {
    name: "phoronix",
    about: "composite.xml of the Phoronix Test Suite",
    knows_boots: false,
    recognises: Recognition::File(|input| {
        input.document_with(&["<?xml", "<PhoronixTestSuite"]).is_some_and(is_phoronix_document)
    }),
    open: |path, options| open_document("phoronix", path, options, read_phoronix_document),
};

fn is_phoronix_document(document: &InputDocument) -> bool {
    document.text.trim_start().starts_with('<') && document.text.contains("<PhoronixTestSuite")
}

/// Elements within elements: results lie 5 deep.
const DEEPEST: usize = 64;

/// One `Result`, its texts by element.
#[derive(Debug, Default)]
struct PhoronixTest {
    fields: IndexMap<String, String>,
    entries: Vec<IndexMap<String, String>>,
}

impl PhoronixTest {
    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

fn read_phoronix_document(
    document: &InputDocument,
    metadata: &mut RunMetadata,
    report: &mut FileReport,
) -> Result<Vec<LogStream>, DocumentError> {
    let PhoronixSuite { tests, title, begun } = parse_phoronix_suite(&document.text)?;
    if let Some(title) = title {
        metadata.title = format!("Phoronix {title}");
    }
    if begun.is_some() {
        metadata.begun = begun;
        report.add_note("its times name no zone: taken as UTC");
    }
    tests.iter().for_each(|test| read_phoronix_test(test, metadata, report));
    Ok(Vec::new())
}

/// The whole file.
#[derive(Debug, Default)]
struct PhoronixSuite {
    tests: Vec<PhoronixTest>,
    title: Option<String>,
    /// When its first system was tested.
    begun: Option<Nanos>,
}

fn parse_phoronix_suite(text: &str) -> Result<PhoronixSuite, DocumentError> {
    let mut reader = Reader::from_str(text);
    let (mut path, mut suite) = (Vec::<String>::new(), PhoronixSuite::default());
    let mut held = String::new();
    loop {
        let event = reader.read_event();
        let fault = |reason: String, position: u64| {
            let before = text.get(..usize::try_from(position).unwrap_or(0)).unwrap_or(text);
            DocumentError { line: Some(before.matches('\n').count() as u64 + 1), reason }
        };
        match event.map_err(|error| fault(format!("it is no XML: {error}"), reader.error_position()))? {
            Event::Start(_) if path.len() == DEEPEST => {
                let reason = format!("its elements lie more than {DEEPEST} deep in one another");
                return Err(fault(reason, reader.buffer_position()));
            }
            Event::Start(tag) => {
                path.push(tag.name().as_ref().to_owned());
                held.clear();
                begin_element(&path, &mut suite.tests);
            }
            Event::Text(part) => held.push_str(&part),
            Event::CData(part) => held.push_str(&part),
            Event::GeneralRef(name) => held.push_str(xml_entity(&name)),
            Event::End(_) => {
                end_element(&path, std::mem::take(&mut held), &mut suite);
                path.pop();
            }
            Event::Eof if path.is_empty() => return Ok(suite),
            Event::Eof => {
                let open = path.join("/");
                return Err(fault(format!("it ends inside of {open}: it is cut off"), text.len() as u64));
            }
            _ => {}
        }
    }
}

fn xml_entity(name: &str) -> &'static str {
    match name {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        _ => "?",
    }
}

fn element_path(path: &[String]) -> Vec<&str> {
    path.iter().skip(1).map(String::as_str).collect()
}

fn begin_element(path: &[String], tests: &mut Vec<PhoronixTest>) {
    match element_path(path)[..] {
        ["Result"] => tests.push(PhoronixTest::default()),
        ["Result", "Data", "Entry"] => {
            tests.last_mut().into_iter().for_each(|test| test.entries.push(IndexMap::new()));
        }
        _ => {}
    }
}

fn end_element(path: &[String], text: String, PhoronixSuite { tests, title, begun }: &mut PhoronixSuite) {
    let text = text.trim().to_owned();
    match element_path(path)[..] {
        ["Generated", "Title"] => *title = Some(text),
        ["System", "TimeStamp"] => *begun = begun.iter().copied().chain(parse_phoronix_time(&text)).min(),
        ["Result", name] if name != "Data" => {
            tests.last_mut().into_iter().for_each(|test| drop(test.fields.insert(name.into(), text.clone())));
        }
        ["Result", "Data", "Entry", name] => {
            let entry = tests.last_mut().and_then(|test| test.entries.last_mut());
            entry.into_iter().for_each(|entry| drop(entry.insert(name.into(), text.clone())));
        }
        _ => {}
    }
}

/// `2026-11-22 01:55:59`
fn parse_phoronix_time(text: &str) -> Option<Nanos> {
    let time = DateTime::strptime("%Y-%m-%d %H:%M:%S", text).ok()?.to_zoned(TimeZone::UTC).ok()?;
    u64::try_from(time.timestamp().as_nanosecond()).ok().map(Nanos)
}

fn read_phoronix_test(test: &PhoronixTest, metadata: &mut RunMetadata, report: &mut FileReport) {
    let identifier = test.field("Identifier");
    let workload = if identifier.is_empty() { test.field("Title") } else { identifier };
    let direction = match test.field("Proportion") {
        "HIB" => Direction::Higher,
        "LIB" => Direction::Lower,
        _ => Direction::Neither,
    };
    for entry in &test.entries {
        let field = |name: &str| entry.get(name).map_or("", String::as_str);
        let raw = Some(field("RawString")).filter(|raw| !raw.is_empty()).unwrap_or_else(|| field("Value"));
        let system = field("Identifier");
        let text = test.field("Description");
        let point = (!text.is_empty()).then(|| ("test".to_owned(), Scalar::from(text)));
        let case = metadata.results.find_or_add_case_at(
            workload,
            point.into_iter().collect(),
            &[("system", system)],
        );
        let id = metadata
            .results
            .find_or_add_metric(case, imported_metric("result", test.field("Scale"), direction, true));
        for word in raw.split(':').map(str::trim) {
            match word.parse::<f64>().ok().filter(|value| value.is_finite()) {
                Some(value) => {
                    let execution = metadata.results.next_execution(case, 0, None);
                    metadata.results.add_sample(execution, id, value, None);
                    report.count_row(0, LineOutcome::Used);
                }
                None => count_unusable(
                    report,
                    0,
                    format!("{workload} on {system} has the result `{word}`, which is no number"),
                ),
            }
        }
    }
}
