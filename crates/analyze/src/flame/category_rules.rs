//! Rule tables as data (`rules/*.toml`): which functions belong to which category.
//!
//! A sound table has only patterns that can match something no earlier one took, and no two categories of one priority;
//! one with mistakes is refused, with the line of each. Patterns are plain text, with `*` for anything.

use std::collections::HashMap;

use perflab_model::error_class::{Classify, ErrorClass};
use serde::Deserialize;
use toml::Spanned;

/// The tables that come with perflab: name and text.
pub const SHIPPED_RULES: [(&str, &str); 2] =
    [("slab", include_str!("../../rules/slab.toml")), ("kernel", include_str!("../../rules/kernel.toml"))];

/// A mistake in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleMistake {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

/// A table that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .mistakes.iter().map(|one| format!("{}:{}: {}", .file, one.line, one.reason)).collect::<Vec<_>>().join("\n"))]
pub struct CategoryRulesError {
    /// The file.
    pub file: String,
    /// What is wrong with it, in order of lines.
    pub mistakes: Vec<RuleMistake>,
}

impl Classify for CategoryRulesError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

/// Which operation a stack is in, where several of its functions begin one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CategoryPick {
    /// that of the caller: what it calls is part of it
    Outermost,
    /// that of the callee: parts of a system, each of which calls the next
    Innermost,
}

/// Something with patterns.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameGroup {
    /// Its name.
    pub name: String,
    /// What functions make it.
    pub patterns: Vec<NamePattern>,
}

/// Functions of one object file lie together in the kernel's text.
#[derive(Debug, Clone, PartialEq)]
pub struct AddressWindow {
    /// The most bytes that its anchors may lie apart; more means that the linker moved functions.
    pub largest: u64,
    /// Functions that are in it.
    pub anchors: Vec<String>,
}

