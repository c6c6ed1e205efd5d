//! The output of `mpstat -P ALL`: a block an interval with a row a CPU and one for all, in the columns that its head names.

use perflab_model::{Cell, Column, Row};

use super::format::{Format, Role};
use super::lines::Line;
use super::took::Read;

/// The format, with the columns of its head and the place of the CPU among the words of a line.
#[derive(Debug, Default)]
pub(crate) struct Mpstat {
    columns: Vec<String>,
    place: usize,
}

impl Mpstat {
    fn head(&mut self, words: &[&str], place: usize) -> Read {
        let names: Vec<String> = words.iter().skip(place + 1).map(|word| (*word).to_owned()).collect();
        self.place = place;
        if self.columns.is_empty() {
            self.columns = names;
            return Read::Nothing;
        }
        match self.columns == names {
            true => Read::Nothing,
            false => Read::Unusable("this head names other columns than the first".into()),
        }
    }
}

impl Format for Mpstat {
    const SERIES: &'static str = "mpstat";
    const SOURCE: &'static str = "mpstat -P ALL";
    const MAY_BE_EMPTY: bool = true;
    const HEADED: bool = false;

    fn role(&self, text: &str) -> Result<Role, String> {
        let other = text.starts_with("Linux ") || text.starts_with("Average:");
        Ok(if other { Role::Comment } else { Role::Row })
    }

    fn row(&mut self, line: Line<'_>, rows: &mut Vec<Row>) -> Read {
        let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
        if let Some(place) = words.iter().position(|word| *word == "CPU") {
            return self.head(&words, place);
        }
        if self.columns.is_empty() {
            return Read::Unusable("no head before it names its columns".into());
        }
        let (Some(cpu), Some(values)) = (words.get(self.place), words.get(self.place + 1..)) else {
            return Read::Unusable("it has no CPU".into());
        };
        if !line.whole || values.len() != self.columns.len() {
            return Read::Unusable(format!(
                "it has {} values and its head {}",
                values.len(),
                self.columns.len()
            ));
        }
        let value = |word: &&str| word.parse::<f64>().ok().filter(|value| value.is_finite()).map(Cell::Float);
        match values.iter().map(value).collect::<Option<Row>>() {
            Some(cells) if *cpu == "all" || cpu.parse::<u32>().is_ok() => {
                rows.push(std::iter::once(Cell::Text((*cpu).to_owned())).chain(cells).collect());
                Read::Used
            }
            Some(_) => Read::Unusable(format!("`{cpu}` is no CPU")),
            None => Read::Unusable("a value is no number".into()),
        }
    }

    fn columns(&self) -> Vec<Column> {
        let values = self.columns.iter().map(|name| Column::float_gauge(name, "%"));
        std::iter::once(Column::key("cpu")).chain(values).collect()
    }
}
