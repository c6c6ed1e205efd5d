//! What words of a shell configuration stand for: variables, arithmetic, and what some commands print everywhere.

use std::sync::OnceLock;

use brush_parser::ParserOptions;
use brush_parser::ast::{ArithmeticExpr, ArithmeticTarget, BinaryOperator, UnaryOperator, Word};
use brush_parser::word::{Parameter, ParameterExpr, ParameterTestType, WordPiece, WordPieceWithSource};
use regex::Regex;

use super::shell_config::ConfigReader;
use super::shell_value::{Arithmetic, MachineNumber, ShellValue, shorten_foreign_text};

impl ConfigReader {
    /// What a word stands for.
    pub(super) fn expand(&mut self, word: &Word) -> ShellValue {
        match brush_parser::word::parse(&word.value, &ParserOptions::default()) {
            Ok(pieces) => self.expand_pieces(&pieces),
            Err(_) => ShellValue::Unknown(format!("`{}` cannot be read", shorten_foreign_text(&word.value))),
        }
    }

    /// What a here-document stands for.
    pub(super) fn expand_document(&mut self, text: &str) -> ShellValue {
        match brush_parser::word::parse_heredoc(text, &ParserOptions::default()) {
            Ok(pieces) => self.expand_pieces(&pieces),
            Err(_) => ShellValue::Unknown("a here-document that cannot be read".into()),
        }
    }

    fn expand_pieces(&mut self, pieces: &[WordPieceWithSource]) -> ShellValue {
        let mut whole = ShellValue::Text(String::new());
        for piece in pieces {
            let value = self.expand_piece(&piece.piece);
            whole = whole.join(value);
        }
        whole
    }

    fn expand_piece(&mut self, piece: &WordPiece) -> ShellValue {
        match piece {
            WordPiece::Text(text) | WordPiece::SingleQuotedText(text) | WordPiece::AnsiCQuotedText(text) => {
                ShellValue::Text(text.clone())
            }
            WordPiece::DoubleQuotedSequence(pieces) | WordPiece::GettextDoubleQuotedSequence(pieces) => {
                self.expand_pieces(pieces)
            }
            WordPiece::EscapeSequence(text) => {
                let text = text.strip_prefix('\\').unwrap_or(text);
                ShellValue::Text(if text == "\n" { String::new() } else { text.to_owned() })
            }
            WordPiece::TildeExpansion(_) => ShellValue::Text("~".into()),
            WordPiece::ParameterExpansion(expression) => self.expand_parameter(expression),
            WordPiece::CommandSubstitution(command) | WordPiece::BackquotedCommandSubstitution(command) => {
                self.substitute(command)
            }
            WordPiece::ArithmeticExpression(expression) => {
                match brush_parser::arithmetic::parse(&without_sigils(&expression.value)) {
                    Ok(expression) => self.compute(&expression),
                    Err(_) => ShellValue::Unknown("arithmetic that cannot be read".into()),
                }
            }
        }
    }

    fn expand_parameter(&mut self, expression: &ParameterExpr) -> ShellValue {
        match expression {
            ParameterExpr::Parameter { parameter: Parameter::Named(name), indirect: false } => {
                self.look_up(name)
            }
            ParameterExpr::Parameter { parameter: Parameter::Special(_), .. } => ShellValue::Text("N".into()),
            ParameterExpr::UseDefaultValues {
                parameter: Parameter::Named(name),
                test_type,
                default_value,
                ..
            }
            | ParameterExpr::AssignDefaultValues {
                parameter: Parameter::Named(name),
                test_type,
                default_value,
                ..
            } => {
                let value = self.look_up(name);
                let is_empty = value.as_text() == Some("");
                let is_replaced = match test_type {
                    ParameterTestType::UnsetOrNull => is_empty,
                    ParameterTestType::Unset => is_empty && !self.is_set(name),
                };
                let Some(text) = default_value.as_ref().filter(|_| is_replaced) else { return value };
                let value = self.expand(&Word { value: text.clone(), loc: None });
                if matches!(expression, ParameterExpr::AssignDefaultValues { .. }) {
                    self.assign_default(name, value.clone());
                }
                value
            }
            _ => ShellValue::Unknown("an expansion that only a shell carries out".into()),
        }
    }

