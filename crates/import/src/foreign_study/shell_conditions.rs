//! Conditions of a shell configuration: `[ ]`, `[[ ]]`, and what they are joined by.

use brush_parser::ast::{
    AndOr, BinaryPredicate, Command, CommandPrefixOrSuffixItem, CompoundList, ExtendedTestExpr, Pipeline,
    UnaryPredicate, Word,
};

use super::shell_config::ConfigReader;
use super::shell_value::{NumberOrder, ShellCondition, ShellValue, matches_glob};

impl ConfigReader {
    /// What a list of commands is as a condition.
    pub(super) fn test_list(&mut self, list: &CompoundList) -> ShellCondition {
        match &list.0[..] {
            [one] => {
                let mut condition = self.test_pipeline(&one.0.first).unwrap_or_else(run_to_know);
                for next in &one.0.additional {
                    condition = match next {
                        AndOr::And(pipeline) => {
                            let next = self.test_pipeline(pipeline).unwrap_or_else(run_to_know);
                            condition.and(|| next)
                        }
                        AndOr::Or(pipeline) => {
                            let next = self.test_pipeline(pipeline).unwrap_or_else(run_to_know);
                            condition.or(|| next)
                        }
                    };
                }
                condition
            }
            _ => run_to_know(),
        }
    }

