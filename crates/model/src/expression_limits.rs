//! How large an expression may be: the library parses any length by recursion and repeats any text, so that a line
//! of a study could overflow the stack or take all memory.

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::Rest;
use minijinja::{Environment, Error, ErrorKind, Value};

/// An expression that is longer or deeper, or could grow more, than one may.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{beginning}`: {reason}")]
pub struct ExpressionTooLarge {
    /// the beginning of the text
    pub beginning: String,
    /// what is too large, and how large it may be
    pub reason: String,
}

/// Bytes of an expression; of a template, all of its expressions together.
const LONGEST: usize = 4096;

/// Operators, brackets and filters of an expression, each of which may nest what the library builds by one.
const MOST_OPERATORS: usize = 256;

/// Digits of a width or a precision in a format: `%999d`.
const WIDTH_DIGITS: usize = 3;

/// Filters that repeat a text as often as a number says, or anything for each element of a list.
const REPEATING: [&str; 8] = ["batch", "chain", "groupby", "indent", "map", "pprint", "slice", "zip"];

/// Bytes of the text that an expression gives: values are made of values.
const LONGEST_TEXT: usize = 16 << 10;

/// Bytes of what `join` and `replace` give.
const LONGEST_JOINED: usize = 1 << 20;

/// Values of a list.
pub(crate) const LONGEST_LIST: usize = 1_000;

/// Numbers of a range.
const LONGEST_RANGE: usize = 10_000;

/// Words that are not operands.
const KEYWORDS: [&str; 7] = ["and", "elif", "else", "if", "in", "is", "not"];

/// Statements that a template may hold: loops could go on for days.
const STATEMENTS: [&str; 4] = ["if", "elif", "else", "endif"];

/// Stands for a quoted text in [`UnquotedCode::text`].
const QUOTED: char = '"';

/// Refuses an expression that is too large.
pub(crate) fn check_expression(expression: &str) -> Result<(), ExpressionTooLarge> {
    let code = UnquotedCode::read_until(expression, None);
    check_code_size(expression, &code.text, code.text.len() + code.quoted)
}

/// Refuses a template whose expressions are too large; the text around them may have any length, and so may a tag that only
/// quotes a text. Gives the code of the others.
pub(crate) fn check_template(template: &str) -> Result<Vec<&str>, ExpressionTooLarge> {
    let (mut all, mut bytes, mut rest, mut tags) = (String::new(), 0, template, Vec::new());
    while let Some(at) = ["{{", "{%", "{#"].iter().filter_map(|open| rest.find(open)).min() {
        let (open, inside) = rest.get(at..).and_then(|tag| tag.split_at_checked(2)).unwrap_or_default();
        if open == "{#" {
            rest = inside.split_once("#}").map_or("", |(_, after)| after);
            continue;
        }
        let code = UnquotedCode::read_until(inside, Some(if open == "{{" { "}}" } else { "%}" }));
        rest = inside.get(code.end..).unwrap_or_default();
        let bare = code.text.trim_matches(['-', '+', ' ', '\t', '\n']);
        let statement = bare.split_whitespace().next().unwrap_or_default();
        if open == "{%" && !STATEMENTS.contains(&statement) {
            return Err(too_large_error(
                template,
                format!("`{statement}` cannot be used here; only `if` can"),
            ));
        }
        if open == "{{" && bare.chars().eq([QUOTED]) {
            continue;
        }
        bytes += code.text.len() + code.quoted;
        all.push_str(&code.text);
        all.push_str(open);
        tags.push(inside.get(..code.end.saturating_sub(2)).unwrap_or_default());
    }
    check_code_size(template, &all, bytes)?;
    Ok(tags)
}

fn check_code_size(whole: &str, code: &str, bytes: usize) -> Result<(), ExpressionTooLarge> {
    if bytes > LONGEST {
        return Err(too_large_error(
            whole,
            format!("an expression of {bytes} bytes; at most {LONGEST} are allowed"),
        ));
    }
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let words = code.split(|character| !is_name(character));
    let words = words.filter(|word| ["and", "or", "not", "in", "is", "if", "elif"].contains(word)).count();
    let operators = words + code.chars().filter(|character| "+-*/%~|.[({<>=!".contains(*character)).count();
    if operators > MOST_OPERATORS {
        let reason = format!("{operators} operators in an expression; at most {MOST_OPERATORS} are allowed");
        return Err(too_large_error(whole, reason));
    }
    Ok(())
}

