//! The JSON document in an output, whatever a tool prints before and behind it.

use serde_json::Value as Json;

/// A JSON document in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundJson<'a> {
    /// The document.
    pub document: Json,
    /// What stands behind it.
    pub rest: &'a str,
}

/// Why a text holds no JSON document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoJsonDocument {
    /// The line at which it ends to be one, from 1; none where nothing begins like one.
    pub line: Option<u64>,
    /// What is wrong with it.
    pub reason: String,
}

/// The first JSON document of a text.
///
/// # Errors
/// Why there is none: a document that breaks off or is damaged is none, and what lies within it is not taken for one.
pub fn find_json_document(text: &str) -> Result<FoundJson<'_>, NoJsonDocument> {
    let mut offset = 0;
    let mut fault = None;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_start().starts_with(['{', '[']) {
            let begun = text.get(offset..).unwrap_or_default();
            let mut documents = serde_json::Deserializer::from_str(begun).into_iter::<Json>();
            match documents.next() {
                Some(Ok(document)) => {
                    let rest = begun.get(documents.byte_offset()..).unwrap_or_default();
                    return Ok(FoundJson { document, rest });
                }
                Some(Err(error)) => {
                    // A greeting may begin with a bracket too: it is no JSON in its own line.
                    let is_greeting = !error.is_eof() && error.line() == 1;
                    let (line, reason) = (Some((number + error.line()) as u64), error.to_string());
                    let first = fault.get_or_insert(NoJsonDocument { line, reason });
                    if !is_greeting {
                        return Err(first.clone());
                    }
                }
                None => {}
            }
        }
        offset += line.len();
    }
    Err(fault.unwrap_or(NoJsonDocument { line: None, reason: "it holds no JSON".into() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_are_passed_over() {
        let found = find_json_document("fio: note\n[warning] x\n{\"a\": [\n1]}\nbye\n").unwrap();
        assert_eq!((found.document, found.rest), (serde_json::json!({"a": [1]}), "\nbye\n"));
    }

    #[test]
    fn a_broken_document_is_none_and_has_its_line() {
        for (text, line) in [
            ("hello\n{\n\"a\": [\n{\"b\": 1},\n", Some(5)),
            ("{\n\"a\": x,\n{\"b\": 1}\n", Some(2)),
            ("{x}\n", Some(1)),
            ("plain\n", None),
        ] {
            assert_eq!(find_json_document(text).unwrap_err().line, line, "{text}");
        }
    }
}
