//! What a variable of a shell configuration holds, where some of it is known only on the machine that runs the study.
//!
//! A configuration computes with what it reads of the machine: `$((NUM_LOGICAL_CPUS * 2))`. Nothing is read here. Such a number
//! stays an expression of the study's language, `2 * cpus`, so that the study fits every machine.

use std::fmt;

/// What a variable holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShellValue {
    /// Text, numbers included; of several lines where a here-document was written to a file.
    Text(String),
    /// A whole number that only the machine knows.
    Number(MachineNumber),
    /// Nothing that can be told without running the configuration, with the reason.
    Unknown(String),
}

/// Bytes of a value: those of a job file, many times over.
const LONGEST_VALUE: usize = 1 << 16;

/// A whole number in the study's expression language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MachineNumber {
    text: String,
    binding: Binding,
}

/// How tightly an expression holds together, the loosest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Choice,
    Sum,
    Product,
    Atom,
}

/// An operator between whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// An order between whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberOrder {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Whether a branch is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShellCondition {
    /// It is, or is not, wherever the configuration is run.
    Known(bool),
    /// The machine decides.
    OfMachine(MachineNumber, NumberOrder, MachineNumber),
    /// It cannot be told, with the reason.
    Unknown(String),
}

impl ShellValue {
    /// The whole number that this is.
    pub(super) fn as_number(&self) -> Option<MachineNumber> {
        match self {
            ShellValue::Text(text) => text.trim().parse::<i64>().ok().map(MachineNumber::known),
            ShellValue::Number(number) => Some(number.clone()),
            ShellValue::Unknown(_) => None,
        }
    }