/// Refuses a list that is too long to be one of a study.
pub(crate) fn check_list_length(expression: &str, length: usize) -> Result<(), ExpressionTooLarge> {
    if length <= LONGEST_LIST {
        return Ok(());
    }
    let reason = format!("it gives a list of {length} values; at most {LONGEST_LIST} are allowed");
    Err(too_large_error(expression, reason))
}

/// Refuses a text that is too long to be a value.
pub(crate) fn check_text_length(expression: &str, text: &str) -> Result<(), ExpressionTooLarge> {
    match text.len() {
        ..=LONGEST_TEXT => Ok(()),
        bytes => {
            let reason = format!("it gives a text of {bytes} bytes; at most {LONGEST_TEXT} are allowed");
            Err(too_large_error(expression, reason))
        }
    }
}

/// That what is multiplied is not a number.
pub(crate) fn multiplication_error(expression: &str) -> ExpressionTooLarge {
    too_large_error(expression, "texts and lists cannot be multiplied".into())
}

/// The operands of every `*`, those in the innermost brackets first: names, numbers, quoted texts and brackets, with
/// the filters, arguments and indices behind them. Everything else that the operator may apply to is a number.
pub(crate) fn find_factors(code: &str) -> Vec<&str> {
    let tokens = split_into_tokens(code);
    // A power is of numbers or fails.
    let is_power = |at: usize| {
        tokens.get(at).is_some_and(|sign| {
            sign.text == "*" && code.get(sign.at + 1..).is_some_and(|rest| rest.starts_with('*'))
        })
    };
    let stars = tokens.iter().enumerate().filter(|(at, token)| {
        token.text == "*" && !is_power(*at) && !at.checked_sub(1).is_some_and(is_power)
    });
    let mut stars: Vec<(usize, usize)> = stars.map(|(at, token)| (token.depth, at)).collect();
    stars.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
    let sides = stars.iter().flat_map(|(_, at)| [operand_before(&tokens, *at), operand_after(&tokens, *at)]);
    let text = |(first, last): (usize, usize)| {
        let (first, last) = (tokens.get(first)?, tokens.get(last)?);
        code.get(first.at..last.at + last.text.len())
    };
    sides.flatten().filter_map(text).collect()
}

/// A word, a number up to its point, a quoted text or an operator.
struct ExpressionToken<'a> {
    text: &'a str,
    at: usize,
    /// how many brackets are open around it
    depth: usize,
    /// the bracket that belongs to this one
    partner: Option<usize>,
}

impl ExpressionToken<'_> {
    fn is_word(&self) -> bool {
        self.text.starts_with(|first: char| first.is_alphanumeric() || first == '_')
    }

    /// Whether an operand may end with it.
    fn can_end_operand(&self) -> bool {
        match self.text {
            ")" | "]" | "}" => true,
            text if text.starts_with(['\'', '"']) => true,
            text => self.is_word() && !KEYWORDS.contains(&text),
        }
    }
}

fn split_into_tokens(code: &str) -> Vec<ExpressionToken<'_>> {
    let (mut tokens, mut open, mut at): (Vec<ExpressionToken<'_>>, Vec<usize>, usize) =
        (Vec::new(), Vec::new(), 0);
    while let Some(first) = code.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = code.get(at..).unwrap_or_default();
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        let length = match first {
            '\'' | '"' => quoted_length(rest, first),
            _ if is_word(first) => rest.find(|other| !is_word(other)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let text = rest.get(..length).unwrap_or_default();
        let partner = if matches!(first, ')' | ']' | '}') { open.pop() } else { None };
        let own = tokens.len();
        if let Some(begin) = partner.and_then(|partner| tokens.get_mut(partner)) {
            begin.partner = Some(own);
        }
        if !first.is_whitespace() {
            tokens.push(ExpressionToken { text, at, depth: open.len(), partner });
        }
        if matches!(first, '(' | '[' | '{') {
            open.push(tokens.len() - 1);
        }
        at += length;
    }
    tokens
}

/// Bytes of the quoted text that begins here.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if !escaped && character == quote {
            return at + 1;
        }
        escaped = !escaped && character == '\\';
    }
    text.len()
}

