//! Rule tables: which functions belong to which category, as data (`rules/*.toml`).
//!
//! Owns the table's shape and what makes one sound: every pattern can match something that no earlier one took,
//! and no two categories have one priority. Refuses a table with a mistake, naming the line of each.

use std::collections::HashMap;

use serde::Deserialize;
use toml::Spanned;

use super::Pattern;

/// The tables that come with perflab: name and text.
pub const SHIPPED: [(&str, &str); 2] = [
    ("slab", include_str!("../../../../rules/slab.toml")),
    ("kernel", include_str!("../../../../rules/kernel.toml")),
];

/// A mistake in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

/// A table that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .mistakes.iter().map(|one| format!("{}:{}: {}", .file, one.line, one.reason)).collect::<Vec<_>>().join("\n"))]
pub struct RulesError {
    /// The file.
    pub file: String,
    /// What is wrong with it, in order of lines.
    pub mistakes: Vec<Mistake>,
}

/// Which operation a stack is in, where several of its functions begin one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pick {
    /// that of the caller: what it calls is part of it
    Outermost,
    /// that of the callee: parts of a system, each of which calls the next
    Innermost,
}

/// Something with patterns.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// What functions make it.
    pub patterns: Vec<Pattern>,
}

/// Functions of one object file lie together in the kernel's text.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The most bytes that its anchors may lie apart; more means that the linker moved functions.
    pub largest: u64,
    /// Functions that are in it.
    pub anchors: Vec<String>,
}

