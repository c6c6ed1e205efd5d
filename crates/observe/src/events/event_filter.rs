//! A filter of events as the kernel's own are written (`events/GROUP/NAME/filter`, Documentation/trace/events.rst), as steps that
//! a BPF program takes: comparisons, each with the step that follows where it is met and where it is not.

use std::env::consts::ARCH;

use perflab_formats::kernel::system_call::number_system_call;

use crate::events::event_field::{EventField, FieldMeaning, FieldSource};
use crate::io::trace_records::TraceEventFormat;

/// Comparisons of a filter, at most; as in events.bpf.c.
pub(crate) const MOST_STEPS: usize = 12;

/// What follows a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextStep {
    Accept,
    Reject,
    /// Another comparison, behind this one.
    Step(usize),
}

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepComparison {
    Equal,
    Less,
    LessSigned,
    /// Any of these bits is set.
    AnyBit,
}

/// One comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterStep {
    pub(crate) field: EventField,
    pub(crate) comparison: StepComparison,
    pub(crate) value: [u64; 2],
    pub(crate) mask: [u64; 2],
    pub(crate) yes: NextStep,
    pub(crate) no: NextStep,
}

/// Compiles a filter for a tracepoint.
///
/// # Errors
/// What of it is not understood, or no field of the tracepoint.
pub(crate) fn compile_event_filter(
    text: &str,
    event: &str,
    format: &TraceEventFormat,
) -> Result<Vec<FilterStep>, String> {
    let wrong = |what: String| format!("filter `{text}`: {what}");
    let tokens = split_tokens(text).map_err(wrong)?;
    let mut parser = FilterParser { tokens: &tokens, at: 0, event, format, depth: 0 };
    let expression = parser.parse_any().map_err(wrong)?;
    if let Some(rest) = tokens.get(parser.at) {
        return Err(wrong(format!("`{rest}` comes where it should end")));
    }
    let mut steps = Vec::new();
    emit_steps(&expression, Target::Accept, Target::Reject, &mut steps, &mut Vec::new());
    if steps.len() > MOST_STEPS {
        return Err(wrong(format!("it has {} comparisons; {MOST_STEPS} are the most", steps.len())));
    }
    Ok(steps)
}

/// A filter of `raw_syscalls` as the kernel itself takes it: it knows calls by their numbers alone.
pub(crate) fn number_system_calls(filter: &str) -> String {
    let Ok(tokens) = split_tokens(filter) else { return filter.to_owned() };
    let spell = |token: String| number_system_call(ARCH, &token).map_or(token, |number| number.to_string());
    tokens.into_iter().map(spell).collect::<Vec<_>>().join(" ")
}

const OPERATORS: [&str; 12] = ["&&", "||", "==", "!=", "<=", ">=", "<", ">", "&", "~", "!", "("];

fn split_tokens(text: &str) -> Result<Vec<String>, String> {
    let (mut tokens, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = if first == '"' || first == '\'' {
            let inner = rest.get(1..).unwrap_or_default();
            let end = inner.find(first).ok_or_else(|| format!("`{rest}` has no second {first}"))?;
            end + 2
        } else if let Some(operator) = OPERATORS.iter().chain(&[")"]).find(|one| rest.starts_with(**one)) {
            operator.len()
        } else {
            let is_word = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
            rest.find(|letter| !is_word(letter)).unwrap_or(rest.len())
        };
        if length == 0 {
            return Err(format!("`{first}` is not understood"));
        }
        let (token, after) = rest.split_at(length);
        tokens.push(token.to_owned());
        rest = after.trim_start();
    }
    if tokens.is_empty() { Err("it says nothing".into()) } else { Ok(tokens) }
}

/// What a filter says.
enum FilterExpression {
    Comparison { step: FilterStep, is_negated: bool },
    Never,
    Always,
    Not(Box<FilterExpression>),
    Both(Box<FilterExpression>, Box<FilterExpression>),
    Either(Box<FilterExpression>, Box<FilterExpression>),
}

struct FilterParser<'a> {
    tokens: &'a [String],
    at: usize,
    event: &'a str,
    format: &'a TraceEventFormat,
    depth: usize,
}

