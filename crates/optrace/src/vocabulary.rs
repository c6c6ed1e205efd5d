//! Names of operations, spans and numbers, in the order given, and how many there may be.

use crate::error::OptraceError;

/// Kinds of operation at most.
pub const MOST_OPERATIONS: usize = 250;

/// Kinds of span at most: one bit each of a word.
pub const MOST_SPANS: usize = 32;

/// Kinds of number at most.
pub const MOST_NUMBERS: usize = 16;

/// Spans inside one another at most; what is deeper counts as time of the deepest one, and the operation is flagged.
pub const MOST_DEPTH: usize = 15;

/// The names that a program gives: a number on the measured path is an index into one of these lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Vocabulary {
    /// Kinds of operation.
    pub operations: Vec<String>,
    /// Kinds of span: the causes that time is attributed to.
    pub spans: Vec<String>,
    /// Numbers that an operation may carry.
    pub numbers: Vec<String>,
}

impl Vocabulary {
    /// Checked names.
    ///
    /// # Errors
    /// [`OptraceError::Words`]: too many, none for the operations, twice the same, empty, or with a control character.
    pub fn new(operations: &[&str], spans: &[&str], numbers: &[&str]) -> Result<Self, OptraceError> {
        if operations.is_empty() {
            return Err(OptraceError::Words("there must be at least one kind of operation".into()));
        }
        Ok(Self {
            operations: check_names("operations", operations, MOST_OPERATIONS)?,
            spans: check_names("spans", spans, MOST_SPANS)?,
            numbers: check_names("numbers", numbers, MOST_NUMBERS)?,
        })
    }

    /// One name a line, behind the letter of its list.
    pub(crate) fn to_text(&self) -> String {
        let lists = [('o', &self.operations), ('s', &self.spans), ('n', &self.numbers)];
        lists
            .iter()
            .flat_map(|(list, names)| names.iter().map(move |name| format!("{list} {name}\n")))
            .collect()
    }

    pub(crate) fn parse(text: &str) -> Result<Self, OptraceError> {
        let of = |list: &str| text.lines().filter_map(|line| line.strip_prefix(list)).collect::<Vec<_>>();
        Self::new(&of("o "), &of("s "), &of("n "))
    }
}

fn check_names(what: &str, names: &[&str], most: usize) -> Result<Vec<String>, OptraceError> {
    if names.len() > most {
        return Err(OptraceError::Words(format!("{} {what}, and at most {most} are possible", names.len())));
    }
    for (at, name) in names.iter().enumerate() {
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(OptraceError::Words(format!(
                "`{}` is no name for one of the {what}",
                name.escape_debug()
            )));
        }
        if names.iter().take(at).any(|other| other == name) {
            return Err(OptraceError::Words(format!("`{name}` stands twice among the {what}")));
        }
    }
    Ok(names.iter().map(|name| (*name).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_their_text() {
        let vocabulary = Vocabulary::new(&["insert", "find"], &[], &["elements"]).unwrap();
        assert_eq!(vocabulary.to_text(), "o insert\no find\nn elements\n");
        assert_eq!(Vocabulary::parse(&vocabulary.to_text()).unwrap(), vocabulary);
    }

    #[test]
    fn bad_words_are_refused() {
        assert!(Vocabulary::new(&[], &[], &[]).is_err());
        assert!(Vocabulary::new(&["a", "a"], &[], &[]).is_err());
        assert!(Vocabulary::new(&["a\nb"], &[], &[]).is_err());
        assert!(Vocabulary::new(&["a"], &[""], &[]).is_err());
        let many: Vec<String> = (0..=MOST_SPANS).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(Vocabulary::new(&["a"], &many, &[]).is_err());
    }
}
