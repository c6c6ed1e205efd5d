//! The output of `mpstat -P ALL`: a block per interval with a row per CPU and one for all, in the columns that its head
//! names.

use perflab_model::{CellRow, ColumnSpec, TableCell};

use crate::reading_parser::{LineOutcome, LineRole, ReadingParser, TextLine};

/// The format, with the columns of its head and the place of the CPU among the words of a line.
#[derive(Debug, Default)]
pub struct MpstatParser {
    columns: Vec<String>,
    place: usize,
}

impl MpstatParser {
    fn parse_head(&mut self, words: &[&str], place: usize) -> LineOutcome {
        let names: Vec<String> = words.iter().skip(place + 1).map(|word| (*word).to_owned()).collect();
        self.place = place;
        if self.columns.is_empty() {
            self.columns = names;
            return LineOutcome::Nothing;
        }
        match self.columns == names {
            true => LineOutcome::Nothing,
            false => LineOutcome::Unusable("this head names other columns than the first".into()),
        }
    }
}

impl ReadingParser for MpstatParser {
    fn series(&self) -> &'static str {
        "mpstat"
    }

    fn source(&self) -> &'static str {
        "mpstat -P ALL"
    }

    fn may_be_empty(&self) -> bool {
        true
    }

    fn is_headed(&self) -> bool {
        false
    }

    fn line_role(&self, text: &str) -> Result<LineRole, String> {
        let other = text.starts_with("Linux ") || text.starts_with("Average:");
        Ok(if other { LineRole::Comment } else { LineRole::Row })
    }

    fn parse_row(&mut self, line: TextLine<'_>, rows: &mut Vec<CellRow>) -> LineOutcome {
        let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
        if let Some(place) = words.iter().position(|word| *word == "CPU") {
            return self.parse_head(&words, place);
        }
        if self.columns.is_empty() {
            return LineOutcome::Unusable("no head before it names its columns".into());
        }
        let (Some(cpu), Some(values)) = (words.get(self.place), words.get(self.place + 1..)) else {
            return LineOutcome::Unusable("it has no CPU".into());
        };
        if !line.whole || values.len() != self.columns.len() {
            return LineOutcome::Unusable(format!(
                "it has {} values and its head {}",
                values.len(),
                self.columns.len()
            ));
        }
        let value =
            |word: &&str| word.parse::<f64>().ok().filter(|value| value.is_finite()).map(TableCell::Float);
        match values.iter().map(value).collect::<Option<CellRow>>() {
            Some(cells) if *cpu == "all" || cpu.parse::<u32>().is_ok() => {
                rows.push(std::iter::once(TableCell::Text((*cpu).to_owned())).chain(cells).collect());
                LineOutcome::Used
            }
            Some(_) => LineOutcome::Unusable(format!("`{cpu}` is no CPU")),
            None => LineOutcome::Unusable("a value is no number".into()),
        }
    }

    fn columns(&self) -> Vec<ColumnSpec> {
        let values = self.columns.iter().map(|name| ColumnSpec::float_gauge(name, "%"));
        std::iter::once(ColumnSpec::key("cpu")).chain(values).collect()
    }
}
