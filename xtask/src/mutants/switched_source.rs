//! A source file that holds many mutants at once, each behind a switch: what is built once is tested with one after the other.

use std::ops::Range;

use anyhow::{Context, Result};
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Arm, ExprBinary, ExprStruct, ExprUnary, Pat};

use crate::mutants::code_mutant::{CodeMutant, MutantKind, SourcePlace};

/// Says which mutant a program is to run with.
pub const CHOSEN_VARIABLE: &str = "PERFLAB_MUTANT";
/// Names the file to which a program appends the number of each mutant that it comes by.
pub const REACHED_VARIABLE: &str = "PERFLAB_MUTANTS_REACHED";
/// The root of whatever crate the switches are in.
const ROOT: &str = "crate";

/// The module that a crate with switches has at its end, for mutants below `count`.
pub fn switch_module(count: usize) -> String {
    format!(
        r#"
#[doc(hidden)]
#[allow(warnings)]
mod mutant_switch {{
    use std::io::Write as _;
    use std::sync::LazyLock;
    use std::sync::atomic::{{AtomicBool, Ordering}};

    static CHOSEN: LazyLock<Option<usize>> = LazyLock::new(|| std::env::var("{CHOSEN_VARIABLE}").ok()?.parse().ok());
    static REACHED_FILE: LazyLock<Option<std::ffi::OsString>> = LazyLock::new(|| std::env::var_os("{REACHED_VARIABLE}"));
    static REACHED: [AtomicBool; {count}] = [const {{ AtomicBool::new(false) }}; {count}];

    pub fn is_on(number: usize) -> bool {{
        if let Some(file) = &*REACHED_FILE {{
            if !REACHED[number].swap(true, Ordering::Relaxed) {{
                if let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(file) {{
                    let _ = file.write_all(format!("{{number}}\n").as_bytes());
                }}
            }}
        }}
        *CHOSEN == Some(number)
    }}
}}
"#
    )
}

/// A file with its mutants behind switches.
#[derive(Debug)]
pub struct SwitchedSource {
    /// What is compiled.
    pub text: String,
    /// Which bytes of it belong to which mutant.
    regions: Vec<(Range<usize>, usize)>,
    /// Those that cannot stand beside the original, because their place is inside a macro.
    pub left_out: Vec<usize>,
}

impl SwitchedSource {
    /// The mutant to which these bytes belong: the innermost one.
    pub fn mutant_at(&self, bytes: &Range<usize>) -> Option<usize> {
        let around =
            |region: &&(Range<usize>, usize)| region.0.start <= bytes.start && bytes.end <= region.0.end;
        self.regions.iter().filter(around).min_by_key(|(region, _)| region.len()).map(|(_, number)| *number)
    }

    /// All mutants of the file that are behind switches.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        self.regions.iter().map(|(_, number)| *number)
    }
}

/// The file with these mutants, each under its number.
pub fn switch_mutants(text: &str, mutants: &[(usize, &CodeMutant)]) -> Result<SwitchedSource> {
    let parsed = syn::parse_file(text).context("is no Rust")?;
    let mut switches = SwitchPlaces { text, wanted: mutants, insertions: Vec::new() };
    switches.visit_file(&parsed);
    for (number, mutant) in mutants.iter().filter(|(_, mutant)| mutant.kind == MutantKind::FunctionValue) {
        let at =
            byte_of_place(text, mutant.start).with_context(|| format!("nothing is at {}", mutant.name))?;
        let early = format!("if {} {{ return {}; }} ", switch_condition(*number), mutant.replacement);
        switches.insertions.push(Insertion { at, order: (1, 0, 0), text: early, number: *number });
    }
    let mut insertions = switches.insertions;
    insertions.sort_by_key(|insertion| (insertion.at, insertion.order));
    let left_out = mutants.iter().map(|(number, _)| *number);
    let left_out =
        left_out.filter(|number| insertions.iter().all(|insertion| insertion.number != *number)).collect();
    let (mut switched, mut copied) = (String::new(), 0);
    let mut regions: Vec<(Range<usize>, usize)> = Vec::new();
    for insertion in insertions {
        switched.push_str(&text[copied..insertion.at]);
        copied = insertion.at;
        let start = switched.len();
        switched.push_str(&insertion.text);
        match regions.iter_mut().find(|(_, number)| *number == insertion.number) {
            Some((region, _)) => region.end = switched.len(),
            None => regions.push((start..switched.len(), insertion.number)),
        }
    }
    switched.push_str(&text[copied..]);
    Ok(SwitchedSource { text: switched, regions, left_out })
}

/// The file with this one mutant in place of the original.
pub fn replace_by_mutant(text: &str, mutant: &CodeMutant) -> Option<String> {
    let [start, end] = [mutant.start, mutant.end].map(|place| byte_of_place(text, place));
    Some(format!("{}{}{}", &text[..start?], mutant.replacement, &text[end?..]))
}

