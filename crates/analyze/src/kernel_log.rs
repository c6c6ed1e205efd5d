//! What the kernel printed during runs: kinds of trouble, and lines that are on one side of a comparison only.
//!
//! Two lines are the same where they are once numbers and addresses are left out
//! ([`normalise_kernel_line`](perflab_formats::kernel::kernel_log::normalise_kernel_line)).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use perflab_formats::kernel::kernel_log::{
    KernelTrouble, is_dump_line, normalise_kernel_line, split_printed_line,
};
use perflab_model::{RunEventKind, RunRecord, fact_table};
use perflab_stats::{EventCount, fisher_exact};

use crate::compare::options::ComparisonSide;
use crate::compare::target_levels::{TARGET_FACTOR, has_target_levels};
use crate::kernel_log_rows::{KernelLogComparison, KernelLogCount, KernelLogRow};

/// Something that was kept of a kernel's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelLogPart {
    /// The iteration in which it was printed; none where it was outside of any.
    pub slot: Option<u32>,
    /// The target whose kernel printed it: index into the manifest's targets; none for the machine that records.
    pub target: Option<u32>,
    /// Lines as they are stored, or a console.
    pub text: String,
    /// Whether it is a console, of which only trouble counts: boots print much.
    pub is_console: bool,
}

/// The parts of each run, by its id.
pub type KernelLogsOfRuns = BTreeMap<String, Vec<KernelLogPart>>;

/// Holds the logs of runs against each other; `None` where no run kept one.
pub fn compare_kernel_logs(sides: &[ComparisonSide], logs: &KernelLogsOfRuns) -> Option<KernelLogComparison> {
    let read = |side: &ComparisonSide| {
        let mut tally = KernelLogTally::new(&side.name);
        for run in &side.runs {
            tally.add_run(run, log_of_run(run, logs).as_deref(), |_| true, |_| true);
        }
        tally
    };
    compare_tallies(sides.iter().map(read).collect())
}

/// Holds the levels of a factor within runs against each other; what was printed outside of iterations is of no level.
pub fn compare_kernel_logs_of_levels(
    side: &ComparisonSide,
    factor: &str,
    levels: &[String],
    logs: &KernelLogsOfRuns,
) -> Option<KernelLogComparison> {
    let read = |level: &String| {
        let mut tally = KernelLogTally::new(level);
        for run in &side.runs {
            let has_level = |slot: Option<u32>| {
                slot.and_then(|slot| run.manifest.plan.slot_level(slot, factor)) == Some(level.as_str())
            };
            let log = log_of_run(run, logs);
            let parts = log.as_deref();
            if factor == TARGET_FACTOR && has_target_levels(run) {
                let name =
                    |target: u32| run.manifest.targets.get(target as usize).map(|one| one.name.as_str());
                let is_target = |target: Option<u32>| target.and_then(name) == Some(level.as_str());
                tally.add_run(run, parts, |_| true, is_target);
            } else {
                tally.add_run(run, parts, has_level, |_| true);
            }
        }
        tally
    };
    compare_tallies(levels.iter().map(read).collect())
}

/// What was kept of a run. Of one that was joined from several it is what was kept of each, by the slots of the whole; nothing where
/// one's was not kept.
fn log_of_run<'a>(run: &RunRecord, logs: &'a KernelLogsOfRuns) -> Option<Cow<'a, [KernelLogPart]>> {
    if run.parts.is_empty() {
        return logs.get(&run.manifest.id).map(|log| log.as_slice().into());
    }
    let mut whole = Vec::new();
    for part in &run.parts {
        let place = |slot: u32| part.slots.get(slot as usize).copied();
        let printed = logs.get(&part.id)?.iter();
        whole.extend(printed.map(|one| KernelLogPart { slot: one.slot.and_then(place), ..one.clone() }));
    }
    Some(whole.into())
}

