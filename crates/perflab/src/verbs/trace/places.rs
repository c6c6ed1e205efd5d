//! What was asked for (`[NAME=]BEGIN[,END]`) as places of a program and its libraries. Owns that notation, and which end
//! belongs to a begin where none was given.

use std::path::PathBuf;

use optrace::ProbeMark;
use perflab_observe::probes::{ProbePoint, ProbedProgram};

use super::binaries::{ProbePlaceKind, ProbePlaceText, ProgramBinaries};
use crate::exit::UsageError;

/// Places of a program with what each means.
#[derive(Debug, Default)]
pub struct ProbeSites {
    /// Kinds of operation.
    pub operations: Vec<String>,
    /// Kinds of span.
    pub spans: Vec<String>,
    /// What each place means, by its number.
    pub marks: Vec<ProbeMark>,
    /// Each place, by its number.
    pub places: Vec<ProbePoint>,
    /// Whether the stack pointer is the same at a begin and its end, by number of the place.
    pub framed: Vec<bool>,
    /// Whether goroutines come there, whose stacks move and which change threads, by number of the place.
    pub go: Vec<bool>,
}

impl ProbeSites {
    /// Finds everything.
    pub fn find(
        binaries: &mut ProgramBinaries,
        operations: &[String],
        spans: &[String],
    ) -> anyhow::Result<ProbeSites> {
        let mut places = ProbeSites::default();
        for text in operations {
            let kind = places.operations.len() as u8;
            let name = places.add_named_pair(binaries, text, ProbeMark::Begin(kind), ProbeMark::End(kind))?;
            places.operations.push(name);
        }
        for text in spans {
            let kind = places.spans.len() as u8;
            let name =
                places.add_named_pair(binaries, text, ProbeMark::Enter(kind), ProbeMark::Leave(kind))?;
            places.spans.push(name);
        }
        Ok(places)
    }

    /// Every name with its begin and its end: operations first.
    pub fn begin_end_pairs(&self) -> impl Iterator<Item = (&String, &ProbePoint, &ProbePoint)> {
        let pairs = self.places.as_chunks::<2>().0;
        self.operations.iter().chain(&self.spans).zip(pairs).map(|(name, [begin, end])| (name, begin, end))
    }

    /// The files in which they are.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = self.places.iter().map(|place| place.path.clone()).collect();
        files.sort();
        files.dedup();
        files
    }

    fn add_named_pair(
        &mut self,
        binaries: &mut ProgramBinaries,
        text: &str,
        begins: ProbeMark,
        ends: ProbeMark,
    ) -> anyhow::Result<String> {
        let (name, begin_text, end_text) = split_pair_text(text);
        let begin = ProbePlaceText::parse(begin_text)?;
        let function = if end_text.is_none() { begin.find_function(binaries)? } else { None };
        let framed = function.is_some();
        let (begin_place, end_place) = match (function, end_text) {
            (Some(found), _) => {
                let place = |sites| ProbePoint { path: found.path.clone(), sites, condition: None };
                (place(vec![found.function.begin]), place(found.function.ends))
            }
            (None, Some(end)) => {
                (begin.find_probed_place(binaries)?, ProbePlaceText::parse(end)?.find_probed_place(binaries)?)
            }
            (None, None) => {
                let ProbePlaceKind::Probe(probe, filter) = &begin.kind else {
                    return Err(UsageError::new(
                        format!("`{text}` is no place"),
                        "see `trace attach --help`",
                    )
                    .into());
                };
                let program = begin.file_with_probe(binaries, probe)?;
                let end = find_end_probe(program, probe)?;
                (program.probe_point(probe, filter.as_ref())?, program.probe_point(&end, filter.as_ref())?)
            }
        };
        self.marks.extend([begins, ends]);
        let go = |place: &ProbePoint| binaries.program().is_go() && place.path == binaries.program().path();
        self.go.extend([go(&begin_place), go(&end_place)]);
        self.places.extend([begin_place, end_place]);
        self.framed.extend([framed, framed]);
        Ok(name.unwrap_or_else(|| probe_stem(begin_text)).to_owned())
    }
}

