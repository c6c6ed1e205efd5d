//! Conditions on the arguments of a USDT probe: `[arg2=="f"]`.
//!
//! An argument as its note describes it (`8@%r12`, `-4@112(%rsp)`, `4@$5`) is translated into what the kernel
//! fetches.
//!
//! Sources: <https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation>,
//! Documentation/trace/uprobetracer.rst.

/// What must be so for a thread that comes by to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentFilter {
    comparisons: Vec<ArgumentComparison>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ArgumentComparison {
    /// from 1
    argument: usize,
    operator: &'static str,
    value: ComparedValue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ComparedValue {
    Text(String),
    Number(i64),
}

const OPERATORS: [&str; 7] = ["==", "!=", "<=", ">=", "<", ">", "~"];

/// The longest text that is compared.
const LONGEST: usize = 200;

impl ArgumentFilter {
    /// From the text in brackets: comparisons with `&&` between them.
    ///
    /// # Errors
    /// As text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let comparisons =
            split_at_conjunctions(text).into_iter().map(parse_comparison).collect::<Result<_, _>>()?;
        Ok(Self { comparisons })
    }

    /// The condition as the kernel reads it.
    pub(crate) fn condition(&self) -> String {
        let text = |one: &ArgumentComparison| match &one.value {
            ComparedValue::Text(text) => format!("arg{} {} \"{text}\"", one.argument, one.operator),
            ComparedValue::Number(number) => format!("arg{} {} {number}", one.argument, one.operator),
        };
        self.comparisons.iter().map(text).collect::<Vec<_>>().join(" && ")
    }

    /// What the kernel has to fetch for it at a site with such arguments.
    pub(crate) fn fetch_arguments(&self, arguments: &str) -> Result<String, String> {
        let all: Vec<&str> = arguments.split_whitespace().collect();
        let mut fetched: Vec<String> = Vec::new();
        for one in &self.comparisons {
            let known = one.argument.checked_sub(1).and_then(|at| all.get(at));
            let argument = known.ok_or_else(|| format!("it has {} arguments ({arguments})", all.len()))?;
            let (size, place) = argument.split_once('@').unwrap_or(("8", argument));
            let place =
                parse_operand(place).ok_or_else(|| format!("its argument `{argument}` cannot be read"))?;
            let text = match one.value {
                ComparedValue::Text(_) => format!("arg{}=+0({place}):string", one.argument),
                ComparedValue::Number(_) => format!("arg{}={place}:{}", one.argument, kernel_type_of(size)),
            };
            if !fetched.contains(&text) {
                fetched.push(text);
            }
        }
        Ok(fetched.join(" "))
    }
}

/// At `&&` outside of quotes.
fn split_at_conjunctions(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut quoted) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        quoted ^= letter == '"';
        if !quoted && text.get(at..).is_some_and(|rest| rest.starts_with("&&")) {
            parts.extend(text.get(from..at));
            from = at + 2;
        }
    }
    parts.extend(text.get(from..));
    parts
}

fn parse_comparison(text: &str) -> Result<ArgumentComparison, String> {
    let wrong =
        || format!("`{}` is no comparison: write argN==\"TEXT\", argN~\"TEXT*\" or argN>NUMBER", text.trim());
    let rest = text.trim().strip_prefix("arg").ok_or_else(wrong)?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(wrong)?;
    let (argument, rest) = rest.split_at(digits);
    let argument = argument.parse().map_err(|_| wrong())?;
    let rest = rest.trim_start();
    let operator = OPERATORS.into_iter().find(|operator| rest.starts_with(operator)).ok_or_else(wrong)?;
    let value = rest.strip_prefix(operator).unwrap_or_default().trim();
    let value = match value.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text)
            if text.len() > LONGEST || text.contains(['"', '\\']) || text.chars().any(char::is_control) =>
        {
            return Err(format!(
                "texts are compared up to {LONGEST} bytes, without quotes and backslashes in them"
            ));
        }
        Some(_) if !["==", "!=", "~"].contains(&operator) => return Err(wrong()),
        Some(text) => ComparedValue::Text(text.to_owned()),
        None if operator == "~" => return Err(wrong()),
        None => ComparedValue::Number(parse_integer(value).ok_or_else(wrong)?),
    };
    Ok(ArgumentComparison { argument, operator, value })
}

