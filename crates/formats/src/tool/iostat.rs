//! The output of `iostat -x`: a block per interval with a row per device.
//!
//! Columns are those that each block's head names (they moved in every second release of sysstat). The first block, of
//! the time since the machine was started, is left out, and so are the CPU's rows, which mpstat and vmstat have better.

use perflab_model::{CellRow, ColumnSpec, TableCell};

use crate::reading_parser::{LineOutcome, LineRole, ReadingParser, TextLine};

/// The format, with the columns of its heads.
#[derive(Debug, Default)]
pub struct IostatParser {
    columns: Vec<String>,
    blocks: u64,
}

/// The unit of a column, which its name tells.
fn iostat_unit(name: &str) -> &'static str {
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

impl IostatParser {
    fn parse_head(&mut self, words: &[&str]) -> LineOutcome {
        self.blocks += 1;
        if self.columns.is_empty() {
            self.columns = words.iter().map(|word| (*word).to_owned()).collect();
        }
        match self.columns.iter().map(String::as_str).eq(words.iter().copied()) {
            true => LineOutcome::Nothing,
            false => LineOutcome::Unusable("this head names other columns than the first".into()),
        }
    }
}

impl ReadingParser for IostatParser {
    fn series(&self) -> &'static str {
        "iostat"
    }

    fn source(&self) -> &'static str {
        "iostat -x"
    }

    fn may_be_empty(&self) -> bool {
        true
    }

    fn line_role(&self, text: &str) -> Result<LineRole, String> {
        let number = |word: &str| word.parse::<f64>().is_ok();
        Ok(match text.split_ascii_whitespace().next() {
            Some("Device" | "Device:") => LineRole::HeadRow,
            Some("Linux" | "avg-cpu:") => LineRole::Comment,
            Some(word) if number(word) => LineRole::Comment,
            _ => LineRole::Row,
        })
    }

    fn parse_row(&mut self, line: TextLine<'_>, rows: &mut Vec<CellRow>) -> LineOutcome {
        let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
        let Some((device, values)) = words.split_first() else { return LineOutcome::Nothing };
        if matches!(*device, "Device" | "Device:") {
            return self.parse_head(values);
        }
        if !line.whole || values.len() != self.columns.len() {
            return LineOutcome::Unusable(format!(
                "it has {} columns and its head {}",
                values.len(),
                self.columns.len()
            ));
        }
        if self.blocks < 2 {
            return LineOutcome::Nothing;
        }
        let value =
            |word: &&str| word.parse::<f64>().ok().filter(|value| value.is_finite()).map(TableCell::Float);
        match values.iter().map(value).collect::<Option<CellRow>>() {
            Some(cells) => {
                rows.push(std::iter::once(TableCell::Text((*device).to_owned())).chain(cells).collect());
                LineOutcome::Used
            }
            None => LineOutcome::Unusable("a value is no number".into()),
        }
    }

    fn columns(&self) -> Vec<ColumnSpec> {
        let values = self.columns.iter().map(|name| ColumnSpec::float_gauge(name, iostat_unit(name)));
        std::iter::once(ColumnSpec::key("device")).chain(values).collect()
    }

    fn closing_note(&self) -> Option<String> {
        let text =
            "its first report, of the time since the machine was started, and its CPU rows are left out";
        (self.blocks > 0).then(|| text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_without_a_report_leaves_none_out() {
        assert!(IostatParser::default().closing_note().is_none());
        assert!(IostatParser { blocks: 1, ..IostatParser::default() }.closing_note().is_some());
    }
}
