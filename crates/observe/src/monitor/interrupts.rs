//! Series `interrupts` and `softirqs` on a clock: a row a source and CPU.
//!
//! Rows are built for what changed since the last reading; of the others only counts are kept. A CPU that goes offline or
//! comes, and a source that is new, make the reading a whole one.

use perflab_formats::kernel::interrupts::{parse_interrupt_cpus, parse_interrupt_lines};
use perflab_model::series::StoredRows;
use perflab_model::{CellRow, SeriesSchema, TableCell};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext, MonitorReading};
use crate::monitor::text_file::ProcFile;

/// Rows of machines with more than these are left out where the source never had an event on any CPU.
const FEW_ROWS: usize = 4096;

struct InterruptsMonitor {
    schema: SeriesSchema,
    file: ProcFile,
    /// The rows of the last reading: their keys,
    subjects: Vec<Subject>,
    /// and what they counted; those of subjects that have no row as well.
    counts: Vec<u64>,
    /// Those being read.
    reading: Vec<u64>,
    cpus: Vec<String>,
}

/// What a count belongs to.
struct Subject {
    label: String,
    name: String,
    cpu: String,
    /// The index of its row; nothing where it has none, as it never counted.
    row: Option<u32>,
}

pub(crate) fn open_interrupts(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let mut monitor = InterruptsMonitor {
        schema: SeriesSchema { stored: StoredRows::Changed, ..opening.declared_schema() },
        file: ProcFile::open(opening.root, opening.file.source)?,
        subjects: Vec::new(),
        counts: Vec::new(),
        reading: Vec::new(),
        cpus: Vec::new(),
    };
    monitor.read_counts()?;
    Ok(Box::new(monitor))
}

impl InterruptsMonitor {
    /// Reads all counts, and returns whether they have the subjects of the last reading.
    fn read_counts(&mut self) -> Result<bool, ObserveError> {
        let (path, text) = self.file.read_with_path()?;
        let malformed = |malformed| ObserveError::malformed(path, malformed);
        let cpus = parse_interrupt_cpus(text).map_err(malformed)?;
        let mut is_same = self.cpus.iter().map(String::as_str).eq(cpus.iter().copied());
        self.reading.clear();
        let mut lines = Vec::new();
        let mut at = 0;
        parse_interrupt_lines(text, cpus.len(), &mut self.reading, |line, found| {
            let is_known = |subject: &Subject| subject.label == line.label && subject.name == line.name;
            is_same = is_same && self.subjects.get(at).is_some_and(is_known);
            at += found;
            lines.push((line, found));
        })
        .map_err(malformed)?;
        is_same = is_same && at == self.subjects.len();
        if is_same {
            return Ok(true);
        }
        self.cpus = cpus.iter().map(|cpu| (*cpu).to_owned()).collect();
        self.subjects.clear();
        for (line, found) in lines {
            let of = |cpu: String| Subject {
                label: line.label.to_owned(),
                name: line.name.to_owned(),
                cpu,
                row: None,
            };
            // These count for all CPUs together, on machines with one as well.
            let is_of_all = found < cpus.len() || matches!(line.label, "ERR" | "MIS");
            if !is_of_all {
                self.subjects.extend(cpus.iter().map(|cpu| of(cpu.to_ascii_lowercase())));
            } else {
                self.subjects.push(of("all".into()));
            }
        }
        Ok(false)
    }

    /// Numbers the rows: of every source on small machines, and of those that ever had an event on large ones.
    fn number_rows(&mut self) {
        let has_all = self.subjects.len() <= FEW_ROWS;
        let width = self.cpus.len().max(1);
        let mut next = 0;
        let (mut index, total) = (0, self.subjects.len());
        while index < total {
            let is_of_all = self.subjects.get(index).is_some_and(|subject| subject.cpu == "all");
            let end = (index + if is_of_all { 1 } else { width }).min(total);
            let ever =
                self.reading.get(index..end).is_some_and(|counts| counts.iter().any(|count| *count > 0));
            for subject in self.subjects.get_mut(index..end).unwrap_or_default() {
                subject.row = (has_all || ever).then(|| {
                    next += 1;
                    next - 1
                });
            }
            index = end;
        }
    }

    fn make_row(&self, subject: &Subject, count: u64) -> CellRow {
        let mut row = CellRow::with_capacity(self.schema.columns.len());
        row.push(TableCell::Text(subject.label.clone()));
        if self.schema.columns.len() == 4 {
            row.push(TableCell::Text(subject.name.clone()));
        }
        row.push(TableCell::Text(subject.cpu.clone()));
        row.push(i64::try_from(count).map_or(TableCell::Missing, TableCell::Int));
        row
    }

    /// All rows of what was just read.
    fn take_whole(&mut self, rows: &mut Vec<CellRow>) {
        self.number_rows();
        std::mem::swap(&mut self.counts, &mut self.reading);
        let counted = self.subjects.iter().zip(&self.counts).filter(|(subject, _)| subject.row.is_some());
        rows.extend(counted.map(|(subject, count)| self.make_row(subject, *count)));
    }
}

impl Monitor for InterruptsMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        self.read_counts()?;
        self.take_whole(rows);
        Ok(())
    }

    fn read_changes(&mut self) -> Result<MonitorReading, ObserveError> {
        // Before the first reading there are no counts to compare with.
        let is_same = self.read_counts()? && self.counts.len() == self.reading.len();
        let counted = || self.subjects.iter().zip(self.counts.iter().zip(&self.reading));
        let is_new =
            |(subject, (before, now)): (&Subject, (&u64, &u64))| subject.row.is_none() && before != now;
        if !is_same || counted().any(is_new) {
            let mut rows = Vec::new();
            self.take_whole(&mut rows);
            return Ok(MonitorReading::Whole(rows));
        }
        let changed = counted().filter(|(_, (before, now))| before != now);
        let rows =
            changed.filter_map(|(subject, (_, now))| Some((subject.row?, self.make_row(subject, *now))));
        let rows = rows.collect();
        std::mem::swap(&mut self.counts, &mut self.reading);
        Ok(MonitorReading::Changed(rows))
    }
}