impl FilterParser<'_> {
    fn take(&mut self) -> Option<&str> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    fn take_if(&mut self, wanted: &str) -> bool {
        let is_there = self.tokens.get(self.at).is_some_and(|token| token == wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn parse_any(&mut self) -> Result<FilterExpression, String> {
        let mut left = self.parse_all()?;
        while self.take_if("||") {
            left = FilterExpression::Either(Box::new(left), Box::new(self.parse_all()?));
        }
        Ok(left)
    }

    fn parse_all(&mut self) -> Result<FilterExpression, String> {
        let mut left = self.parse_one()?;
        while self.take_if("&&") {
            left = FilterExpression::Both(Box::new(left), Box::new(self.parse_one()?));
        }
        Ok(left)
    }

    fn parse_one(&mut self) -> Result<FilterExpression, String> {
        self.depth += 1;
        if self.depth > 32 {
            return Err("it is nested too deeply".into());
        }
        let found = if self.take_if("!") {
            FilterExpression::Not(Box::new(self.parse_one()?))
        } else if self.take_if("(") {
            let inner = self.parse_any()?;
            if !self.take_if(")") {
                return Err("a `)` is missing".into());
            }
            inner
        } else {
            self.parse_comparison()?
        };
        self.depth -= 1;
        Ok(found)
    }

    fn parse_comparison(&mut self) -> Result<FilterExpression, String> {
        let name = self.take().ok_or("a comparison is missing at its end")?.to_owned();
        let field = EventField::find(&name, self.event, self.format)?;
        let operator = self.take().ok_or_else(|| format!("`{name}` is compared with nothing"))?.to_owned();
        let value = self.take().ok_or_else(|| format!("`{name} {operator}` lacks a value"))?.to_owned();
        if field.is_text() {
            compare_text(field, &name, &operator, &value)
        } else {
            compare_number(field, &name, &operator, &value)
        }
    }
}

fn compare_text(
    field: EventField,
    name: &str,
    operator: &str,
    value: &str,
) -> Result<FilterExpression, String> {
    let text = value.strip_prefix(['"', '\'']).map_or(value, |rest| rest.trim_end_matches(['"', '\'']));
    let (text, ends) = match operator {
        "==" | "!=" => (text, true),
        "~" => match text.strip_suffix('*') {
            Some(head) => (head, false),
            None => (text, true),
        },
        _ => return Err(format!("`{name}` is a text: it is compared by ==, != or ~")),
    };
    if text.contains(['*', '?', '[']) && operator == "~" {
        return Err(format!("`{value}`: of patterns, those with one `*` at the end are understood"));
    }
    // Of a text elsewhere, the field itself says only where.
    let room = if field.source == FieldSource::Text { usize::from(field.size).min(16) } else { 16 };
    let compared = text.len() + usize::from(ends && text.len() < room);
    if text.len() > room {
        return Err(format!("`{text}` is longer than what is looked at of `{name}`: {room} bytes"));
    }
    let (mut bytes, mut mask) = ([0; 16], [0; 16]);
    bytes.iter_mut().zip(text.bytes()).for_each(|(byte, letter)| *byte = letter);
    mask.iter_mut().take(compared).for_each(|byte| *byte = 0xff);
    let step = FilterStep {
        field,
        comparison: StepComparison::Equal,
        value: words_of_bytes(bytes),
        mask: words_of_bytes(mask),
        yes: NextStep::Accept,
        no: NextStep::Reject,
    };
    Ok(FilterExpression::Comparison { step, is_negated: operator == "!=" })
}

fn words_of_bytes(bytes: [u8; 16]) -> [u64; 2] {
    let number = u128::from_ne_bytes(bytes);
    let (low, high) = (number as u64, (number >> 64) as u64);
    if cfg!(target_endian = "little") { [low, high] } else { [high, low] }
}

fn compare_number(
    field: EventField,
    name: &str,
    operator: &str,
    value: &str,
) -> Result<FilterExpression, String> {
    let is_signed = field.source == FieldSource::Signed;
    let call = || number_system_call(ARCH, value).filter(|_| field.meaning == FieldMeaning::SystemCall);
    let number = parse_number(value).or_else(|| call().map(i128::from));
    let number = number.ok_or_else(|| format!("`{value}` is no number, as `{name}` is"))?;
    let number = match is_signed {
        true => i64::try_from(number).map(|number| number as u64),
        false => u64::try_from(number),
    };
    let number = number.map_err(|_| format!("`{name}` is never {value}"))?;
    let most = if is_signed { i64::MAX as u64 } else { u64::MAX };
    let less = if is_signed { StepComparison::LessSigned } else { StepComparison::Less };
    let comparison = |comparison, value, mask, is_negated| {
        let (yes, no) = (NextStep::Accept, NextStep::Reject);
        let step = FilterStep { field, comparison, value: [value, 0], mask: [mask, 0], yes, no };
        FilterExpression::Comparison { step, is_negated }
    };
    let next = number.wrapping_add(1);
    Ok(match operator {
        "==" => comparison(StepComparison::Equal, number, u64::MAX, false),
        "!=" => comparison(StepComparison::Equal, number, u64::MAX, true),
        "<" => comparison(less, number, u64::MAX, false),
        ">=" => comparison(less, number, u64::MAX, true),
        "<=" if number == most => FilterExpression::Always,
        "<=" => comparison(less, next, u64::MAX, false),
        ">" if number == most => FilterExpression::Never,
        ">" => comparison(less, next, u64::MAX, true),
        "&" => comparison(StepComparison::AnyBit, 0, number, false),
        _ => {
            return Err(format!(
                "`{name}` is a number: it is compared by ==, !=, <, <=, >, >= or &, not by `{operator}`"
            ));
        }
    })
}

fn parse_number(text: &str) -> Option<i128> {
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i128::from(u64::from_str_radix(hex, 16).ok()?),
        None => i128::from(digits.parse::<u64>().ok()?),
    };
    Some(if is_negative { -number } else { number })
}