    /// The number where no machine is needed to know it.
    pub(super) fn as_integer(&self) -> Option<i64> {
        match self {
            ShellValue::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// The text where no machine is needed to know it.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            ShellValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// This with that behind it.
    pub(super) fn join(self, next: ShellValue) -> ShellValue {
        match (self, next) {
            (ShellValue::Text(one), other) if one.is_empty() => other,
            (one, ShellValue::Text(other)) if other.is_empty() => one,
            (ShellValue::Unknown(reason), _) | (_, ShellValue::Unknown(reason)) => {
                ShellValue::Unknown(reason)
            }
            (one, other) => match one.into_template() + &other.into_template() {
                text if text.len() > LONGEST_VALUE => {
                    ShellValue::Unknown(format!("it is longer than {} KiB", LONGEST_VALUE >> 10))
                }
                text => ShellValue::Text(text),
            },
        }
    }

    /// Text in which a number of the machine's stands in the braces of a template.
    pub(super) fn into_template(self) -> String {
        match self {
            ShellValue::Text(text) => text,
            ShellValue::Number(number) => match number.as_integer() {
                Some(known) => known.to_string(),
                None => format!("{{{{ {number} }}}}"),
            },
            ShellValue::Unknown(_) => String::new(),
        }
    }
}

impl MachineNumber {
    /// A number that no machine is needed for.
    pub(super) fn known(number: i64) -> Self {
        MachineNumber {
            text: number.to_string(),
            binding: if number < 0 { Binding::Sum } else { Binding::Atom },
        }
    }

    /// A fact by its name in expressions: `cpus`.
    pub(super) fn fact(name: &str) -> Self {
        MachineNumber { text: name.into(), binding: Binding::Atom }
    }

    /// `memory // page_size`: an expression that divides.
    pub(super) fn quotient(text: &str) -> Self {
        MachineNumber { text: text.into(), binding: Binding::Product }
    }

    /// The number, where no machine is needed for it.
    pub(super) fn as_integer(&self) -> Option<i64> {
        self.text.parse().ok()
    }

    fn within(&self, binding: Binding) -> String {
        if self.binding < binding { format!("({})", self.text) } else { self.text.clone() }
    }

    /// Both joined by an operator; `None` for an overflow, or a division by zero.
    pub(super) fn compute(&self, operator: Arithmetic, other: &Self) -> Option<Self> {
        if let (Some(a), Some(b)) = (self.as_integer(), other.as_integer()) {
            let result = match operator {
                Arithmetic::Add => a.checked_add(b),
                Arithmetic::Subtract => a.checked_sub(b),
                Arithmetic::Multiply => a.checked_mul(b),
                Arithmetic::Divide => a.checked_div(b),
                Arithmetic::Remainder => a.checked_rem(b),
            };
            return result.map(MachineNumber::known);
        }
        let (sign, binding) = match operator {
            Arithmetic::Add => ("+", Binding::Sum),
            Arithmetic::Subtract => ("-", Binding::Sum),
            Arithmetic::Multiply => ("*", Binding::Product),
            Arithmetic::Divide => ("//", Binding::Product),
            Arithmetic::Remainder => ("%", Binding::Product),
        };
        if other.as_integer() == Some(0) && matches!(operator, Arithmetic::Divide | Arithmetic::Remainder) {
            return None;
        }
        let tighter = if binding == Binding::Sum { Binding::Product } else { Binding::Atom };
        // A factor stands before what it multiplies: `2 * cpus`.
        let (left, right) = match (operator, self.as_integer(), other.as_integer()) {
            (Arithmetic::Multiply, None, Some(_)) if self.binding == Binding::Atom => (other, self),
            _ => (self, other),
        };
        let text = format!("{} {sign} {}", left.within(binding), right.within(tighter));
        (text.len() <= LONGEST_EXPRESSION).then_some(MachineNumber { text, binding })
    }

    /// This where the condition holds, else the other; the smaller or larger of both where that is what it says.
    pub(super) fn choose(
        (left, order, right): (&MachineNumber, NumberOrder, &MachineNumber),
        then: &MachineNumber,
        otherwise: &MachineNumber,
    ) -> Option<Self> {
        if then == otherwise {
            return Some(then.clone());
        }
        let is_bound = left == otherwise && right == then;
        let text = match order {
            NumberOrder::Greater | NumberOrder::GreaterOrEqual if is_bound => {
                format!("[{otherwise}, {then}]|min")
            }
            NumberOrder::Less | NumberOrder::LessOrEqual if is_bound => format!("[{otherwise}, {then}]|max"),
            _ => format!(
                "{} if {left} {order} {right} else {}",
                then.within(Binding::Sum),
                otherwise.within(Binding::Sum)
            ),
        };
        let binding = if is_bound { Binding::Atom } else { Binding::Choice };
        (text.len() <= LONGEST_EXPRESSION).then_some(MachineNumber { text, binding })
    }
}

/// Bytes: those of the study's language, with room for what is put around one.
const LONGEST_EXPRESSION: usize = 2048;

impl fmt::Display for MachineNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl NumberOrder {
    /// Whether two known numbers stand in this order.
    pub(super) fn holds(self, left: i64, right: i64) -> bool {
        match self {
            NumberOrder::Equal => left == right,
            NumberOrder::NotEqual => left != right,
            NumberOrder::Less => left < right,
            NumberOrder::LessOrEqual => left <= right,
            NumberOrder::Greater => left > right,
            NumberOrder::GreaterOrEqual => left >= right,
        }
    }

    /// The order by which nothing is true that is by this one.
    fn opposite(self) -> Self {
        match self {
            NumberOrder::Equal => NumberOrder::NotEqual,
            NumberOrder::NotEqual => NumberOrder::Equal,
            NumberOrder::Less => NumberOrder::GreaterOrEqual,
            NumberOrder::LessOrEqual => NumberOrder::Greater,
            NumberOrder::Greater => NumberOrder::LessOrEqual,
            NumberOrder::GreaterOrEqual => NumberOrder::Less,
        }
    }
}

impl fmt::Display for NumberOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NumberOrder::Equal => "==",
            NumberOrder::NotEqual => "!=",
            NumberOrder::Less => "<",
            NumberOrder::LessOrEqual => "<=",
            NumberOrder::Greater => ">",
            NumberOrder::GreaterOrEqual => ">=",
        })
    }
}

impl ShellCondition {
    /// Two values in an order of numbers.
    pub(super) fn compare(left: &ShellValue, order: NumberOrder, right: &ShellValue) -> Self {
        let number = |value: &ShellValue| match value {
            ShellValue::Unknown(reason) => Err(reason.clone()),
            ShellValue::Text(text) if text.trim().is_empty() => Ok(MachineNumber::known(0)),
            value => value.as_number().ok_or_else(|| "it compares what is no number".to_owned()),
        };
        match (number(left), number(right)) {
            (Err(reason), _) | (_, Err(reason)) => ShellCondition::Unknown(reason),
            (Ok(left), Ok(right)) => match (left.as_integer(), right.as_integer()) {
                (Some(left), Some(right)) => ShellCondition::Known(order.holds(left, right)),
                _ => ShellCondition::OfMachine(left, order, right),
            },
        }
    }

    /// Two values as text.
    pub(super) fn compare_texts(left: &ShellValue, right: &ShellValue) -> Self {
        match (left, right) {
            (ShellValue::Unknown(reason), _) | (_, ShellValue::Unknown(reason)) => {
                ShellCondition::Unknown(reason.clone())
            }
            (ShellValue::Text(left), ShellValue::Text(right)) => ShellCondition::Known(left == right),
            (ShellValue::Number(_), ShellValue::Text(text))
            | (ShellValue::Text(text), ShellValue::Number(_))
                if text.is_empty() =>
            {
                ShellCondition::Known(false)
            }
            _ => ShellCondition::compare(left, NumberOrder::Equal, right),
        }
    }