fn parse_integer(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The kernel's word for a size of a note; negative ones are signed.
fn kernel_type_of(size: &str) -> &'static str {
    match size {
        "1" => "u8",
        "-1" => "s8",
        "2" => "u16",
        "-2" => "s16",
        "4" => "u32",
        "-4" => "s32",
        "-8" => "s64",
        _ => "u64",
    }
}

/// A register, a constant, or what lies at a register; none for others.
fn parse_operand(text: &str) -> Option<String> {
    if let Some(constant) = text.strip_prefix('$') {
        return parse_integer(constant).map(|number| format!("\\{number}"));
    }
    if let Some(name) = text.strip_prefix('%') {
        return kernel_register_name(name).map(|name| format!("%{name}"));
    }
    let (offset, base) = text.strip_suffix(')')?.split_once("(%")?;
    let offset = if offset.is_empty() { 0 } else { parse_integer(offset)? };
    Some(format!("{offset:+}(%{})", kernel_register_name(base)?))
}

/// As the kernel calls the whole register of one that an x86-64 program names.
fn kernel_register_name(name: &str) -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    if let Some(number) =
        name.strip_prefix('r').filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    {
        let number: u32 = number.trim_end_matches(['d', 'w', 'b']).parse().ok()?;
        return (8..16).contains(&number).then(|| format!("r{number}"));
    }
    let whole = name.strip_prefix(['r', 'e']).unwrap_or(name);
    let known = ["ax", "bx", "cx", "dx", "si", "di", "bp", "sp"];
    if known.contains(&whole) {
        return Some(whole.to_owned());
    }
    // `al`, `sil`: the low byte. `ah` is none of these.
    let low = name.strip_suffix('l')?;
    let low = if low.len() == 1 { format!("{low}x") } else { low.to_owned() };
    known.contains(&low.as_str()).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_becomes_what_the_kernel_fetches_and_compares() {
        // As Debian's python3.11 has `function__entry`, and others.
        let filter = ArgumentFilter::parse("arg2==\"f\" && arg3 >= -5").unwrap();
        assert_eq!(filter.condition(), "arg2 == \"f\" && arg3 >= -5");
        if cfg!(target_arch = "x86_64") {
            assert_eq!(
                filter.fetch_arguments("8@%rbp 8@%r12 -4@%eax").unwrap(),
                "arg2=+0(%r12):string arg3=%ax:s32"
            );
            assert_eq!(
                filter.fetch_arguments("8@%rbp 8@16(%rsp) 2@$7").unwrap(),
                "arg2=+0(+16(%sp)):string arg3=\\7:u16"
            );
            insta::assert_snapshot!(filter.fetch_arguments("8@%rbp 8@x(%rip) 4@%eax").unwrap_err(), @"its argument `8@x(%rip)` cannot be read");
        }
        insta::assert_snapshot!(filter.fetch_arguments("8@%rbp").unwrap_err(), @"it has 1 arguments (8@%rbp)");
        let both = ArgumentFilter::parse("arg1~\"a && b*\"").unwrap();
        assert_eq!(both.condition(), "arg1 ~ \"a && b*\"");
    }

    #[test]
    fn what_is_no_comparison_is_refused() {
        for wrong in [
            "",
            "arg2",
            "arg==1",
            "arg1=1",
            "arg1==",
            "arg1~5",
            "arg1<\"x\"",
            "x==1",
            "arg1==\"a\"b\"",
            "arg1==1 &&",
        ] {
            assert!(ArgumentFilter::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn registers_have_the_kernels_names() {
        let names =
            ["rax", "eax", "al", "sil", "ebp", "rsp", "r12", "r8d", "r15b", "ah", "xmm0", "r16", "rip"];
        let known: Vec<Option<String>> = names.into_iter().map(kernel_register_name).collect();
        let wanted =
            ["ax", "ax", "ax", "si", "bp", "sp", "r12", "r8", "r15"].map(|name| Some(name.to_owned()));
        if cfg!(target_arch = "x86_64") {
            assert_eq!(known, [&wanted[..], &[None, None, None, None]].concat());
        }
    }
}