    /// What some commands print everywhere; of others, only running them would tell.
    fn substitute(&mut self, command: &str) -> ShellValue {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words[..] {
            ["uname", "-m"] => ShellValue::Text("x86_64".into()),
            ["nproc"]
            | ["getconf", "_NPROCESSORS_ONLN"]
            | ["grep", "-c", "processor" | "^processor", "/proc/cpuinfo"] => {
                ShellValue::Number(MachineNumber::fact("cpus"))
            }
            ["mktemp", ..] => ShellValue::Text(format!("/tmp/made-{}", self.state.files.len())),
            ["pwd"] => ShellValue::Text(".".into()),
            ["echo", ..] if !command.contains(['|', '`', '>', ';']) => {
                let text = command.trim_start().strip_prefix("echo").unwrap_or_default().trim();
                self.expand(&Word { value: text.to_owned(), loc: None })
            }
            _ => ShellValue::Unknown(format!("only running `{}` would tell", shorten_foreign_text(command))),
        }
    }

    fn compute(&mut self, expression: &ArithmeticExpr) -> ShellValue {
        let number = |value: Option<MachineNumber>| match value {
            Some(number) => match number.as_integer() {
                Some(known) => ShellValue::Text(known.to_string()),
                None => ShellValue::Number(number),
            },
            None => ShellValue::Unknown("arithmetic beyond whole numbers of 64 bits".into()),
        };
        let missing = || ShellValue::Unknown("arithmetic with what is no number".into());
        match expression {
            ArithmeticExpr::Literal(literal) => ShellValue::Text(literal.to_string()),
            ArithmeticExpr::Reference(ArithmeticTarget::Variable(name)) => match self.look_up(name) {
                ShellValue::Text(text) if text.trim().is_empty() => ShellValue::Text("0".into()),
                value => value,
            },
            ArithmeticExpr::UnaryOp(UnaryOperator::UnaryPlus, inner) => self.compute(inner),
            ArithmeticExpr::UnaryOp(UnaryOperator::UnaryMinus, inner) => {
                match self.compute(inner).as_number() {
                    Some(inner) => number(MachineNumber::known(0).compute(Arithmetic::Subtract, &inner)),
                    None => missing(),
                }
            }
            ArithmeticExpr::BinaryOp(operator, left, right) => {
                let (left, right) = (self.compute(left), self.compute(right));
                let operator = match operator {
                    BinaryOperator::Add => Arithmetic::Add,
                    BinaryOperator::Subtract => Arithmetic::Subtract,
                    BinaryOperator::Multiply => Arithmetic::Multiply,
                    BinaryOperator::Divide => Arithmetic::Divide,
                    BinaryOperator::Modulo => Arithmetic::Remainder,
                    BinaryOperator::ShiftLeft => match right.as_integer().filter(|by| (0..63).contains(by)) {
                        Some(by) => {
                            let factor = MachineNumber::known(1 << by);
                            let left = left.as_number();
                            return number(left.and_then(|left| left.compute(Arithmetic::Multiply, &factor)));
                        }
                        None => return missing(),
                    },
                    _ => return ShellValue::Unknown("arithmetic with conditions".into()),
                };
                match (&left, &right) {
                    (ShellValue::Unknown(reason), _) | (_, ShellValue::Unknown(reason)) => {
                        ShellValue::Unknown(reason.clone())
                    }
                    _ => match (left.as_number(), right.as_number()) {
                        (Some(left), Some(right)) => number(left.compute(operator, &right)),
                        _ => missing(),
                    },
                }
            }
            _ => ShellValue::Unknown("arithmetic that assigns or chooses".into()),
        }
    }
}

/// Arithmetic with `$NAME` and `${NAME}` as `NAME`, which is the same there, where the variable holds a number.
fn without_sigils(expression: &str) -> String {
    static SIGIL: OnceLock<Option<Regex>> = OnceLock::new();
    let sigil = SIGIL.get_or_init(|| Regex::new(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))").ok());
    match sigil {
        Some(sigil) => sigil.replace_all(expression, "$1$2").into_owned(),
        None => expression.to_owned(),
    }
}
