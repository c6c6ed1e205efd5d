//! A TOML file with its text: parsed, its keys located, its problems given the position of their key.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::problem::{self, Problem, Problems};
use crate::study::document::Study;
use crate::study::validation;

/// A study file: its name, its text, and the position of each key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TomlSource {
    /// The file as the user named it.
    pub file: String,
    /// Its text.
    pub text: String,
    /// Where the text is what one study makes of another: the two.
    extension: Option<Box<StudyExtension>>,
}

/// A study on top of another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StudyExtension {
    written: TomlSource,
    base: TomlSource,
    /// Whether it is the brief form of what was written: a key of it may stand there in `[brief]`.
    is_brief: bool,
}

/// The key of a study that names the one that it extends.
pub const EXTENDS: &str = "extends";

/// The table of a study that says what is less in its brief form.
pub const BRIEF: &str = "brief";

/// The key for what a study answers.
const ANSWERS: &str = "answers";

impl TomlSource {
    /// The text of `file`.
    pub fn new(file: impl Into<String>, text: impl Into<String>) -> Self {
        TomlSource { file: file.into(), text: text.into(), extension: None }
    }

    /// The study that this one extends, by the name that it gives; none where it extends none, or is no TOML.
    pub fn extended_name(&self) -> Option<String> {
        let table: toml::Table = self.text.parse().ok()?;
        Some(table.get(EXTENDS)?.as_str()?.to_owned())
    }

    /// This study on top of the one that it extends: tables are joined key by key, everything else that it says takes the place
    /// of what `base` says. Problems keep their places in what was written; where all are about the base alone, in that.
    ///
    /// # Errors
    /// One of the two is no TOML.
    pub fn extend(self, base: &TomlSource) -> Result<TomlSource, Problems> {
        let mut all: toml::Table = base.parse()?;
        let mut own: toml::Table = self.parse()?;
        own.remove(EXTENDS);
        // What another study answers, this one does not.
        all.remove(ANSWERS);
        join_tables(&mut all, own);
        // Keys and values are TOML's own: there is nothing that cannot be written.
        let text = toml::to_string(&all).unwrap_or_default();
        let file = self.file.clone();
        let extension = StudyExtension { written: self, base: base.clone(), is_brief: false };
        Ok(TomlSource { file, text, extension: Some(Box::new(extension)) })
    }

    /// The study as `[brief]` makes it: what stands there takes the place of what the study says otherwise.
    ///
    /// # Errors
    /// It is no TOML, or has no `[brief]`.
    pub fn shorten(self) -> Result<TomlSource, Problems> {
        let mut all: toml::Table = self.parse()?;
        let Some(toml::Value::Table(brief)) = all.remove(BRIEF) else {
            let problem = Problem::new("", "this study has no brief form");
            return Err(self.place_problems(vec![problem.with_hint(
                "add a table `[brief]` with what is less in it, such as `run.iterations = 2`, or leave out --brief",
            )]));
        };
        // Fewer levels answer less.
        all.remove(ANSWERS);
        join_tables(&mut all, brief);
        let text = toml::to_string(&all).unwrap_or_default();
        let file = self.file.clone();
        let extension = StudyExtension { base: self.clone(), written: self, is_brief: true };
        Ok(TomlSource { file, text, extension: Some(Box::new(extension)) })
    }

    /// Whether this is the brief form of a study.
    pub fn is_brief(&self) -> bool {
        self.extension.as_ref().is_some_and(|extension| extension.is_brief)
    }

    /// Whether the study has a brief form.
    pub fn has_brief(&self) -> bool {
        self.has_key(BRIEF)
    }

    /// Reads and checks the study, as far as the text alone allows.
    pub fn parse_study(&self) -> Result<Study, Problems> {
        let study: Study = self.parse_requiring(&["title", "workload"])?;
        self.check_study(&study)?;
        Ok(study)
    }

    /// Checks a study that was read from the text and changed since, as far as it says itself what is wrong.
    pub fn check_study(&self, study: &Study) -> Result<(), Problems> {
        let list = validation::find_study_problems(study);
        if list.is_empty() { Ok(()) } else { Err(self.place_problems(list)) }
    }