/// Where a place is, in bytes.
fn byte_of_place(text: &str, place: SourcePlace) -> Option<usize> {
    let line_start: usize = text.split_inclusive('\n').take(place.line.checked_sub(1)?).map(str::len).sum();
    let mut characters = text.get(line_start..)?.char_indices().map(|(at, _)| line_start + at);
    characters.nth(place.column.checked_sub(1)?)
}

fn switch_condition(number: usize) -> String {
    format!("{ROOT}::mutant_switch::is_on({number})")
}

/// Text that is put into a file.
struct Insertion {
    at: usize,
    /// At one place, what ends stands before what begins, and the outer around the inner; of two around the same, that which was
    /// found first is the outer.
    order: (u8, usize, usize),
    text: String,
    number: usize,
}

/// Finds where mutants other than values of functions stand.
struct SwitchPlaces<'a> {
    text: &'a str,
    wanted: &'a [(usize, &'a CodeMutant)],
    insertions: Vec<Insertion>,
}

impl<'a> SwitchPlaces<'a> {
    fn mutants_at(&self, kind: MutantKind, span: Span) -> Vec<(usize, &'a CodeMutant)> {
        let start = span.start();
        let place = SourcePlace { line: start.line, column: start.column + 1 };
        let here = |(_, mutant): &&(usize, &CodeMutant)| mutant.kind == kind && mutant.start == place;
        self.wanted.iter().filter(here).copied().collect()
    }

    fn insert_around(&mut self, range: &Range<usize>, number: usize, before: String, behind: &str) {
        let (length, found) = (range.len(), self.insertions.len());
        let begins = (1, usize::MAX - length, found);
        self.insertions.push(Insertion { at: range.start, order: begins, text: before, number });
        let ends = (0, length, usize::MAX - found);
        self.insertions.push(Insertion { at: range.end, order: ends, text: behind.into(), number });
    }

    /// The expression becomes the mutant where its switch is on.
    fn switch_expression(&mut self, range: &Range<usize>, number: usize, mutant: &str) {
        let before = format!("(if {} {{ {mutant} }} else {{ ", switch_condition(number));
        self.insert_around(range, number, before, " })");
    }
}