/// Where a comparison leads before it is known where everything stands.
#[derive(Clone, Copy)]
enum Target {
    Accept,
    Reject,
    Label(usize),
}

/// Appends the steps of an expression. Whatever is behind it has a label until its place is known.
fn emit_steps(
    expression: &FilterExpression,
    yes: Target,
    no: Target,
    steps: &mut Vec<FilterStep>,
    labels: &mut Vec<Vec<(usize, bool)>>,
) {
    match expression {
        FilterExpression::Not(inner) => emit_steps(inner, no, yes, steps, labels),
        FilterExpression::Both(left, right) => {
            labels.push(Vec::new());
            let label = labels.len() - 1;
            emit_steps(left, Target::Label(label), no, steps, labels);
            place_label(label, steps, labels);
            emit_steps(right, yes, no, steps, labels);
        }
        FilterExpression::Either(left, right) => {
            labels.push(Vec::new());
            let label = labels.len() - 1;
            emit_steps(left, yes, Target::Label(label), steps, labels);
            place_label(label, steps, labels);
            emit_steps(right, yes, no, steps, labels);
        }
        FilterExpression::Comparison { step, is_negated } => {
            let place = steps.len();
            let targets = if *is_negated { (no, yes) } else { (yes, no) };
            let mut next = |target, is_yes| match target {
                Target::Accept => NextStep::Accept,
                Target::Reject => NextStep::Reject,
                Target::Label(label) => {
                    labels.iter_mut().skip(label).take(1).for_each(|uses| uses.push((place, is_yes)));
                    NextStep::Reject
                }
            };
            let (yes, no) = (next(targets.0, true), next(targets.1, false));
            steps.push(FilterStep { yes, no, ..*step });
        }
        // A comparison that is always met: no bit is in an empty mask.
        FilterExpression::Always | FilterExpression::Never => {
            let is_negated = matches!(expression, FilterExpression::Always);
            let step = FilterStep {
                field: EventField::TASK,
                comparison: StepComparison::AnyBit,
                value: [0; 2],
                mask: [0; 2],
                yes: NextStep::Reject,
                no: NextStep::Reject,
            };
            emit_steps(&FilterExpression::Comparison { step, is_negated }, yes, no, steps, labels);
        }
    }
}