    /// Reads any table from the text, as its types allow: for files of other rooms, which check
    /// their values themselves and report through [`TomlSource::place_problems`].
    pub fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<T, Problems> {
        self.parse_requiring(&[])
    }

    /// The same for a type that must have these keys: all that are missing are reported at once.
    pub fn parse_requiring<T: serde::de::DeserializeOwned>(&self, required: &[&str]) -> Result<T, Problems> {
        toml::from_str(&self.text).map_err(|error| {
            let missing = if error.message().starts_with("missing field") {
                self.missing_keys(required)
            } else {
                Vec::new()
            };
            self.place_problems(if missing.is_empty() { vec![self.parse_problem(&error)] } else { missing })
        })
    }

    /// The keys of the whole file that are not there.
    fn missing_keys(&self, required: &[&str]) -> Vec<Problem> {
        let Ok(table) = DeTable::parse(&self.text) else { return Vec::new() };
        let is_there = |key: &str| table.get_ref().keys().any(|known| known.get_ref().as_ref() == key);
        let problem = |key: &&str| Problem::new("", format!("the key `{key}` is missing"));
        required.iter().filter(|key| !is_there(key)).map(problem).collect()
    }

    /// Adds positions to problems that know their key.
    pub fn place_problems(&self, list: Vec<Problem>) -> Problems {
        if let Some(extension) = &self.extension {
            let StudyExtension { written, base, is_brief } = extension.as_ref();
            // Positions in the joined text mean nothing to who wrote one of the two.
            let place = |problem: Problem| {
                let brief = format!("{BRIEF}.{}", problem.key);
                let key = if *is_brief && written.has_key(&brief) { brief } else { problem.key };
                Problem { span: None, key, ..problem }
            };
            let list: Vec<Problem> = list.into_iter().map(place).collect();
            let is_of_base = |problem: &Problem| !written.has_key(&problem.key) && base.has_key(&problem.key);
            let source = if list.iter().all(is_of_base) { base } else { written };
            return source.place_problems(list);
        }
        let place = |problem: Problem| {
            let span = problem.span.clone().or_else(|| self.locate(&problem.key));
            problem.with_span(span)
        };
        let list = list.into_iter().map(place).collect();
        Problems { file: self.file.clone(), text: self.text.clone(), list }
    }

    /// Whether there is a value at a dotted key.
    fn has_key(&self, key: &str) -> bool {
        let Ok(table) = DeTable::parse(&self.text) else { return false };
        let steps = key.split(['.', '[']).map(|step| step.trim_end_matches(']'));
        let found = steps.into_iter().try_fold(TomlNode::Table(table.get_ref()), |node, step| {
            node.child(step).map(|(_, child)| child)
        });
        found.is_some()
    }

    /// The bytes of the value at a dotted key such as `factor.pages.levels[1]`, or of the nearest
    /// table above it that exists.
    pub fn locate(&self, key: &str) -> Option<Range<usize>> {
        let table = DeTable::parse(&self.text).ok()?;
        let mut found = None;
        let mut node = TomlNode::Table(table.get_ref());
        for step in key.split(['.', '[']).map(|step| step.trim_end_matches(']')) {
            match node.child(step) {
                Some((span, next)) => {
                    found = Some(span);
                    node = next;
                }
                None => break,
            }
        }
        found
    }

    fn parse_problem(&self, error: &toml::de::Error) -> Problem {
        let message = error.message().trim();
        let key = error.span().and_then(|span| self.key_at(span.start)).unwrap_or_default();
        let problem = match parse_unknown_name(message) {
            Some((kind, name, known)) => {
                let hint = problem::suggest_name(name, known.iter().copied());
                Problem::new(key, format!("{kind} `{name}` is not known here")).with_hint(hint)
            }
            None => {
                let problem = Problem::new(key.clone(), problem::without_rust_types(message));
                match find_bare_number(message) {
                    Some(number) => problem.with_hint(format!("write `{}`", suggest_quantity(&key, number))),
                    None => problem,
                }
            }
        };
        problem.with_span(error.span())
    }

    /// The dotted key of the innermost value that holds byte `offset`.
    fn key_at(&self, offset: usize) -> Option<String> {
        let table = DeTable::parse(&self.text).ok()?;
        let mut path = String::new();
        TomlNode::Table(table.get_ref()).append_key_path(offset, &mut path);
        (!path.is_empty()).then_some(path)
    }
}