/// A checked table.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// `slab`, or the path of a file.
    pub name: String,
    /// One line.
    pub title: String,
    /// Which operation a stack is in.
    pub pick: Pick,
    /// What came in between.
    pub boundary: Vec<Pattern>,
    /// What is done: `allocation`, `free`.
    pub operations: Vec<Named>,
    /// How it is done, the one of highest rank first; the last has everything else.
    pub categories: Vec<Named>,
    /// What samples end in, beside the categories.
    pub leaves: Vec<Named>,
    /// What is next to the operations.
    pub beside: Vec<Named>,
    /// Where functions without a rule count all the same.
    pub window: Option<Window>,
    /// What sounds as if a rule were missing, and what does only so.
    pub suspect: (Vec<Pattern>, Vec<Pattern>),
    /// What the kernel is, by a function that it has.
    pub variants: Vec<(String, String)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    title: String,
    #[serde(default, rename = "about")]
    _about: String,
    pick: Pick,
    #[serde(default)]
    boundary: Vec<Spanned<String>>,
    operation: Vec<OperationTable>,
    #[serde(default)]
    category: Vec<CategoryTable>,
    #[serde(default)]
    leaf: Vec<FramesTable>,
    #[serde(default)]
    beside: Vec<FramesTable>,
    window: Option<WindowTable>,
    suspect: Option<SuspectTable>,
    #[serde(default)]
    variant: Vec<VariantTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationTable {
    name: Spanned<String>,
    roots: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CategoryTable {
    name: Spanned<String>,
    priority: Spanned<i64>,
    #[serde(default)]
    frames: Vec<Spanned<String>>,
    #[serde(default)]
    otherwise: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FramesTable {
    name: Spanned<String>,
    #[serde(default, rename = "about")]
    _about: String,
    frames: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WindowTable {
    largest: Spanned<String>,
    anchors: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuspectTable {
    frames: Vec<Spanned<String>>,
    #[serde(default)]
    except: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VariantTable {
    name: String,
    has: String,
}

impl Rules {
    /// A table that comes with perflab.
    pub fn shipped(name: &str) -> Option<Result<Rules, RulesError>> {
        let (name, text) = SHIPPED.iter().find(|(known, _)| *known == name)?;
        Some(Rules::parse(name, text))
    }

    /// Reads and checks a table.
    ///
    /// # Errors
    /// [`RulesError`] with every mistake and its line.
    pub fn parse(file: &str, text: &str) -> Result<Rules, RulesError> {
        let mut reading = Reading { text, mistakes: Vec::new() };
        let document = toml::from_str::<Document>(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            reading.mistake(at, error.message().to_owned());
        });
        let rules = document.ok().map(|document| reading.rules(file, document));
        reading.mistakes.sort_by_key(|mistake| mistake.line);
        match rules {
            Some(rules) if reading.mistakes.is_empty() => Ok(rules),
            _ => Err(RulesError { file: file.into(), mistakes: reading.mistakes }),
        }
    }

    /// Kernel symbols that this table asks for: anchors of its window, and what tells variants apart.
    pub fn anchors(&self) -> Vec<String> {
        let window = self.window.iter().flat_map(|window| window.anchors.iter().cloned());
        window.chain(self.variants.iter().map(|(_, has)| has.clone())).collect()
    }
}

/// Kernel symbols that any shipped table asks for.
pub fn anchors() -> Vec<String> {
    let tables = SHIPPED.iter().filter_map(|(name, _)| Rules::shipped(name)?.ok());
    let mut all: Vec<String> = tables.flat_map(|rules| rules.anchors()).collect();
    all.sort();
    all.dedup();
    all
}

/// A table being checked.
struct Reading<'a> {
    text: &'a str,
    mistakes: Vec<Mistake>,
}

impl Reading<'_> {
    fn mistake(&mut self, at: usize, reason: String) {
        let before = self.text.get(..at).unwrap_or_default();
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        self.mistakes.push(Mistake { line, reason });
    }

    fn rules(&mut self, file: &str, document: Document) -> Rules {
        let categories = self.categories(document.category);
        let operations = document.operation.into_iter().map(|one| (one.name, one.roots)).collect();
        let window = document.window.and_then(|window| self.window(window));
        let suspect =
            document.suspect.map_or((Vec::new(), Vec::new()), |suspect| (suspect.frames, suspect.except));
        Rules {
            name: file.into(),
            title: document.title,
            pick: document.pick,
            boundary: self.patterns(document.boundary),
            operations: self.disjoint(operations),
            categories,
            leaves: self.all_named(document.leaf),
            beside: self.all_named(document.beside),
            window,
            suspect: (self.patterns(suspect.0), self.patterns(suspect.1)),
            variants: document.variant.into_iter().map(|one| (one.name, one.has)).collect(),
        }
    }

    fn patterns(&mut self, texts: Vec<Spanned<String>>) -> Vec<Pattern> {
        let pattern = |text: Spanned<String>| match Pattern::new(text.get_ref()) {
            Ok(pattern) => Some(pattern),
            Err(reason) => {
                self.mistake(text.span().start, reason);
                None
            }
        };
        texts.into_iter().filter_map(pattern).collect()
    }

    fn all_named(&mut self, tables: Vec<FramesTable>) -> Vec<Named> {
        let named = |table: FramesTable| {
            let patterns = self.patterns(table.frames);
            Named { name: table.name.into_inner(), patterns }
        };
        tables.into_iter().map(named).collect()
    }

    /// Names once each, and no pattern that an earlier one covers: it would match nothing.
    fn disjoint(&mut self, tables: Vec<(Spanned<String>, Vec<Spanned<String>>)>) -> Vec<Named> {
        let mut seen: Vec<(Pattern, String)> = Vec::new();
        let mut names = HashMap::new();
        let mut all = Vec::new();
        for (name, texts) in tables {
            let at = name.span().start;
            let name = name.into_inner();
            if names.insert(name.clone(), ()).is_some() {
                self.mistake(at, format!("`{name}` is there twice"));
            }
            let mut patterns = Vec::new();
            for text in texts {
                let at = text.span().start;
                let Some(pattern) = self.patterns(vec![text]).pop() else { continue };
                if let Some((earlier, of)) = seen.iter().find(|(earlier, _)| earlier.covers(&pattern)) {
                    let (pattern, earlier) = (pattern.text(), earlier.text());
                    self.mistake(
                        at,
                        format!("`{pattern}` matches nothing: `{earlier}` of `{of}` takes it before"),
                    );
                    continue;
                }
                seen.push((pattern.clone(), name.clone()));
                patterns.push(pattern);
            }
            all.push(Named { name, patterns });
        }
        all
    }

    /// The highest rank first. One has everything else, and no two have the same priority.
    fn categories(&mut self, mut tables: Vec<CategoryTable>) -> Vec<Named> {
        tables.sort_by_key(|table| (table.otherwise, *table.priority.get_ref()));
        for (first, second) in tables.iter().zip(tables.iter().skip(1)) {
            if first.priority.get_ref() == second.priority.get_ref() {
                let (a, b) = (first.name.get_ref(), second.name.get_ref());
                let priority = second.priority.get_ref();
                let at = first.priority.span().start.max(second.priority.span().start);
                self.mistake(
                    at,
                    format!("`{a}` and `{b}` both have priority {priority}: which of them wins?"),
                );
            }
        }
        let rests: Vec<_> =
            tables.iter().filter(|table| table.otherwise).map(|table| table.name.span().start).collect();
        match rests.as_slice() {
            [_] => {}
            [] => self.mistake(
                0,
                "no category has `otherwise = true`: what is in none of them would be lost".into(),
            ),
            [_, more @ ..] => more.iter().for_each(|at| {
                self.mistake(*at, "more than one category has `otherwise = true`".into());
            }),
        }
        for table in tables.iter().filter(|table| table.otherwise != table.frames.is_empty()) {
            let reason = "a category has either `frames` or `otherwise = true`";
            self.mistake(table.name.span().start, reason.into());
        }
        self.disjoint(tables.into_iter().map(|table| (table.name, table.frames)).collect())
    }

    fn window(&mut self, table: WindowTable) -> Option<Window> {
        match perflab_model::Bytes::parse(table.largest.get_ref()) {
            Ok(largest) => Some(Window { largest: largest.0, anchors: table.anchors }),
            Err(error) => {
                self.mistake(table.largest.span().start, error.to_string());
                None
            }
        }
    }
}
