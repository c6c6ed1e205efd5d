//! What was asked for (`[NAME=]BEGIN[,END]`) as places of a program. Owns that notation, and which end belongs to a begin
//! where none was given.

use optrace::Mark;
use perflab_observe::probes::{Program, Site};

use crate::exit::Usage;

/// Places of a program with what each means.
#[derive(Debug, Default)]
pub struct Places {
    /// Kinds of operation.
    pub operations: Vec<String>,
    /// Kinds of span.
    pub spans: Vec<String>,
    /// What each place means, by its number.
    pub marks: Vec<Mark>,
    /// The sites of each place, by its number.
    pub sites: Vec<Vec<Site>>,
    /// Whether the stack pointer is the same at a begin and its end, by number of the place.
    pub framed: Vec<bool>,
}

impl Places {
    /// Finds everything in the program.
    pub fn find(program: &Program, operations: &[String], spans: &[String]) -> anyhow::Result<Places> {
        let mut places = Places::default();
        for text in operations {
            let kind = places.operations.len() as u8;
            let name = places.add(program, text, Mark::Begin(kind), Mark::End(kind))?;
            places.operations.push(name);
        }
        for text in spans {
            let kind = places.spans.len() as u8;
            let name = places.add(program, text, Mark::Enter(kind), Mark::Leave(kind))?;
            places.spans.push(name);
        }
        Ok(places)
    }

    fn add(&mut self, program: &Program, text: &str, begins: Mark, ends: Mark) -> anyhow::Result<String> {
        let (name, places) = text.split_once('=').map_or((None, text), |(name, places)| (Some(name), places));
        let (begin, end) = places.split_once(',').map_or((places, None), |(begin, end)| (begin, Some(end)));
        let probe = |name: &str| name.contains(':') && !name.contains("::");
        let reached = |name: &str| -> anyhow::Result<Vec<Site>> {
            if probe(name) {
                return Ok(program.probe(name)?.to_vec());
            }
            Ok(vec![program.entry(name)?])
        };
        let framed = end.is_none() && !probe(begin);
        let (begin_sites, end_sites) = match end {
            Some(end) => (reached(begin)?, reached(end)?),
            None if probe(begin) => (reached(begin)?, reached(&end_of(program, begin)?)?),
            None => {
                let function = program.function(begin)?;
                (vec![function.begin], function.ends)
            }
        };
        self.marks.extend([begins, ends]);
        self.sites.extend([begin_sites, end_sites]);
        self.framed.extend([framed, framed]);
        Ok(name.map_or_else(|| stem(begin).to_owned(), str::to_owned))
    }
}

const PAIRS: [(&str, &[&str]); 3] =
    [("begin", &["end", ""]), ("entry", &["return", "exit"]), ("start", &["done", "end", "stop"])];

/// A probe's name without its provider and its `_begin`.
fn stem(begin: &str) -> &str {
    let name = begin.rsplit(':').next().unwrap_or(begin);
    let without = PAIRS.iter().find_map(|(word, _)| name.strip_suffix(word)?.strip_suffix(['_', '-']));
    without.filter(|stem| !stem.is_empty()).unwrap_or(name)
}

/// The USDT probe that ends what another one begins.
fn end_of(program: &Program, begin: &str) -> Result<String, Usage> {
    let ends = PAIRS.iter().filter_map(|(word, ends)| Some((begin.strip_suffix(word)?, ends)));
    let named = ends.flat_map(|(stem, ends)| ends.iter().map(move |end| format!("{stem}{end}")));
    let known = named.map(|name| name.trim_end_matches(['_', '-']).to_owned());
    let found = known.into_iter().find(|name| program.probes().any(|probe| probe == name));
    found.ok_or_else(|| {
        let probes: Vec<&str> = program.probes().collect();
        Usage::new(
            format!("nothing says where `{begin}` ends"),
            format!("write {begin},END with one of {}", probes.join(", ")),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn names_are_what_is_common_to_begin_and_end() {
        let named = ["slablist:reaped_begin", "x:query-start", "malloc", "a::b::insert", "begin"].map(stem);
        assert_eq!(named, ["reaped", "query", "malloc", "insert", "begin"]);
    }
}