/// Puts `own` over `all`.
fn join_tables(all: &mut toml::Table, own: toml::Table) {
    for (key, value) in own {
        match (all.get_mut(&key), value) {
            (Some(toml::Value::Table(known)), toml::Value::Table(value)) => join_tables(known, value),
            (_, value) => drop(all.insert(key, value)),
        }
    }
}

/// The number that was given where a text is expected.
fn find_bare_number(message: &str) -> Option<&str> {
    let (found, expected) = message.split_once("`, expected ")?;
    let (kind, number) = found.split_once('`')?;
    let is_number = ["invalid type: integer ", "invalid type: floating point "].contains(&kind);
    (is_number && expected.starts_with("a string")).then_some(number)
}

/// A number with the unit that it most likely lacks.
fn suggest_quantity(key: &str, number: &str) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    let is_size = ["size", "memory", "disk"].contains(&name);
    let is_time = key.starts_with("monitors.")
        || ["time-limit", "total-time-limit", "quiet", "lost-after"].contains(&name);
    match () {
        () if name == "margin" => format!("{name} = \"{number}%\""),
        () if is_time && key.starts_with("monitors.") => format!("{name} = \"{number}ms\""),
        () if is_time => format!("{name} = \"{number}s\""),
        () if is_size => format!("{name} = \"{number}MiB\""),
        () => format!("{name} = \"{number}\""),
    }
}

/// serde's "unknown field `x`, expected one of `a`, `b`", taken apart: (kind, x, [a, b]).
fn parse_unknown_name(message: &str) -> Option<(&'static str, &str, Vec<&str>)> {
    let kind = [("unknown field", "the key"), ("unknown variant", "the value")];
    let (_, kind) = kind.into_iter().find(|(prefix, _)| message.starts_with(prefix))?;
    let mut names = message.split('`').skip(1).step_by(2);
    let name = names.next()?;
    Some((kind, name, names.collect()))
}

/// A table or an array of the document, for walking along a key.
enum TomlNode<'a> {
    Table(&'a DeTable<'a>),
    Array(&'a [Spanned<DeValue<'a>>]),
    Leaf,
}

impl<'a> TomlNode<'a> {
    fn from_value(value: &'a DeValue<'a>) -> Self {
        match value {
            DeValue::Table(table) => TomlNode::Table(table),
            DeValue::Array(array) => TomlNode::Array(array),
            _ => TomlNode::Leaf,
        }
    }

    /// The child of that name or index: its position, and its value.
    fn child(&self, name: &str) -> Option<(Range<usize>, TomlNode<'a>)> {
        match self {
            TomlNode::Table(table) => {
                let (key, value) = table.iter().find(|(key, _)| key.get_ref().as_ref() == name)?;
                Some((
                    key.span().start..value.span().end.max(key.span().end),
                    TomlNode::from_value(value.get_ref()),
                ))
            }
            TomlNode::Array(array) => {
                let value = array.get(name.parse::<usize>().ok()?)?;
                Some((value.span(), TomlNode::from_value(value.get_ref())))
            }
            TomlNode::Leaf => None,
        }
    }

    fn append_key_path(&self, offset: usize, path: &mut String) {
        match self {
            TomlNode::Table(table) => {
                let holds = |span: Range<usize>| span.contains(&offset);
                // The last match wins: a table's span is only its header.
                let mut hit = table.iter().filter(|(key, value)| {
                    holds(key.span()) || holds(value.span()) || contains_offset(value.get_ref(), offset)
                });
                if let Some((key, value)) = hit.next_back() {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key.get_ref());
                    TomlNode::from_value(value.get_ref()).append_key_path(offset, path);
                }
            }
            TomlNode::Array(array) => {
                let hit = array.iter().position(|value| value.span().contains(&offset));
                if let Some((index, value)) = hit.and_then(|index| Some((index, array.get(index)?))) {
                    path.push_str(&format!("[{index}]"));
                    TomlNode::from_value(value.get_ref()).append_key_path(offset, path);
                }
            }
            TomlNode::Leaf => {}
        }
    }
}