/// A checked table.
#[derive(Debug, Clone, PartialEq)]
pub struct CategoryRules {
    /// `slab`, or the path of a file.
    pub name: String,
    /// One line.
    pub title: String,
    /// Which operation a stack is in.
    pub pick: CategoryPick,
    /// What came in between.
    pub boundary: Vec<NamePattern>,
    /// What is done: `allocation`, `free`.
    pub operations: Vec<FrameGroup>,
    /// How it is done, the one of highest rank first; the last has everything else.
    pub categories: Vec<FrameGroup>,
    /// What samples end in, beside the categories.
    pub leaves: Vec<FrameGroup>,
    /// What is next to the operations.
    pub beside: Vec<FrameGroup>,
    /// Where functions without a rule count all the same.
    pub window: Option<AddressWindow>,
    /// What sounds as if a rule were missing, and what does only so.
    pub suspect: (Vec<NamePattern>, Vec<NamePattern>),
    /// What the kernel is, by a function that it has.
    pub variants: Vec<(String, String)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesDocument {
    title: String,
    #[serde(default, rename = "about")]
    _about: String,
    pick: CategoryPick,
    #[serde(default)]
    boundary: Vec<Spanned<String>>,
    operation: Vec<OperationRuleEntry>,
    #[serde(default)]
    category: Vec<CategoryRuleEntry>,
    #[serde(default)]
    leaf: Vec<FrameGroupEntry>,
    #[serde(default)]
    beside: Vec<FrameGroupEntry>,
    window: Option<WindowRuleEntry>,
    suspect: Option<SuspectRuleEntry>,
    #[serde(default)]
    variant: Vec<VariantRuleEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationRuleEntry {
    name: Spanned<String>,
    roots: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CategoryRuleEntry {
    name: Spanned<String>,
    priority: Spanned<i64>,
    #[serde(default)]
    frames: Vec<Spanned<String>>,
    #[serde(default)]
    otherwise: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FrameGroupEntry {
    name: Spanned<String>,
    #[serde(default, rename = "about")]
    _about: String,
    frames: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WindowRuleEntry {
    largest: Spanned<String>,
    anchors: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuspectRuleEntry {
    frames: Vec<Spanned<String>>,
    #[serde(default)]
    except: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VariantRuleEntry {
    name: String,
    has: String,
}

impl CategoryRules {
    /// A table that comes with perflab.
    pub fn load_shipped(name: &str) -> Option<Result<CategoryRules, CategoryRulesError>> {
        let (name, text) = SHIPPED_RULES.iter().find(|(known, _)| *known == name)?;
        Some(CategoryRules::parse(name, text))
    }

    /// Reads and checks a table.
    ///
    /// # Errors
    /// [`CategoryRulesError`] with every mistake and its line.
    pub fn parse(file: &str, text: &str) -> Result<CategoryRules, CategoryRulesError> {
        let mut reading = RulesParser { text, mistakes: Vec::new() };
        let document = toml::from_str::<RulesDocument>(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            reading.add_mistake(at, error.message().to_owned());
        });
        let rules = document.ok().map(|document| reading.check_document(file, document));
        reading.mistakes.sort_by_key(|mistake| mistake.line);
        match rules {
            Some(rules) if reading.mistakes.is_empty() => Ok(rules),
            _ => Err(CategoryRulesError { file: file.into(), mistakes: reading.mistakes }),
        }
    }

    /// Kernel symbols that this table asks for: anchors of its window, and what tells variants apart.
    pub fn anchor_symbols(&self) -> Vec<String> {
        let window = self.window.iter().flat_map(|window| window.anchors.iter().cloned());
        window.chain(self.variants.iter().map(|(_, has)| has.clone())).collect()
    }
}

/// Kernel symbols that any shipped table asks for.
pub fn shipped_anchors() -> Vec<String> {
    let tables = SHIPPED_RULES.iter().filter_map(|(name, _)| CategoryRules::load_shipped(name)?.ok());
    let mut all: Vec<String> = tables.flat_map(|rules| rules.anchor_symbols()).collect();
    all.sort();
    all.dedup();
    all
}

/// A table being checked.
struct RulesParser<'a> {
    text: &'a str,
    mistakes: Vec<RuleMistake>,
}

impl RulesParser<'_> {
    fn add_mistake(&mut self, at: usize, reason: String) {
        let before = self.text.get(..at).unwrap_or_default();
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        self.mistakes.push(RuleMistake { line, reason });
    }

    fn check_document(&mut self, file: &str, document: RulesDocument) -> CategoryRules {
        let categories = self.check_categories(document.category);
        let operations = document.operation.into_iter().map(|one| (one.name, one.roots)).collect();
        let window = document.window.and_then(|window| self.check_window(window));
        let suspect =
            document.suspect.map_or((Vec::new(), Vec::new()), |suspect| (suspect.frames, suspect.except));
        CategoryRules {
            name: file.into(),
            title: document.title,
            pick: document.pick,
            boundary: self.check_patterns(document.boundary),
            operations: self.check_disjoint_groups(operations),
            categories,
            leaves: self.check_frame_groups(document.leaf),
            beside: self.check_frame_groups(document.beside),
            window,
            suspect: (self.check_patterns(suspect.0), self.check_patterns(suspect.1)),
            variants: document.variant.into_iter().map(|one| (one.name, one.has)).collect(),
        }
    }

    fn check_patterns(&mut self, texts: Vec<Spanned<String>>) -> Vec<NamePattern> {
        let pattern = |text: Spanned<String>| match NamePattern::new(text.get_ref()) {
            Ok(pattern) => Some(pattern),
            Err(reason) => {
                self.add_mistake(text.span().start, reason);
                None
            }
        };
        texts.into_iter().filter_map(pattern).collect()
    }

    fn check_frame_groups(&mut self, tables: Vec<FrameGroupEntry>) -> Vec<FrameGroup> {
        let named = |table: FrameGroupEntry| {
            let patterns = self.check_patterns(table.frames);
            FrameGroup { name: table.name.into_inner(), patterns }
        };
        tables.into_iter().map(named).collect()
    }

    /// Names once each, and no pattern that an earlier one covers: it would match nothing.
    fn check_disjoint_groups(
        &mut self,
        tables: Vec<(Spanned<String>, Vec<Spanned<String>>)>,
    ) -> Vec<FrameGroup> {
        let mut seen: Vec<(NamePattern, String)> = Vec::new();
        let mut names = HashMap::new();
        let mut all = Vec::new();
        for (name, texts) in tables {
            let at = name.span().start;
            let name = name.into_inner();
            if names.insert(name.clone(), ()).is_some() {
                self.add_mistake(at, format!("`{name}` is there twice"));
            }
            let mut patterns = Vec::new();
            for text in texts {
                let at = text.span().start;
                let Some(pattern) = self.check_patterns(vec![text]).pop() else { continue };
                if let Some((earlier, of)) = seen.iter().find(|(earlier, _)| earlier.covers(&pattern)) {
                    let (pattern, earlier) = (pattern.text(), earlier.text());
                    self.add_mistake(
                        at,
                        format!("`{pattern}` matches nothing: `{earlier}` of `{of}` takes it before"),
                    );
                    continue;
                }
                seen.push((pattern.clone(), name.clone()));
                patterns.push(pattern);
            }
            all.push(FrameGroup { name, patterns });
        }
        all
    }

    /// The highest rank first. One has everything else, and no two have the same priority.
    fn check_categories(&mut self, mut tables: Vec<CategoryRuleEntry>) -> Vec<FrameGroup> {
        tables.sort_by_key(|table| (table.otherwise, *table.priority.get_ref()));
        for (first, second) in tables.iter().zip(tables.iter().skip(1)) {
            if first.priority.get_ref() == second.priority.get_ref() {
                let (a, b) = (first.name.get_ref(), second.name.get_ref());
                let priority = second.priority.get_ref();
                let at = first.priority.span().start.max(second.priority.span().start);
                self.add_mistake(
                    at,
                    format!("`{a}` and `{b}` both have priority {priority}: which of them wins?"),
                );
            }
        }
        let rests: Vec<_> =
            tables.iter().filter(|table| table.otherwise).map(|table| table.name.span().start).collect();
        match rests.as_slice() {
            [_] => {}
            [] => self.add_mistake(
                0,
                "no category has `otherwise = true`: what is in none of them would be lost".into(),
            ),
            [_, more @ ..] => more.iter().for_each(|at| {
                self.add_mistake(*at, "more than one category has `otherwise = true`".into());
            }),
        }
        for table in tables.iter().filter(|table| table.otherwise != table.frames.is_empty()) {
            let reason = "a category has either `frames` or `otherwise = true`";
            self.add_mistake(table.name.span().start, reason.into());
        }
        self.check_disjoint_groups(tables.into_iter().map(|table| (table.name, table.frames)).collect())
    }

    fn check_window(&mut self, table: WindowRuleEntry) -> Option<AddressWindow> {
        match perflab_model::Bytes::parse(table.largest.get_ref()) {
            Ok(largest) => Some(AddressWindow { largest: largest.0, anchors: table.anchors }),
            Err(error) => {
                self.add_mistake(table.largest.span().start, error.to_string());
                None
            }
        }
    }
}

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NamePattern(String);

impl NamePattern {
    /// Checks that a normalised name can match at all.
    ///
    /// # Errors
    /// The reason why none can.
    pub fn new(text: &str) -> Result<NamePattern, String> {
        let stripped = perflab_model::strip_compiler_suffixes(text);
        if text.is_empty() || text.chars().all(|c| c == '*') {
            return Err(format!("`{text}` names no function in particular"));
        }
        if stripped != text {
            return Err(format!(
                "`{text}` matches nothing: names are compared without suffixes, as `{stripped}`"
            ));
        }
        match text.chars().find(|c| c.is_whitespace() || c.is_control()) {
            Some(odd) => Err(format!("`{text}` matches nothing: no function's name has a {odd:?} in it")),
            None => Ok(NamePattern(text.into())),
        }
    }

    /// The pattern as it is written.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether a name fits.
    pub fn matches(&self, name: &str) -> bool {
        matches_pattern(self.0.as_bytes(), name.as_bytes())
    }

    /// Whether everything that fits `other` fits this: then `other` behind this one matches nothing.
    pub fn covers(&self, other: &NamePattern) -> bool {
        // A `*` of the other stands for any text, and only a `*` of this one can take that.
        matches_pattern(self.0.as_bytes(), other.0.as_bytes())
    }
}

/// Wildcards by going back to the last one: linear for the few that patterns have.
fn matches_pattern(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n, mut back) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                back = Some((p, n));
                p += 1;
            }
            Some(byte) if name.get(n) == Some(byte) => (p, n) = (p + 1, n + 1),
            _ => match back {
                Some((star, from)) => {
                    back = Some((star, from + 1));
                    (p, n) = (star + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_match(pattern: &str, name: &str) -> bool {
        NamePattern::new(pattern).unwrap().matches(name)
    }

    #[test]
    fn stars_stand_for_anything() {
        assert!(is_match("kfree", "kfree") && !is_match("kfree", "kfree_skb"));
        assert!(
            is_match("kfree*", "kfree")
                && is_match("*free", "kfree")
                && is_match("*memcg*", "__memcg_charge")
        );
        assert!(is_match("a*b*c", "axbxbc") && !is_match("a*b*c", "axbxb"));
    }

    #[test]
    fn what_matches_nothing_is_refused_with_its_reason() {
        let reasons = ["", "**", "foo.isra.0", "kmem_cache_alloc_noprof", "do it"]
            .map(|text| NamePattern::new(text).unwrap_err());
        insta::assert_snapshot!(reasons.join("\n"), @"
        `` names no function in particular
        `**` names no function in particular
        `foo.isra.0` matches nothing: names are compared without suffixes, as `foo`
        `kmem_cache_alloc_noprof` matches nothing: names are compared without suffixes, as `kmem_cache_alloc`
        `do it` matches nothing: no function's name has a ' ' in it
        ");
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        let covers = |a: &str, b: &str| NamePattern::new(a).unwrap().covers(&NamePattern::new(b).unwrap());
        assert!(covers("kfree*", "kfree") && covers("*a*", "xay*") && covers("a*", "a*"));
        assert!(!covers("kfree", "kfree*") && !covers("a*b", "a*"));
    }

    proptest! {
        #[test]
        fn a_pattern_made_of_a_name_fits_it(name in "[a-z_]{3,12}", cut in 0..3_usize, end in 0..3_usize) {
            let middle = &name[cut..name.len() - end.min(name.len() - cut)];
            let pattern = format!("*{middle}*");
            if let Ok(pattern) = NamePattern::new(&pattern) {
                prop_assert!(pattern.matches(&name));
            }
        }
    }
}