fn place_label(label: usize, steps: &mut [FilterStep], labels: &[Vec<(usize, bool)>]) {
    let here = NextStep::Step(steps.len());
    for (place, is_yes) in labels.get(label).into_iter().flatten() {
        for step in steps.iter_mut().skip(*place).take(1) {
            if *is_yes {
                step.yes = here;
            } else {
                step.no = here;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "ID: 1\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:unsigned int bytes;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned long args[6];\toffset:32;\tsize:48;\tsigned:0;\n";

    fn compile(text: &str) -> Result<Vec<FilterStep>, String> {
        compile_event_filter(text, "a:b", &TraceEventFormat::parse("x", FORMAT).unwrap())
    }

    /// Takes the steps as the program does.
    fn accepts(text: &str, comm: &str, pid: i32, bytes: u32) -> bool {
        let steps = compile(text).unwrap();
        let mut next = NextStep::Step(0);
        for (place, step) in steps.iter().enumerate() {
            if next != NextStep::Step(place) {
                continue;
            }
            let mut name = [0; 16];
            name[..comm.len()].copy_from_slice(comm.as_bytes());
            let found = match step.field.offset {
                8 => words_of_bytes(name),
                24 => [i64::from(pid) as u64, 0],
                _ => [u64::from(bytes), 0],
            };
            let found = [found[0] & step.mask[0], found[1] & step.mask[1]];
            let is_met = match step.comparison {
                StepComparison::Equal => found == step.value,
                StepComparison::Less => found[0] < step.value[0],
                StepComparison::LessSigned => (found[0] as i64) < step.value[0] as i64,
                StepComparison::AnyBit => found[0] != 0,
            };
            next = if is_met { step.yes } else { step.no };
            assert!(!matches!(next, NextStep::Step(at) if at <= place), "{text}: it goes back");
        }
        next == NextStep::Accept
    }

    #[test]
    fn filters_mean_what_they_say() {
        for (text, wanted) in [
            ("bytes == 4096", true),
            ("bytes != 4096", false),
            ("bytes > 4095 && bytes < 4097", true),
            ("bytes >= 4097 || bytes <= 4096", true),
            ("bytes > 0xffffffffffffffff", false),
            ("bytes <= 18446744073709551615", true),
            ("pid < 0 && pid >= -7", true),
            ("pid == -7", true),
            ("bytes & 0x1000", true),
            ("!(bytes & 0xfff)", true),
            ("comm == \"dd\"", true),
            ("comm == \"d\"", false),
            ("comm ~ \"d*\"", true),
            ("comm != dd", false),
            ("!(comm == \"dd\" && (pid == 1 || bytes == 4096))", false),
            ("pid == 1 || pid == 2 || comm == dd && bytes == 4096", true),
            ("(pid == 1 || pid == 2) && comm == dd", false),
        ] {
            assert_eq!(accepts(text, "dd", -7, 4096), wanted, "{text}");
        }
    }

    #[test]
    fn the_kernel_gets_numbers_for_names_of_system_calls() {
        let number =
            number_system_call(ARCH, "fsync").map_or("fsync".to_owned(), |number| number.to_string());
        assert_eq!(number_system_calls("id==fsync || id == -1"), format!("id == {number} || id == -1"));
    }

    #[test]
    fn what_is_no_filter_says_why() {
        let wrong = [
            "",
            "bytes",
            "bytes ==",
            "byts == 1",
            "args == 1",
            "bytes == -1",
            "bytes ~ 1",
            "comm > \"x\"",
            "comm ~ \"*x*\"",
            "comm == \"12345678901234567\"",
            "(bytes == 1",
            "bytes == 1 pid == 2",
            "bytes == \"x",
            "bytes = 1",
        ];
        let said: Vec<String> = wrong.into_iter().map(|text| compile(text).unwrap_err()).collect();
        insta::assert_snapshot!(said.join("\n"));
        let long = vec!["pid == 1"; 13].join(" || ");
        assert!(compile(&long).is_err() && compile(&"(".repeat(50)).is_err());
    }
}