fn contains_offset(value: &DeValue<'_>, offset: usize) -> bool {
    let DeValue::Table(table) = value else { return false };
    table.iter().any(|(key, value)| {
        key.span().contains(&offset)
            || value.span().contains(&offset)
            || contains_offset(value.get_ref(), offset)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_study_answers_is_not_inherited_and_not_brief() {
        let text = "title = \"t\"\nanswers = [{ name = \"config-a\", set = [\"f=2\"] }]\n[workload.a]\n\
                    [factor.f]\nkind = \"parameter\"\nlevels = [1, 2]\n[brief]\nfactor.f.levels = [1]\n";
        let base = TomlSource::new("base.toml", text);
        assert_eq!(base.parse_study().unwrap().answers.len(), 1);
        let brief = base.clone().shorten().unwrap().parse_study().unwrap();
        let own = TomlSource::new("own.toml", "extends = \"base\"\nfactor.f.levels = [1]\n");
        let extended = own.extend(&base).unwrap().parse_study().unwrap();
        assert!(brief.answers.is_empty() && extended.answers.is_empty());
    }

    #[test]
    fn a_study_is_put_on_top_of_the_one_that_it_extends() {
        let base = TomlSource::new(
            "base.toml",
            "title = \"t\"\nrun = { iterations = 10, warmup = 2 }\n[workload.a]\n[monitors]\nvmstat = \"1s\"\n\
             [factor.f]\nkind = \"parameter\"\nlevels = [1, 2, 3]\n",
        );
        let own =
            TomlSource::new("own.toml", "extends = \"base\"\nrun.iterations = 3\n[factor.f]\nlevels = [4]\n");
        assert_eq!(own.extended_name().as_deref(), Some("base"));
        let study = own.clone().extend(&base).unwrap().parse_study().unwrap();
        assert_eq!((study.run.iterations, study.run.warmup, study.extends), (3, 2, None));
        assert_eq!(
            study.factor["f"].levels.iter().map(|level| level.name.as_str()).collect::<Vec<_>>(),
            ["4"]
        );
        assert!(study.workload.contains_key("a") && study.monitors.contains_key("vmstat"));
        let wrong = TomlSource::new("own.toml", "extends = \"base\"\n\nrun.iterations = 0\n");
        let found = wrong.extend(&base).unwrap().parse_study().unwrap_err();
        insta::assert_snapshot!(found.to_string(), @"own.toml:3:5: `run.iterations`: must be at least 1; 10 is a good start");
        let damaged = TomlSource::new(
            "base.toml",
            format!("{}\nnonsense = 1\n", base.text.replace("warmup = 2", "warmpu = 2")),
        );
        let own = TomlSource::new("own.toml", "extends = \"base\"\ntitle = \"own\"\n");
        let found = own.extend(&damaged).unwrap().parse_study().unwrap_err();
        assert_eq!((found.file.as_str(), found.list[0].key.as_str()), ("base.toml", "run.warmpu"));
        let slip = TomlSource::new("own.toml", "extends = \"base\"\nrun.iteration = 3\n");
        let found = slip.extend(&base).unwrap().parse_study().unwrap_err();
        insta::assert_snapshot!(found.to_string(), @"own.toml:2:5: `run.iteration`: the key `iteration` is not known here; did you mean `iterations`?");
    }
    #[test]
    fn a_study_has_a_brief_form() {
        let text = "title = \"t\"\nrun = { iterations = 10, warmup = 2 }\n[workload.a]\n[brief.run]\niterations = 2\n";
        let source = TomlSource::new("s.toml", text);
        assert_eq!(source.parse_study().unwrap().run.iterations, 10);
        let brief = source.shorten().unwrap();
        assert_eq!(
            (brief.parse_study().unwrap().run.iterations, brief.parse_study().unwrap().run.warmup),
            (2, 2)
        );
        let refused = brief.shorten().unwrap_err().to_string();
        insta::assert_snapshot!(refused, @"s.toml: this study has no brief form; add a table `[brief]` with what is less in it, such as `run.iterations = 2`, or leave out --brief");
        let slip = TomlSource::new("s.toml", text.replace("[brief.run]\niterations", "[brief.run]\nboot"));
        insta::assert_snapshot!(slip.shorten().unwrap().parse_study().unwrap_err().to_string(), @"s.toml:5:1: `brief.run.boot`: the key `boot` is not known here; did you mean `boots`?");
    }
}