/// Kinds of trouble that a run had, with the iterations of each.
pub fn kernel_troubles(run: &RunRecord, parts: &[KernelLogPart]) -> Vec<KernelLogRow> {
    let mut tally = KernelLogTally::new("");
    tally.add_run(run, Some(parts), |_| true, |_| true);
    compare_tallies(vec![tally]).map(|found| found.troubles).unwrap_or_default()
}

/// One side being read.
struct KernelLogTally {
    name: String,
    measured: usize,
    kept: bool,
    is_unread: bool,
    read: usize,
    failed: BTreeSet<(String, u32)>,
    lines: BTreeMap<String, LineTally>,
    troubles: BTreeMap<KernelTrouble, LineTally>,
}

/// How the line begins with which a kernel ends.
const PANIC: &str = "Kernel panic";

#[derive(Default)]
struct LineTally {
    level: Option<u8>,
    first: String,
    /// Lines of the side before its first.
    order: usize,
    iterations: BTreeSet<(String, u32)>,
    elsewhere: usize,
}

impl KernelLogTally {
    fn new(name: &str) -> Self {
        let (lines, troubles) = (BTreeMap::new(), BTreeMap::new());
        KernelLogTally {
            name: name.into(),
            measured: 0,
            kept: false,
            is_unread: false,
            read: 0,
            failed: BTreeSet::new(),
            lines,
            troubles,
        }
    }

    /// Adds a run's parts that are of this side, by their slot and their target; a run without parts at all was not read.
    fn add_run(
        &mut self,
        run: &RunRecord,
        parts: Option<&[KernelLogPart]>,
        is_own: impl Fn(Option<u32>) -> bool,
        is_own_target: impl Fn(Option<u32>) -> bool,
    ) {
        let manifest = &run.manifest;
        let is_imported = manifest.facts.value(&fact_table::IMPORT_KIND).is_some();
        let Some(parts) = parts.filter(|_| manifest.study.kernel_log && !is_imported) else {
            self.is_unread = true;
            return;
        };
        self.kept = true;
        let parts = || parts.iter().filter(|part| is_own_target(part.target));
        self.is_unread |= parts().any(|part| part.text.starts_with(RunEventKind::KERNEL_LOG_UNREAD));
        let is_measured = |slot: u32| {
            manifest.plan.slots.get(slot as usize).is_some_and(|slot| !slot.warmup) && is_own(Some(slot))
        };
        let slots = 0..u32::try_from(manifest.plan.slots.len()).unwrap_or(u32::MAX);
        self.measured += slots.filter(|slot| is_measured(*slot)).count();
        for part in parts().filter(|part| is_own(part.slot)) {
            let iteration =
                part.slot.filter(|slot| is_measured(*slot)).map(|slot| (manifest.id.clone(), slot));
            for (level, text) in part.text.lines().filter_map(split_printed_line) {
                if part.is_console && KernelTrouble::find(text).is_none() {
                    continue;
                }
                self.add_line(level, text, iteration.as_ref());
            }
        }
        // A kernel that ends prints on its console, which belongs to no iteration; why the iteration failed does.
        for failed in
            run.iterations.iter().filter(|failed| is_measured(failed.slot) && is_own_target(failed.target))
        {
            let Some(reason) = failed.outcome.failure_reason() else { continue };
            self.failed.insert((manifest.id.clone(), failed.slot));
            if let Some(line) = reason.find(PANIC).and_then(|at| reason.get(at..)) {
                self.add_line(None, line, Some(&(manifest.id.clone(), failed.slot)));
            }
        }
    }

    fn add_line(&mut self, level: Option<u8>, text: &str, iteration: Option<&(String, u32)>) {
        let normal = normalise_kernel_line(text.trim_end());
        self.read += 1;
        let of_kind = KernelTrouble::find(text).map(|trouble| self.troubles.entry(trouble).or_default());
        let of_line = self.lines.entry(normal.clone()).or_default();
        for tally in of_kind.into_iter().chain([of_line]) {
            tally.add(level, &normal, iteration.cloned(), self.read);
        }
    }
}

