//! What kernels printed, weighed: lines that one side has in more iterations, or that come in the iterations that failed.

use perflab_formats::kernel::kernel_log::KernelTrouble;
use perflab_model::named::Named as _;
use perflab_stats::{EventCount, fisher_exact};
use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::comparison::{Comparison, VerdictRow};
use crate::compare::failures::VerdictBasis;
use crate::kernel_log_rows::{KernelLogCount, KernelLogRow};

/// What differs with a p above, adjusted for all lines, is put down to chance.
const MOST_P: f64 = 0.05;

/// A kind of trouble, or a line, that goes with the change or with failures.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LogEvidence {
    /// what is wrong, where the line says so
    #[schemars(with = "Option<String>")]
    pub trouble: Option<KernelTrouble>,
    /// what that means; the line where it says nothing of the kind
    pub cause: String,
    /// the first such line, without numbers and addresses
    pub line: String,
    /// how often it was printed on the baseline
    pub baseline: KernelLogCount,
    /// how often on the candidate
    pub candidate: KernelLogCount,
    /// p of "as many iterations with it on both sides" (Fisher's exact test), for all lines and both tests together (Bonferroni)
    pub adjusted_p: f64,
    /// p of "iterations with it fail as often as others", adjusted likewise; absent where none failed
    pub failure_p: Option<f64>,
    /// Whether it is trouble, and on the side that is worse, or in the iterations that failed: it stands before all other suspects.
    pub explains: bool,
    /// what prints its figures
    pub shown_by: String,
}

/// The lines and kinds of trouble that differ beyond chance, or go with failures, those that explain first.
pub(crate) fn weigh_kernel_log(comparison: &Comparison, row: &VerdictRow) -> Vec<LogEvidence> {
    let place = comparison.candidates.iter().position(|name| *name == row.candidate_name);
    let (Some(log), Some(place)) = (&comparison.kernel_log, place) else { return Vec::new() };
    let lines = log.lines.iter().filter(|line| line.trouble.is_none() && !line.is_dump);
    let all: Vec<&KernelLogRow> = log.troubles.iter().chain(lines).collect();
    let has_failures = row.failures.is_some();
    let tests = all.len() * if has_failures { 2 } else { 1 };
    let mut found: Vec<LogEvidence> =
        all.into_iter().filter_map(|line| weigh_line(line, place, tests, row)).collect();
    found.sort_by(|one, other| {
        let key = |one: &LogEvidence| (!one.explains, one.trouble.is_none());
        let p = |one: &LogEvidence| one.adjusted_p.min(one.failure_p.unwrap_or(1.0));
        key(one).cmp(&key(other)).then(p(one).total_cmp(&p(other)))
    });
    found
}

fn weigh_line(line: &KernelLogRow, place: usize, tests: usize, row: &VerdictRow) -> Option<LogEvidence> {
    let (baseline, candidate) = (*line.sides.first()?, *line.sides.get(place + 1)?);
    let adjust = |p: f64| (p * tests as f64).min(1.0);
    let adjusted_p = adjust(line.p.get(place).copied().flatten()?);
    let failure_p = row.failures.and_then(|_| failure_p_of([baseline, candidate])).map(adjust);
    let share = |count: KernelLogCount| count.iterations as f64 / count.of.max(1) as f64;
    let more = share(candidate).total_cmp(&share(baseline));
    let is_on_worse_side = match row.verdict_word() {
        "worse" => more.is_gt(),
        "better" => more.is_lt(),
        _ => more.is_ne(),
    };
    let differs = adjusted_p <= MOST_P;
    let fails = failure_p.is_some_and(|p| p <= MOST_P);
    // Of a verdict that stands on values, failures are no part.
    let explains = line.trouble.is_some()
        && (differs && is_on_worse_side || fails && row.basis == VerdictBasis::Failures);
    let cause = match line.trouble {
        Some(trouble) => describe_trouble(trouble).to_owned(),
        None => line.line.clone(),
    };
    let (trouble, line) = (line.trouble, line.line.clone());
    (differs || fails).then_some(LogEvidence {
        trouble,
        cause,
        line,
        baseline,
        candidate,
        adjusted_p,
        failure_p,
        explains,
        shown_by: String::new(),
    })
}

/// Whether iterations with a line fail more often than others, on both sides together; nothing where they do not.
fn failure_p_of(sides: [KernelLogCount; 2]) -> Option<f64> {
    let sum = |of: fn(&KernelLogCount) -> usize| sides.iter().map(of).sum::<usize>() as u64;
    let with = EventCount { events: sum(|side| side.failed_with), trials: sum(|side| side.iterations) };
    let (failed, all) = (sum(|side| side.failed), sum(|side| side.of));
    let without =
        EventCount { events: failed.checked_sub(with.events)?, trials: all.checked_sub(with.trials)? };
    let is_more = with.events * without.trials > without.events * with.trials;
    let found = fisher_exact(without, with).ok().filter(|_| is_more)?;
    Some(found.p)
}

/// What a kind of trouble is, in a few words.
fn describe_trouble(trouble: KernelTrouble) -> &'static str {
    KernelTrouble::NAMES.iter().find(|(kind, ..)| *kind == trouble).map_or("", |(.., about)| about)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_that_come_with_a_line_are_told_from_chance() {
        let side = |iterations, of, failed_with, failed| KernelLogCount {
            iterations,
            of,
            elsewhere: 0,
            failed_with,
            failed,
        };
        // 8 of 8 with it fail, 0 of 8 without: 2 / C(16, 8).
        let p = failure_p_of([side(0, 8, 0, 0), side(8, 8, 8, 8)]).unwrap();
        assert!((p - 2.0 / 12_870.0).abs() < 1e-9, "{p}");
        assert_eq!(failure_p_of([side(0, 8, 0, 4), side(8, 8, 0, 0)]), None, "those with it fail less");
        assert_eq!(failure_p_of([side(0, 8, 0, 0), side(0, 8, 0, 8)]), None, "no iteration has it");
    }
}