impl<'a> Visit<'a> for SwitchPlaces<'_> {
    fn visit_expr_binary(&mut self, expression: &'a ExprBinary) {
        let operator = expression.op.span();
        for (number, mutant) in self.mutants_at(MutantKind::BinaryOperator, operator) {
            let (range, operator) = (expression.span().byte_range(), operator.byte_range());
            let [left, right] = [range.start..operator.start, operator.end..range.end];
            let changed = format!("{}{}{}", &self.text[left], mutant.replacement, &self.text[right]);
            self.switch_expression(&range, number, &changed);
        }
        visit::visit_expr_binary(self, expression);
    }

    fn visit_expr_unary(&mut self, expression: &'a ExprUnary) {
        let operator = expression.op.span();
        for (number, mutant) in self.mutants_at(MutantKind::UnaryOperator, operator) {
            let range = expression.span().byte_range();
            let changed =
                format!("{}{}", mutant.replacement, &self.text[operator.byte_range().end..range.end]);
            self.switch_expression(&range, number, &changed);
        }
        visit::visit_expr_unary(self, expression);
    }

    fn visit_arm(&mut self, arm: &'a Arm) {
        for (number, _) in self.mutants_at(MutantKind::MatchArm, arm.span()) {
            let on = switch_condition(number);
            if let Pat::Guard(guarded) = &arm.pat {
                let range = guarded.guard.span().byte_range();
                self.insert_around(&range, number, format!("!{on} && ("), ")");
            } else {
                let at = arm.pat.span().byte_range().end;
                self.insertions.push(Insertion { at, order: (1, 0, 0), text: format!(" if !{on}"), number });
            }
        }
        if let Pat::Guard(guarded) = &arm.pat {
            for (number, mutant) in self.mutants_at(MutantKind::MatchArmGuard, guarded.guard.span()) {
                let range = guarded.guard.span().byte_range();
                self.switch_expression(&range, number, &mutant.replacement);
            }
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, expression: &'a ExprStruct) {
        for field in &expression.fields {
            for (number, _) in self.mutants_at(MutantKind::StructField, field.span()) {
                let Some(base) = &expression.rest else { continue };
                let [name, base, member] =
                    [expression.path.span(), base.span(), field.member.span()].map(|span| span.byte_range());
                let [name, base, member] = [name, base, member].map(|range| &self.text[range]);
                let colon = if field.colon_token.is_none() { format!("{member}: ") } else { String::new() };
                let before = format!(
                    "{colon}(if {} {{ ({name} {{ ..{base} }}).{member} }} else {{ ",
                    switch_condition(number)
                );
                self.insert_around(&field.expr.span().byte_range(), number, before, " })");
            }
        }
        visit::visit_expr_struct(self, expression);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(kind: MutantKind, line: usize, from: usize, to: usize, replacement: &str) -> CodeMutant {
        let place = |column| SourcePlace { line, column };
        CodeMutant {
            name: format!("{line}:{from}"),
            package: "p".into(),
            file: "src/lib.rs".into(),
            kind,
            start: place(from),
            end: place(to),
            replacement: replacement.into(),
        }
    }

    const TEXT: &str = "fn µ(a: i32) -> i32 {\n    a * 2 + -a\n}\n";

    #[test]
    fn nested_mutants_stand_one_inside_the_other() {
        let mutants = [
            mutant(MutantKind::FunctionValue, 2, 5, 15, "7"),
            mutant(MutantKind::BinaryOperator, 2, 11, 12, "-"),
            mutant(MutantKind::BinaryOperator, 2, 7, 8, "/"),
            mutant(MutantKind::UnaryOperator, 2, 13, 14, ""),
        ];
        let numbered: Vec<(usize, &CodeMutant)> = mutants.iter().enumerate().collect();
        let switched = switch_mutants(TEXT, &numbered).unwrap();
        assert_eq!(switched.left_out, [0_usize; 0]);
        let on = switch_condition;
        let expected = format!(
            "fn µ(a: i32) -> i32 {{\n    if {} {{ return 7; }} (if {} {{ a * 2 - -a }} else {{ (if {} {{ a / 2 }} else {{ a * 2 }}) + (if {} {{ a }} else {{ -a }}) }})\n}}\n",
            on(0),
            on(1),
            on(2),
            on(3)
        );
        assert_eq!(switched.text, expected);
        let inner = switched.text.find("a / 2").unwrap();
        assert_eq!(switched.mutant_at(&(inner..inner + 5)), Some(2));
        assert_eq!(switched.mutant_at(&(0..2)), None);
    }

    #[test]
    fn two_mutants_of_one_operator_are_both_there() {
        let mutants = [
            mutant(MutantKind::BinaryOperator, 2, 11, 12, "-"),
            mutant(MutantKind::BinaryOperator, 2, 11, 12, "*"),
        ];
        let numbered: Vec<(usize, &CodeMutant)> = mutants.iter().enumerate().collect();
        let switched = switch_mutants(TEXT, &numbered).unwrap();
        assert!(syn::parse_file(&switched.text).is_ok(), "{}", switched.text);
        assert_eq!(switched.text.matches("a * 2 * -a").count(), 1);
        assert_eq!(switched.text.matches("a * 2 - -a").count(), 1);
    }

    #[test]
    fn arms_guards_and_fields_have_switches() {
        let text = "fn f(a: u8) -> S {\n    match a {\n        1 => g(),\n        2 if a > b() => h(),\n        _ => S { x, y: 2, ..d() },\n    }\n}\n";
        let mutants = [
            mutant(MutantKind::MatchArm, 3, 9, 18, ""),
            mutant(MutantKind::MatchArmGuard, 4, 14, 21, "true"),
            mutant(MutantKind::MatchArm, 4, 9, 29, ""),
            mutant(MutantKind::StructField, 5, 18, 20, ""),
            mutant(MutantKind::StructField, 5, 21, 26, ""),
        ];
        let numbered: Vec<(usize, &CodeMutant)> = mutants.iter().enumerate().collect();
        let switched = switch_mutants(text, &numbered).unwrap();
        assert_eq!(switched.left_out, [0_usize; 0]);
        let lines: Vec<&str> = switched.text.lines().collect();
        let on = switch_condition;
        assert_eq!(lines[2], format!("        1 if !{} => g(),", on(0)));
        assert!(lines[3].contains(&format!("!{} && (", on(2))), "{}", lines[3]);
        assert!(lines[3].contains(&format!("(if {} {{ true }} else {{ a > b() }})", on(1))), "{}", lines[3]);
        let fields = format!(
            "S {{ x: (if {} {{ (S {{ ..d() }}).x }} else {{ x }}), y: (if {} {{ (S {{ ..d() }}).y }} else {{ 2 }}), ..d() }}",
            on(3),
            on(4)
        );
        assert!(lines[4].contains(&fields), "{}", lines[4]);
        assert!(syn::parse_file(&switched.text).is_ok());
    }

    #[test]
    fn what_stands_in_a_macro_is_left_out_but_can_be_replaced() {
        let text = "fn f() {\n    assert!(1 + 1 == 2);\n}\n";
        let inside = mutant(MutantKind::BinaryOperator, 2, 15, 16, "-");
        let switched = switch_mutants(text, &[(5, &inside)]).unwrap();
        assert_eq!((switched.left_out, switched.text.as_str()), (vec![5], text));
        assert_eq!(replace_by_mutant(text, &inside).unwrap(), text.replace("1 + 1", "1 - 1"));
    }

    #[test]
    fn the_switch_is_a_module() {
        assert!(syn::parse_file(&switch_module(3)).is_ok());
    }
}