impl LineTally {
    fn add(&mut self, level: Option<u8>, line: &str, iteration: Option<(String, u32)>, order: usize) {
        if self.first.is_empty() {
            (self.first, self.order) = (line.into(), order);
        }
        self.level = self.level.into_iter().chain(level).min();
        match iteration {
            Some(iteration) => drop(self.iterations.insert(iteration)),
            None => self.elsewhere += 1,
        }
    }
}

fn compare_tallies(sides: Vec<KernelLogTally>) -> Option<KernelLogComparison> {
    if !sides.iter().any(|side| side.kept) {
        return None;
    }
    let kinds: BTreeSet<KernelTrouble> =
        sides.iter().flat_map(|side| side.troubles.keys().copied()).collect();
    let texts: BTreeSet<&String> = sides.iter().flat_map(|side| side.lines.keys()).collect();
    let troubles = kinds.into_iter().map(|kind| {
        let tallies = sides.iter().map(|side| side.troubles.get(&kind)).collect::<Vec<_>>();
        kernel_log_row(&sides, &tallies, Some(kind))
    });
    let lines = texts.into_iter().map(|line| {
        let tallies = sides.iter().map(|side| side.lines.get(line)).collect::<Vec<_>>();
        let order = tallies.iter().flatten().map(|tally| tally.order).min();
        (order, kernel_log_row(&sides, &tallies, KernelTrouble::find(line)))
    });
    let mut lines: Vec<(Option<usize>, KernelLogRow)> = lines.filter(|(_, row)| row.is_one_sided()).collect();
    lines.sort_by_key(|(order, row)| {
        (row.trouble.is_none(), row.is_dump, row.level.unwrap_or(u8::MAX), *order)
    });
    let lines = lines.into_iter().map(|(_, row)| row).collect();
    Some(KernelLogComparison {
        unread: sides.iter().filter(|side| side.is_unread).map(|side| side.name.clone()).collect(),
        troubles: troubles.collect(),
        lines,
        sides: sides.into_iter().map(|side| side.name).collect(),
    })
}