    /// The condition that a pipeline is; `None` where it is a command.
    pub(super) fn test_pipeline(&mut self, pipeline: &Pipeline) -> Option<ShellCondition> {
        let condition = match &pipeline.seq[..] {
            [Command::ExtendedTest(test, _)] => self.test_extended(&test.expr),
            [Command::Simple(command)] => {
                let name = command.word_or_name.as_ref().map(|word| word.value.as_str());
                let words =
                    command.suffix.iter().flat_map(|suffix| &suffix.0).filter_map(|item| match item {
                        CommandPrefixOrSuffixItem::Word(word) => Some(word.clone()),
                        _ => None,
                    });
                let mut words: Vec<Word> = words.collect();
                match name {
                    Some("[") => {
                        words.pop();
                        self.test_words(&words)
                    }
                    Some("test") => self.test_words(&words),
                    Some("true") => ShellCondition::Known(true),
                    Some("false") => ShellCondition::Known(false),
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(if pipeline.bang { condition.negate() } else { condition })
    }

    /// The words within `[ ]`.
    fn test_words(&mut self, words: &[Word]) -> ShellCondition {
        if let Some(at) = words.iter().position(|word| word.value == "-o") {
            let (left, right) = (self.test_words(&words[..at]), self.test_words(&words[at + 1..]));
            return left.or(|| right);
        }
        if let Some(at) = words.iter().position(|word| word.value == "-a") {
            let (left, right) = (self.test_words(&words[..at]), self.test_words(&words[at + 1..]));
            return left.and(|| right);
        }
        match words {
            [not, rest @ ..] if not.value == "!" && !rest.is_empty() => self.test_words(rest).negate(),
            [only] => self.is_empty(only).negate(),
            [operator, word] => match operator.value.as_str() {
                "-z" => self.is_empty(word),
                "-n" => self.is_empty(word).negate(),
                _ => ShellCondition::Unknown("it looks at files of the machine".into()),
            },
            [left, operator, right] => {
                let (left, right) = (self.expand(left), self.expand(right));
                match operator.value.as_str() {
                    "=" | "==" => ShellCondition::compare_texts(&left, &right),
                    "!=" => ShellCondition::compare_texts(&left, &right).negate(),
                    "-eq" => ShellCondition::compare(&left, NumberOrder::Equal, &right),
                    "-ne" => ShellCondition::compare(&left, NumberOrder::NotEqual, &right),
                    "-lt" => ShellCondition::compare(&left, NumberOrder::Less, &right),
                    "-le" => ShellCondition::compare(&left, NumberOrder::LessOrEqual, &right),
                    "-gt" => ShellCondition::compare(&left, NumberOrder::Greater, &right),
                    "-ge" => ShellCondition::compare(&left, NumberOrder::GreaterOrEqual, &right),
                    _ => ShellCondition::Unknown("a test that is not known".into()),
                }
            }
            _ => ShellCondition::Unknown("a test that is not known".into()),
        }
    }

    fn is_empty(&mut self, word: &Word) -> ShellCondition {
        match self.expand(word) {
            ShellValue::Text(text) => ShellCondition::Known(text.is_empty()),
            ShellValue::Number(_) => ShellCondition::Known(false),
            ShellValue::Unknown(reason) => ShellCondition::Unknown(reason),
        }
    }

    fn test_extended(&mut self, expression: &ExtendedTestExpr) -> ShellCondition {
        match expression {
            ExtendedTestExpr::And(left, right) => {
                let (left, right) = (self.test_extended(left), self.test_extended(right));
                left.and(|| right)
            }
            ExtendedTestExpr::Or(left, right) => {
                let (left, right) = (self.test_extended(left), self.test_extended(right));
                left.or(|| right)
            }
            ExtendedTestExpr::Not(inner) => self.test_extended(inner).negate(),
            ExtendedTestExpr::Parenthesized(inner) => self.test_extended(inner),
            ExtendedTestExpr::UnaryTest(UnaryPredicate::StringHasZeroLength, word) => self.is_empty(word),
            ExtendedTestExpr::UnaryTest(UnaryPredicate::StringHasNonZeroLength, word) => {
                self.is_empty(word).negate()
            }
            ExtendedTestExpr::UnaryTest(..) => {
                ShellCondition::Unknown("it looks at files of the machine".into())
            }
            ExtendedTestExpr::BinaryTest(predicate, left, right) => {
                let (left, right) = (self.expand(left), self.expand(right));
                test_binary(predicate, &left, &right)
            }
        }
    }
}

fn test_binary(predicate: &BinaryPredicate, left: &ShellValue, right: &ShellValue) -> ShellCondition {
    let order = match predicate {
        BinaryPredicate::ArithmeticEqualTo => NumberOrder::Equal,
        BinaryPredicate::ArithmeticNotEqualTo => NumberOrder::NotEqual,
        BinaryPredicate::ArithmeticLessThan => NumberOrder::Less,
        BinaryPredicate::ArithmeticLessThanOrEqualTo => NumberOrder::LessOrEqual,
        BinaryPredicate::ArithmeticGreaterThan => NumberOrder::Greater,
        BinaryPredicate::ArithmeticGreaterThanOrEqualTo => NumberOrder::GreaterOrEqual,
        BinaryPredicate::StringExactlyMatchesPattern | BinaryPredicate::StringExactlyMatchesString => {
            return match (left.as_text(), right.as_text()) {
                (Some(text), Some(pattern)) => ShellCondition::Known(matches_glob(pattern, text)),
                _ => ShellCondition::compare_texts(left, right),
            };
        }
        BinaryPredicate::StringDoesNotExactlyMatchPattern
        | BinaryPredicate::StringDoesNotExactlyMatchString => {
            return match (left.as_text(), right.as_text()) {
                (Some(text), Some(pattern)) => ShellCondition::Known(!matches_glob(pattern, text)),
                _ => ShellCondition::compare_texts(left, right).negate(),
            };
        }
        BinaryPredicate::StringMatchesRegex => {
            let pattern = right.as_text().and_then(|pattern| regex::Regex::new(pattern).ok());
            return match (left.as_text(), pattern) {
                (Some(text), Some(pattern)) => ShellCondition::Known(pattern.is_match(text)),
                _ => ShellCondition::Unknown("a pattern that cannot be read".into()),
            };
        }
        _ => return ShellCondition::Unknown("it looks at files of the machine".into()),
    };
    ShellCondition::compare(left, order, right)
}

fn run_to_know() -> ShellCondition {
    ShellCondition::Unknown("only running a command would tell".into())
}
