//! How large an expression may be: the library parses any length by recursion and repeats any text, so that a line of a study
//! could end the process by its stack or take all memory.

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::Rest;
use minijinja::{Environment, Error, ErrorKind, Value};

use super::ExpressionError;

/// Bytes of an expression; of a template, all of its expressions together.
const LONGEST: usize = 4096;

/// Operators, brackets and filters of an expression, each of which may nest what the library builds by one.
const MOST_OPERATORS: usize = 256;

/// Digits of a width or a precision in a format: `%999d`.
const WIDTH_DIGITS: usize = 3;

/// Filters that repeat a text as often as a number says.
const REPEATING: [&str; 3] = ["batch", "indent", "slice"];

/// Statements that a template may hold: loops could go on for days.
const STATEMENTS: [&str; 4] = ["if", "elif", "else", "endif"];

/// Stands for a quoted text in [`Code::text`].
const QUOTED: char = '"';

/// Refuses an expression that is too large.
pub(super) fn check_expression(expression: &str) -> Result<(), ExpressionError> {
    let code = Code::until(expression, None);
    check(expression, &code.text, code.text.len() + code.quoted)
}

/// Refuses a template whose expressions are too large; the text around them may have any length, and so may a tag that only
/// quotes a text.
pub(super) fn check_template(template: &str) -> Result<(), ExpressionError> {
    let (mut all, mut bytes, mut rest) = (String::new(), 0, template);
    while let Some(at) = ["{{", "{%", "{#"].iter().filter_map(|open| rest.find(open)).min() {
        let (open, inside) = rest.get(at..).and_then(|tag| tag.split_at_checked(2)).unwrap_or_default();
        if open == "{#" {
            rest = inside.split_once("#}").map_or("", |(_, after)| after);
            continue;
        }
        let code = Code::until(inside, Some(if open == "{{" { "}}" } else { "%}" }));
        rest = inside.get(code.end..).unwrap_or_default();
        let bare = code.text.trim_matches(['-', '+', ' ', '\t', '\n']);
        let statement = bare.split_whitespace().next().unwrap_or_default();
        if open == "{%" && !STATEMENTS.contains(&statement) {
            return Err(too_large(template, format!("`{statement}` cannot be used here; only `if` can")));
        }
        if open == "{{" && bare.chars().eq([QUOTED]) {
            continue;
        }
        bytes += code.text.len() + code.quoted;
        all.push_str(&code.text);
        all.push_str(open);
    }
    check(template, &all, bytes)
}

fn check(whole: &str, code: &str, bytes: usize) -> Result<(), ExpressionError> {
    if bytes > LONGEST {
        return Err(too_large(
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
        return Err(too_large(whole, reason));
    }
    let dense: String = code.split_whitespace().collect();
    let repeats = ["\"*", "*\"", "\")*", "*(\"", "]*", "*[", ",)*", "])*", "*(["];
    if repeats.iter().any(|repeat| dense.contains(repeat)) {
        return Err(too_large(whole, "texts and lists cannot be multiplied".into()));
    }
    Ok(())
}

fn too_large(whole: &str, reason: String) -> ExpressionError {
    let beginning: String = whole.chars().take(40).collect();
    let dots = if beginning.len() < whole.len() { "…" } else { "" };
    ExpressionError::TooLarge { beginning: beginning + dots, reason }
}

/// A piece of code without its quoted texts.
struct Code {
    /// with [`QUOTED`] in place of each quoted text
    text: String,
    /// bytes of those
    quoted: usize,
    /// where it ends, behind its end mark
    end: usize,
}

impl Code {
    fn until(text: &str, mark: Option<&str>) -> Self {
        let mut code = Code { text: String::new(), quoted: 0, end: text.len() };
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

/// Filters whose results cannot be much longer than what they are given.
pub(super) fn bound_filters(environment: &mut Environment<'_>) {
    REPEATING.iter().for_each(|name| environment.remove_filter(name));
    environment.add_filter("format", bounded_format);
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
    use super::super::Scope;
    use super::*;
    use crate::Value;

    /// On the stack of a thread, which is a quarter of the main one's.
    fn evaluate(expression: String) -> Result<Value, ExpressionError> {
        std::thread::spawn(move || Scope::default().evaluate(&expression)).join().unwrap()
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
            let refused = evaluate(expression).unwrap_err();
            assert!(matches!(refused, ExpressionError::TooLarge { .. }) && refused.to_string().len() < 200);
        }
        assert_eq!(evaluate(vec!["1"; 257].join("+")), Ok(Value::Int(257)), "as deep as it may be");
        assert_eq!(evaluate(format!("[{}]|max", vec!["1"; 1_000].join(","))), Ok(Value::Int(1)));
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
        ] {
            let refused = evaluate(expression.to_owned());
            assert!(refused.is_err(), "{expression}: {refused:?}");
        }
        assert_eq!(evaluate("'%03d|%-4s|%%'|format(7, 'a')".into()), Ok(Value::from("007|a   |%")));
        assert_eq!(evaluate("range(4)|join(',')".into()), Ok(Value::from("0,1,2,3")));
    }

    #[test]
    fn only_the_code_of_a_template_is_bounded() {
        let scope = Scope::default();
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
