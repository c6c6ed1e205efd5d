//! The output of `iostat -x`: a block an interval with a row a device, in the columns that each block's head names (they
//! moved in every second release of sysstat). The first block, of the time since the machine was started, is left out,
//! and so are the CPU's rows, which mpstat and vmstat have better.

use perflab_model::{Cell, Column, Nanos, Row};

use super::format::{Format, Role};
use super::lines::Line;
use super::stamp;
use super::took::Read;

/// The format, with the columns of its heads.
#[derive(Debug, Default)]
pub(crate) struct Iostat {
    columns: Vec<String>,
    blocks: u64,
}

/// The unit of a column, which its name tells.
pub(crate) fn unit(name: &str) -> &'static str {
    match name {
        _ if name.starts_with('%') => "%",
        _ if name.ends_with("await") || name == "svctm" => "ms",
        _ if name.ends_with("kB/s") => "KiB/s",
        _ if name.ends_with("MB/s") => "MiB/s",
        _ if name.ends_with("sec/s") => "sectors/s",
        _ if name.ends_with("/s") => "requests/s",
        "avgrq-sz" => "sectors",
        "avgqu-sz" | "aqu-sz" => "requests",
        _ if name.ends_with("areq-sz") => "KiB",
        _ => "1",
    }
}

impl Iostat {
    fn head(&mut self, words: &[&str]) -> Read {
        self.blocks += 1;
        if self.columns.is_empty() {
            self.columns = words.iter().map(|word| (*word).to_owned()).collect();
        }
        match self.columns.iter().map(String::as_str).eq(words.iter().copied()) {
            true => Read::Nothing,
            false => Read::Unusable("this head names other columns than the first".into()),
        }
    }
}

impl Format for Iostat {
    const SERIES: &'static str = "iostat";
    const SOURCE: &'static str = "iostat -x";
    const MAY_BE_EMPTY: bool = true;

    fn stamped<'a>(&self, text: &'a str) -> (Option<Nanos>, &'a str) {
        stamp::stamped(text)
    }

    fn role(&self, text: &str) -> Result<Role, String> {
        let number = |word: &str| word.parse::<f64>().is_ok();
        Ok(match text.split_ascii_whitespace().next() {
            Some("Device" | "Device:") => Role::HeadRow,
            Some("Linux" | "avg-cpu:") => Role::Comment,
            Some(word) if number(word) => Role::Comment,
            _ => Role::Row,
        })
    }

    fn row(&mut self, line: Line<'_>, rows: &mut Vec<Row>) -> Read {
        let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
        let Some((device, values)) = words.split_first() else { return Read::Nothing };
        if matches!(*device, "Device" | "Device:") {
            return self.head(values);
        }
        if !line.whole || values.len() != self.columns.len() {
            return Read::Unusable(format!(
                "it has {} columns and its head {}",
                values.len(),
                self.columns.len()
            ));
        }
        if self.blocks < 2 {
            return Read::Nothing;
        }
        let value = |word: &&str| word.parse::<f64>().ok().filter(|value| value.is_finite()).map(Cell::Float);
        match values.iter().map(value).collect::<Option<Row>>() {
            Some(cells) => {
                rows.push(std::iter::once(Cell::Text((*device).to_owned())).chain(cells).collect());
                Read::Used
            }
            None => Read::Unusable("a value is no number".into()),
        }
    }

    fn columns(&self) -> Vec<Column> {
        let values = self.columns.iter().map(|name| Column::float_gauge(name, unit(name)));
        std::iter::once(Column::key("device")).chain(values).collect()
    }

    fn remark(&self) -> Option<String> {
        let text =
            "its first report, of the time since the machine was started, and its CPU rows are left out";
        (self.blocks > 0).then(|| text.into())
    }
}