    /// What holds where this does not.
    pub(super) fn negate(self) -> Self {
        match self {
            ShellCondition::Known(known) => ShellCondition::Known(!known),
            ShellCondition::OfMachine(left, order, right) => {
                ShellCondition::OfMachine(left, order.opposite(), right)
            }
            unknown => unknown,
        }
    }

    /// Both; where both depend on the machine, it cannot be told.
    pub(super) fn and(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            ShellCondition::Known(false) => self,
            ShellCondition::Known(true) => other(),
            one => match other() {
                ShellCondition::Known(true) => one,
                ShellCondition::Known(false) => ShellCondition::Known(false),
                _ => ShellCondition::Unknown("it joins several conditions on the machine".into()),
            },
        }
    }

    /// At least one.
    pub(super) fn or(self, other: impl FnOnce() -> Self) -> Self {
        self.negate().and(|| other().negate()).negate()
    }
}

/// `*`, `?` and `[a-z]`, as patterns of a shell have them; others are themselves.
pub(super) fn matches_glob(pattern: &str, text: &str) -> bool {
    let mut found = String::from("^(?s:");
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        match character {
            '*' => found.push_str(".*"),
            '?' => found.push('.'),
            '[' if rest.as_str().contains(']') => {
                let set: String = rest.by_ref().take_while(|c| *c != ']').collect();
                let (not, set) = match set.strip_prefix(['!', '^']) {
                    Some(set) => ("^", set.to_owned()),
                    None => ("", set),
                };
                let set: String = set
                    .chars()
                    .map(|c| if c == '-' { "-".into() } else { regex::escape(&c.to_string()) })
                    .collect();
                found.push_str(&format!("[{not}{set}]"));
            }
            other => found.push_str(&regex::escape(&other.to_string())),
        }
    }
    found.push_str(")$");
    regex::Regex::new(&found).is_ok_and(|pattern| pattern.is_match(text))
}

/// Somebody else's text, as far as a message quotes it.
pub(super) fn shorten_foreign_text(text: &str) -> String {
    let short: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(60).collect();
    if short.chars().count() < text.chars().count() { format!("{short}...") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus() -> MachineNumber {
        MachineNumber::fact("cpus")
    }

    #[test]
    fn numbers_of_the_machine_stay_expressions() {
        let twice = cpus().compute(Arithmetic::Multiply, &MachineNumber::known(2)).unwrap();
        assert_eq!(twice.to_string(), "2 * cpus");
        let less = twice.compute(Arithmetic::Subtract, &MachineNumber::known(1)).unwrap();
        let quarter = less.compute(Arithmetic::Divide, &MachineNumber::known(4)).unwrap();
        assert_eq!(quarter.to_string(), "(2 * cpus - 1) // 4");
        let left = less.compute(Arithmetic::Subtract, &less).unwrap();
        assert_eq!(left.to_string(), "2 * cpus - 1 - (2 * cpus - 1)");
        let known = MachineNumber::known(7).compute(Arithmetic::Divide, &MachineNumber::known(2)).unwrap();
        assert_eq!(known.as_integer(), Some(3));
        assert_eq!(cpus().compute(Arithmetic::Divide, &MachineNumber::known(0)), None);
        let most = MachineNumber::known(i64::MAX);
        assert_eq!(most.compute(Arithmetic::Add, &MachineNumber::known(1)), None);
    }

    #[test]
    fn a_bound_is_a_minimum_or_a_maximum() {
        let (twice, most) = (MachineNumber::quotient("2 * cpus"), MachineNumber::known(64));
        let least = MachineNumber::choose((&twice, NumberOrder::Greater, &most), &most, &twice).unwrap();
        assert_eq!(least.to_string(), "[2 * cpus, 64]|min");
        let one = MachineNumber::known(1);
        let other = MachineNumber::choose((&cpus(), NumberOrder::Less, &most), &one, &twice).unwrap();
        assert_eq!(other.to_string(), "1 if cpus < 64 else 2 * cpus");
        assert_eq!(
            other.compute(Arithmetic::Add, &one).unwrap().to_string(),
            "(1 if cpus < 64 else 2 * cpus) + 1"
        );
    }

    #[test]
    fn text_around_a_number_is_a_template() {
        let size = ShellValue::Text("size=".into()).join(ShellValue::Number(cpus()));
        assert_eq!(size.join(ShellValue::Text("m".into())), ShellValue::Text("size={{ cpus }}m".into()));
    }
}