/// The first and the last token of the operand that ends before this one.
fn operand_before(tokens: &[ExpressionToken<'_>], star: usize) -> Option<(usize, usize)> {
    let last = star.checked_sub(1)?;
    let mut end = last;
    loop {
        let token = tokens.get(end).filter(|token| token.can_end_operand())?;
        let first = if token.is_word() { end } else { token.partner.unwrap_or(end) };
        let Some(previous) = first.checked_sub(1) else { return Some((first, last)) };
        let sign = tokens.get(previous)?;
        end = match sign.text {
            "." | "|" => previous.checked_sub(1)?,
            // Arguments, or an index.
            _ if sign.can_end_operand() && token.partner.is_some() => previous,
            _ => return Some((first, last)),
        };
    }
}

/// The first and the last token of the operand that begins behind this one.
fn operand_after(tokens: &[ExpressionToken<'_>], star: usize) -> Option<(usize, usize)> {
    let first = (star + 1..tokens.len())
        .find(|at| !matches!(tokens.get(*at).map_or("", |token| token.text), "-" | "+"))?;
    let end = |at: usize| tokens.get(at).map(|token| token.partner.unwrap_or(at));
    let mut last = end(first)?;
    loop {
        last = match tokens.get(last + 1).map_or("", |token| token.text) {
            "." | "|" => last + 2,
            "(" | "[" => end(last + 1)?,
            _ => return Some((first, last)),
        };
    }
}

fn too_large_error(whole: &str, reason: String) -> ExpressionTooLarge {
    let beginning: String = whole.chars().take(40).collect();
    let dots = if beginning.len() < whole.len() { "…" } else { "" };
    ExpressionTooLarge { beginning: beginning + dots, reason }
}

/// Code without its quoted texts.
struct UnquotedCode {
    /// with [`QUOTED`] in place of each quoted text
    text: String,
    /// bytes of those
    quoted: usize,
    /// where it ends, behind its end mark
    end: usize,
}

impl UnquotedCode {
    fn read_until(text: &str, mark: Option<&str>) -> Self {
        let mut code = UnquotedCode { text: String::new(), quoted: 0, end: text.len() };
        let (mut quote, mut escaped) = (None, false);
        for (at, character) in text.char_indices() {
            match quote {
                Some(open) => {
                    code.quoted += character.len_utf8();
                    if !escaped && character == open {
                        quote = None;
                    }
                    escaped = !escaped && character == '\\';
                }
                None if mark.is_some_and(|mark| text.get(at..).unwrap_or_default().starts_with(mark)) => {
                    code.end = at + 2;
                    break;
                }
                None if matches!(character, '\'' | '"') => {
                    quote = Some(character);
                    code.text.push(QUOTED);
                }
                None => code.text.push(character),
            }
        }
        code
    }
}

/// Filters and functions whose results cannot be much longer than what they are given.
pub(crate) fn add_bounded_filters(environment: &mut Environment<'_>) {
    REPEATING.iter().for_each(|name| environment.remove_filter(name));
    environment.add_filter("format", bounded_format);
    environment.add_filter("join", bounded_join);
    environment.add_filter("replace", bounded_replace);
    environment.add_function("range", bounded_range);
}

fn too_long_error(what: &str) -> Error {
    let message = format!("what `{what}` gives is too large: at most {LONGEST_JOINED} bytes");
    Error::new(ErrorKind::InvalidOperation, message)
}

/// The library's `join`, of a text that is not too long.
fn bounded_join(list: &Value, between: Option<&str>) -> Result<String, Error> {
    let mut joined = String::new();
    for (at, item) in list.try_iter()?.enumerate() {
        joined.push_str(between.filter(|_| at > 0).unwrap_or_default());
        joined.push_str(&item.to_string());
        if joined.len() > LONGEST_JOINED {
            return Err(too_long_error("join"));
        }
    }
    Ok(joined)
}

/// The library's `replace`, of a text that is not too long.
fn bounded_replace(text: &str, from: &str, to: &str) -> Result<String, Error> {
    let added = text.matches(from).count().saturating_mul(to.len());
    if text.len().saturating_add(added) > LONGEST_JOINED {
        return Err(too_long_error("replace"));
    }
    Ok(text.replace(from, to))
}

/// The library's `range`, of a list that is not too long.
fn bounded_range(first: i64, end: Option<i64>, step: Option<i64>) -> Result<Vec<i64>, Error> {
    let wrong = |message: String| Error::new(ErrorKind::InvalidOperation, message);
    let (first, end, step) = (if end.is_some() { first } else { 0 }, end.unwrap_or(first), step.unwrap_or(1));
    let stride = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
    let numbers: Vec<i64> = match step {
        0 => return Err(wrong("a range cannot have a step of 0".into())),
        1.. => (first..end).step_by(stride).take(LONGEST_RANGE + 1).collect(),
        _ => (end.saturating_add(1)..=first).rev().step_by(stride).take(LONGEST_RANGE + 1).collect(),
    };
    match numbers.len() {
        ..=LONGEST_RANGE => Ok(numbers),
        _ => Err(wrong(format!("a range has at most {LONGEST_RANGE} numbers"))),
    }
}

/// The library's `format`, with widths of three digits at most.
fn bounded_format(text: &str, values: Rest<Value>) -> Result<String, Error> {
    for specification in text.split('%').skip(1) {
        // `%(name)5d`
        let widths = specification.strip_prefix('(').and_then(|named| named.split_once(')'));
        let widths = widths.map_or(specification, |(_, widths)| widths);
        let end = widths.find(|character| !"#0- +.*123456789".contains(character)).unwrap_or(widths.len());
        let widths = widths.get(..end).unwrap_or_default();
        let is_wide = |digits: &str| digits.len() > WIDTH_DIGITS;
        if widths.contains('*') || widths.split(|character: char| !character.is_ascii_digit()).any(is_wide) {
            let message = format!("the width `{widths}` in `format` is too large: at most 999");
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
    }
    format(FormatStyle::Printf, text, &values)
}

#[cfg(test)]
mod tests {
    use crate::expression::{ExpressionError, ExpressionScope};
    use crate::scalar::Scalar;

    /// On the stack of a thread, which is a quarter of the main one's.
    fn evaluate_on_thread(expression: String) -> Result<Scalar, ExpressionError> {
        std::thread::spawn(move || ExpressionScope::default().evaluate(&expression)).join().unwrap()
    }

    #[test]
    fn what_would_fill_the_stack_is_refused() {
        let deep = [
            vec!["1"; 50_000].join("+"),
            vec!["1"; 1_500].join("+"),
            format!("{}1", "-".repeat(50_000)),
            format!("{}1{}", "(".repeat(2_000), ")".repeat(2_000)),
            format!("{}true", "not ".repeat(1_000)),
            vec!["true"; 600].join(" and "),
            format!("1{}", "|int".repeat(900)),
            format!("[1]{}", "[0]".repeat(1_000)),
        ];
        for expression in deep {
            let refused = evaluate_on_thread(expression).unwrap_err();
            assert!(matches!(refused, ExpressionError::TooLarge { .. }) && refused.to_string().len() < 200);
        }
        assert_eq!(
            evaluate_on_thread(vec!["1"; 257].join("+")),
            Ok(Scalar::Int(257)),
            "as deep as it may be"
        );
        assert_eq!(evaluate_on_thread(format!("[{}]|max", vec!["1"; 1_000].join(","))), Ok(Scalar::Int(1)));
    }

    #[test]
    fn what_would_fill_the_memory_is_refused() {
        for expression in [
            "'%1000000000d'|format(1)",
            "'%99999999999d'|format(1)",
            "'%.99999d'|format(1)",
            "'%*d'|format(1000000000, 1)",
            "'%(n)-5000d'|format(1)",
            "'x' * 100000000",
            "100000000 * 'x'",
            "('x') * 100000000",
            "([0] * 100000000)|length",
            "((0,) * 100000000)|length",
            "'x'|indent(99999999999)",
            "[1]|batch(100000000, 0)|list|length",
            "('x'|upper) * 100000000",
            "'x'|upper * 100000000",
            "100000000 * 'x'|upper",
            "(range(9)|list * 100000000)|length",
            "range(9) * 100000000",
            "1 if false else ('x') * 100000000",
            "not ('x') * 100000000",
            "['x'][0] * 100000000",
            "100000000 * -['x'][0]",
            "[[1]]|first * 100000000",
            "('x' if true else 1) * 100000000",
            "2 * ('x' * 100000000)|length",
            "{'a': 'x'}.a * 100000000",
            "{'a': 'x'}['a'] * 100000000",
            "'x' 'y' * 100000000",
            "range(100000)|length",
            "range(9999)|join('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')",
            "range(9999)|join|replace('1', range(999)|join)",
            "range(9999)|join",
        ] {
            let refused = evaluate_on_thread(expression.to_owned());
            assert!(refused.is_err(), "{expression}: {refused:?}");
        }
        for (expression, value) in [
            ("2 * 3 * (4 - 2)", 12),
            ("[2 * 3, 8]|min * 2", 12),
            ("2 * -([2, 8]|max)", -16),
            ("'abc'|length * 2 + 3 ** 2 * 1", 15),
            ("(2 * 3 if 1 else 'x'|length * 2) * 1.5|round|int", 12),
            ("0 if true else (1 / 0) * 2", 0),
            ("range(9, 1, -3)|sum * range(4)|length", 72),
            ("'a*b'|length * 1", 3),
        ] {
            assert_eq!(evaluate_on_thread(expression.into()), Ok(Scalar::Int(value)), "{expression}");
        }
        assert_eq!(
            evaluate_on_thread("'%03d|%-4s|%%'|format(7, 'a')".into()),
            Ok(Scalar::from("007|a   |%"))
        );
        assert_eq!(evaluate_on_thread("range(4)|join(',')".into()), Ok(Scalar::from("0,1,2,3")));
    }

    #[test]
    fn values_of_values_do_not_grow_without_end() {
        let name = |index: usize| format!("v{index:02}");
        let text = |index: usize| match index.checked_sub(1).map(name) {
            None => "'0123456789abcdef'".to_owned(),
            Some(before) => format!("{before} ~ {before} ~ {before} ~ {before}"),
        };
        let values: Vec<(String, Scalar)> =
            (0..20).map(|index| (name(index), text(index).as_str().into())).collect();
        let mut scope = ExpressionScope::default();
        let (_, error) = scope.define(values.iter().map(|(name, value)| (name.as_str(), value))).unwrap_err();
        assert!(matches!(error, ExpressionError::TooLarge { .. }), "{error}");
        // A text that is a value is multiplied nowhere.
        let mut scope = ExpressionScope::default();
        scope.set("name", "x".into());
        scope.set("count", Scalar::Int(4));
        for template in
            ["{{ name * 100000000 }}", "{% if count * name %}a{% endif %}", "{{ 2 }} {{- (name) * 9 -}}"]
        {
            assert!(matches!(scope.render(template), Err(ExpressionError::TooLarge { .. })), "{template}");
        }
        assert_eq!(
            scope.render("{% if count * 2 > 7 %}{{- name ~ count * 2 -}}{% endif %} a * b"),
            Ok("x8 a * b".into())
        );
    }

    #[test]
    fn only_the_code_of_a_template_is_bounded() {
        let scope = ExpressionScope::default();
        let long = "x".repeat(100_000);
        assert_eq!(scope.render(&format!("{long}{{{{ 1 }}}}")), Ok(format!("{long}1")));
        assert_eq!(
            scope.render(&format!("{{{{ '{long}\\'}}}}' }}}}{{# {long} #}}")),
            Ok(format!("{long}'}}}}"))
        );
        assert_eq!(scope.render("{% if 1 > 0 -%} a {%- else %}b{% endif %}"), Ok("a".into()));
        let loops = "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}";
        for template in [loops, &format!("{{{{ '{long}'|upper }}}}"), &"{{ 1+1 }}".repeat(300)] {
            assert!(matches!(scope.render(template), Err(ExpressionError::TooLarge { .. })));
        }
    }
}
