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

/// A value to which a pointer leads, and what stood for each `*` of it.
#[derive(Debug, Clone, PartialEq)]
pub struct PointedJson<'a> {
    /// Keys, or places from 0, with `-` between them; none where the pointer has no `*`.
    pub name: Option<String>,
    /// The value.
    pub value: &'a Json,
}

/// Where a JSON pointer (RFC 6901) leads; a part of it that is `*` stands for every member and every item.
pub fn follow_json_pointer<'a>(document: &'a Json, pointer: &str) -> Vec<PointedJson<'a>> {
    let mut found = vec![PointedJson { name: None, value: document }];
    // Between stars it is a pointer as any other.
    for (place, part) in split_at_stars(pointer).into_iter().enumerate() {
        if place > 0 {
            found = found.into_iter().flat_map(|one| json_members(one.name.as_deref(), one.value)).collect();
        }
        found = found
            .into_iter()
            .filter_map(|one| Some(PointedJson { value: one.value.pointer(part)?, ..one }))
            .collect();
    }
    found
}

/// The same, each named by the text at the pointer `name` below what the last `*` stands for, where there is one.
pub fn follow_named_json_pointer<'a>(document: &'a Json, pointer: &str, name: &str) -> Vec<PointedJson<'a>> {
    let ends_there =
        |at: &usize| pointer.get(at + 2..).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let last = pointer.match_indices("/*").map(|(at, _)| at).filter(ends_there).last();
    let Some((items, rest)) = last.and_then(|at| pointer.split_at_checked(at + 2)) else {
        return follow_json_pointer(document, pointer);
    };
    let find = |one: PointedJson<'a>| {
        let own = one.value.pointer(name).and_then(Json::as_str).map(str::to_owned);
        Some(PointedJson { name: own.or(one.name), value: one.value.pointer(rest)? })
    };
    follow_json_pointer(document, items).into_iter().filter_map(find).collect()
}

/// Whether a pointer has a part that is `*`.
pub fn has_pointer_star(pointer: &str) -> bool {
    pointer.split('/').any(|part| part == "*")
}

/// The pointers before, between and behind the parts that are `*`.
fn split_at_stars(pointer: &str) -> Vec<&str> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    for part in pointer.split_inclusive('/') {
        let name = part.strip_suffix('/').unwrap_or(part);
        if name == "*" && at > 0 {
            parts.push(pointer.get(start..at - 1).unwrap_or_default());
            start = at + 1;
        }
        at += part.len();
    }
    parts.push(pointer.get(start..).unwrap_or_default());
    parts
}

fn json_members<'a>(name: Option<&str>, value: &'a Json) -> Vec<PointedJson<'a>> {
    let member = |key: String, value: &'a Json| {
        let name = name.map_or(key.clone(), |before| format!("{before}-{key}"));
        PointedJson { name: Some(name), value }
    };
    match value {
        Json::Object(members) => members.iter().map(|(key, value)| member(key.clone(), value)).collect(),
        Json::Array(items) => {
            items.iter().enumerate().map(|(place, item)| member(place.to_string(), item)).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_every_member() {
        let document = serde_json::json!({
            "jobs": [{"read": {"iops": 1}}, {"read": {"iops": 2}}, {"write": 3}],
            "thread": {"0": {"max": 4}, "1": {"max": 5}},
        });
        let found = |pointer: &str| -> Vec<(Option<String>, Json)> {
            let all = follow_json_pointer(&document, pointer);
            all.into_iter().map(|one| (one.name, one.value.clone())).collect()
        };
        let named = |name: &str, value: i64| (Some(name.to_owned()), Json::from(value));
        assert_eq!(found("/jobs/*/read/iops"), [named("0", 1), named("1", 2)]);
        assert_eq!(found("/thread/*/max"), [named("0", 4), named("1", 5)]);
        assert_eq!(found("/thread/*/*"), [named("0-max", 4), named("1-max", 5)]);
        assert_eq!(found("/jobs/1/read/iops"), [(None, 2.into())]);
        assert_eq!(found("/jobs/2/write"), [(None, 3.into())]);
        assert_eq!(found("/jobs/2/write/*"), []);
        assert_eq!(found("/*/1/read/iops"), [named("jobs", 2)]);
        assert!(has_pointer_star("/a/*") && !has_pointer_star("/a*/b"));
    }

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