/// `[NAME=]BEGIN[,END]`, at an equals sign and a comma that are no part of a place: not in brackets, and not of `operator=`.
fn split_pair_text(text: &str) -> (Option<&str>, &str, Option<&str>) {
    let named = text.split_once('=').filter(|(name, rest)| {
        !name.contains(['[', '(', '<', ':', '"']) && !name.ends_with("operator") && !rest.starts_with('=')
    });
    let (name, places) = named.map_or((None, text), |(name, places)| (Some(name), places));
    let (mut depth, mut quoted) = (0_i32, false);
    let comma = places.char_indices().find(|(_, letter)| {
        match letter {
            '"' => quoted = !quoted,
            '(' | '[' | '<' if !quoted => depth += 1,
            ')' | ']' | '>' if !quoted => depth -= 1,
            _ => {}
        }
        *letter == ',' && depth <= 0 && !quoted
    });
    let both = comma.and_then(|(at, _)| Some((places.get(..at)?, places.get(at + 1..)?)));
    both.map_or((name, places, None), |(begin, end)| (name, begin, Some(end)))
}

const PAIRS: [(&str, &[&str]); 3] =
    [("begin", &["end", ""]), ("entry", &["return", "exit"]), ("start", &["done", "end", "stop"])];

/// A probe's name without its provider and its `_begin`; the text that it is filtered by, where that is one.
fn probe_stem(begin: &str) -> &str {
    let (begin, filter) = match begin.split_once('[') {
        Some((begin, filter)) if begin.contains(':') && !begin.contains("operator") => (begin, Some(filter)),
        _ => (begin, None),
    };
    let mut quoted = filter.unwrap_or_default().split('"').skip(1).step_by(2);
    if let (Some(text), None) = (quoted.next().filter(|text| !text.is_empty()), quoted.next()) {
        return text;
    }
    let name = begin.rsplit(':').next().unwrap_or(begin);
    let without = PAIRS.iter().find_map(|(word, _)| {
        let stem = name.strip_suffix(word)?;
        stem.ends_with(['_', '-']).then(|| stem.trim_end_matches(['_', '-']))
    });
    without.filter(|stem| !stem.is_empty()).unwrap_or(name)
}

/// The USDT probe that ends what another one begins.
fn find_end_probe(program: &ProbedProgram, begin: &str) -> anyhow::Result<String> {
    // A probe that is not there is told as such.
    program.probe_point(begin, None)?;
    let ends = PAIRS.iter().filter_map(|(word, ends)| Some((begin.strip_suffix(word)?, ends)));
    let named = ends.flat_map(|(stem, ends)| ends.iter().map(move |end| format!("{stem}{end}")));
    let known = named.map(|name| name.trim_end_matches(['_', '-']).to_owned());
    let found = known.into_iter().find(|name| program.probe_names().any(|probe| probe == name));
    Ok(found.ok_or_else(|| {
        let probes: Vec<&str> = program.probe_names().collect();
        UsageError::new(
            format!("nothing says where `{begin}` ends"),
            format!("write {begin},END with one of {}", probes.join(", ")),
        )
    })?)
}

#[cfg(test)]
mod tests {
    use super::{probe_stem, split_pair_text};

    #[test]
    fn names_are_what_is_common_to_begin_and_end() {
        let named =
            ["slablist:reaped_begin", "x:query-start", "malloc", "a::b::insert", "begin"].map(probe_stem);
        assert_eq!(named, ["reaped", "query", "malloc", "insert", "begin"]);
        let filtered =
            ["python:function__entry[arg2==\"f\"]", "python:function__entry[arg3>5]", "libc.so.6:malloc"];
        assert_eq!(filtered.map(probe_stem), ["f", "function", "malloc"]);
    }

    #[test]
    fn a_name_and_an_end_are_told_from_what_belongs_to_a_place() {
        let cases = [
            ("insert", (None, "insert", None)),
            ("op=insert", (Some("op"), "insert", None)),
            ("x=a:b,a:c", (Some("x"), "a:b", Some("a:c"))),
            ("p:entry[arg2==\"a,b\"],p:return", (None, "p:entry[arg2==\"a,b\"]", Some("p:return"))),
            ("f=p:entry[arg2==\"f\"]", (Some("f"), "p:entry[arg2==\"f\"]", None)),
            ("tree::put(int, long)", (None, "tree::put(int, long)", None)),
            ("map<int, long>::get", (None, "map<int, long>::get", None)),
            ("tree::operator==(tree const&)", (None, "tree::operator==(tree const&)", None)),
        ];
        for (text, wanted) in cases {
            assert_eq!(split_pair_text(text), wanted, "{text}");
        }
    }
}