fn kernel_log_row(
    sides: &[KernelLogTally],
    tallies: &[Option<&LineTally>],
    trouble: Option<KernelTrouble>,
) -> KernelLogRow {
    let count = |(side, tally): (&KernelLogTally, &Option<&LineTally>)| KernelLogCount {
        iterations: tally.map_or(0, |tally| tally.iterations.len()),
        of: side.measured,
        elsewhere: tally.map_or(0, |tally| tally.elsewhere),
        failed_with: tally.map_or(0, |tally| tally.iterations.intersection(&side.failed).count()),
        failed: side.failed.len(),
    };
    let counts: Vec<KernelLogCount> = sides.iter().zip(tallies).map(count).collect();
    let events =
        |count: &KernelLogCount| EventCount { events: count.iterations as u64, trials: count.of as u64 };
    let p = counts.iter().skip(1).map(|candidate| {
        let baseline = counts.first()?;
        fisher_exact(events(baseline), events(candidate)).ok().map(|test| test.p)
    });
    let line = tallies.iter().flatten().map(|tally| tally.first.clone()).next().unwrap_or_default();
    KernelLogRow {
        trouble,
        level: tallies.iter().flatten().filter_map(|tally| tally.level).min(),
        is_dump: is_dump_line(&line),
        line,
        p: p.collect(),
        sides: counts,
    }
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::RunBuilder;

    use super::*;

    fn side(name: &str, iterations: u32) -> ComparisonSide {
        let run = RunBuilder::new(name).with(|run| run.iterations = iterations).build_run(|_| Some(1.0));
        ComparisonSide { name: name.into(), runs: vec![run] }
    }

    fn part(slot: u32, text: &str) -> KernelLogPart {
        KernelLogPart { slot: Some(slot), target: None, text: text.into(), is_console: false }
    }

    const WARNING: &str = "<4>[    1.000000] WARNING: CPU: 0 PID: 17 at mm/slub.c:100 kfree+0x1/0x2\n";
    const AGAIN: &str = "<4>[    2.500000] WARNING: CPU: 1 PID: 99 at mm/slub.c:100 kfree+0x5/0x9\n";
    const LINK: &str = "<6>[    3.000000] eth0: link up\n";

    #[test]
    fn what_is_on_one_side_only_is_told_with_its_iterations() {
        let sides = [side("a", 5), side("b", 5)];
        let warned = (0..5).map(|slot| part(slot, if slot % 2 == 0 { WARNING } else { AGAIN }));
        let logs = [
            ("a".to_owned(), vec![part(0, LINK)]),
            ("b".to_owned(), warned.chain([part(1, LINK)]).collect()),
        ];
        let found = compare_kernel_logs(&sides, &logs.into()).unwrap();
        let [row] = &found.lines[..] else { panic!("{found:?}") };
        assert_eq!(row.line, "WARNING: CPU: N PID: N at mm/slub.c:N kfree+X/X");
        assert_eq!((row.trouble, row.level), (Some(KernelTrouble::Warning), Some(4)));
        let count = |iterations| KernelLogCount { iterations, of: 5, ..KernelLogCount::default() };
        assert_eq!(row.sides, [count(0), count(5)]);
        // 1 / (10 choose 5), two-sided.
        assert!((row.p[0].unwrap() - 2.0 / 252.0).abs() < 1e-12);
        assert!(row.is_new() && found.troubles.len() == 1 && found.unread.is_empty());
    }

    #[test]
    fn a_run_that_kept_no_log_is_unread_and_a_console_counts_for_trouble_only() {
        let mut sides = [side("a", 2), side("b", 2)];
        let console = "[    0.1] Linux version 6.1\r\n[    9.1] Kernel panic - not syncing: Oops\r\n";
        let console = KernelLogPart { slot: None, target: None, text: console.into(), is_console: true };
        let logs: KernelLogsOfRuns = [("a".to_owned(), Vec::new()), ("b".to_owned(), vec![console])].into();
        let found = compare_kernel_logs(&sides, &logs).unwrap();
        assert_eq!(found.lines.len(), 1);
        let row = &found.troubles[0];
        assert_eq!((row.trouble, row.sides[1].elsewhere), (Some(KernelTrouble::Panic), 1));
        // The iteration that it ended is known by why it failed.
        let reason = "the guest's kernel panicked: Kernel panic - not syncing: Oops".to_owned();
        sides[1].runs[0].iterations[0].outcome = perflab_model::Outcome::Failed { reason };
        let found = compare_kernel_logs(&sides, &logs).unwrap();
        assert_eq!((found.lines.len(), found.troubles[0].sides[1].iterations), (1, 1));
        sides[0].runs[0].manifest.study.kernel_log = false;
        assert_eq!(compare_kernel_logs(&sides, &logs).unwrap().unread, ["a"]);
        sides[1].runs[0].manifest.study.kernel_log = false;
        assert_eq!(compare_kernel_logs(&sides, &logs), None);
    }

    #[test]
    fn iterations_of_a_level_are_its_own() {
        let builder = RunBuilder::new("a").with(|run| {
            run.factors = vec![("how", vec!["x", "y"])];
            run.iterations = 3;
        });
        let side = ComparisonSide { name: "a".into(), runs: vec![builder.build_run(|_| Some(1.0))] };
        // Slots take turns: x, y, x, y, x, y.
        let logs = [("a".to_owned(), vec![part(1, WARNING), part(3, AGAIN)])].into();
        let levels = ["x".to_owned(), "y".to_owned()];
        let found = compare_kernel_logs_of_levels(&side, "how", &levels, &logs).unwrap();
        let counts: Vec<(usize, usize)> =
            found.troubles[0].sides.iter().map(|side| (side.iterations, side.of)).collect();
        assert_eq!(counts, [(0, 3), (2, 3)]);
        assert_eq!(kernel_troubles(&side.runs[0], &[part(1, WARNING)])[0].sides[0].iterations, 1);
    }
}
