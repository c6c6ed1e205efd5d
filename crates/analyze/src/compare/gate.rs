//! `--fail-if`: which rows make a comparison fail. The exit code is the binary's.

use std::fmt;
use std::str::FromStr;

use perflab_formats::kernel::kernel_log::KernelTrouble;
use perflab_model::Ratio;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::named::Named;

use crate::compare::comparison::{Comparison, Verdict, VerdictRow};
use crate::compare::diagnostic::RowFlag;
use crate::compare::failures::VerdictBasis;
use crate::kernel_log_rows::KernelLogRow;

/// What is not acceptable: any of its rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    rules: Vec<GateRule>,
    /// Whether what differs between two single runs counts as better or worse, whichever way it goes.
    counts_differing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct GateRule {
    term: GateTerm,
    /// The change, as a fraction, that is still acceptable.
    beyond: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum GateTerm {
    Verdict(Verdict),
    Missing,
    KernelLog(Option<KernelTrouble>),
}

/// A text that is no gate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a condition: {reason}; write for example worse, worse:2%, unclear, kernel-log:any or worse:2%,missing"
)]
pub struct GateParseError {
    text: String,
    reason: String,
}

impl Classify for GateParseError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

const GATE_TERMS: &[(&str, GateTerm)] = &[
    ("better", GateTerm::Verdict(Verdict::Better)),
    ("worse", GateTerm::Verdict(Verdict::Worse)),
    ("same", GateTerm::Verdict(Verdict::Same)),
    ("unclear", GateTerm::Verdict(Verdict::Unclear)),
    ("missing", GateTerm::Missing),
];

impl FromStr for Gate {
    type Err = GateParseError;

    /// Reads `worse`, `worse:2%`, `unclear`, `missing`, or several with commas between.
    fn from_str(text: &str) -> Result<Self, GateParseError> {
        let refuse = |reason| GateParseError { text: text.into(), reason };
        let rules = text.split(',').map(|rule| GateRule::parse(rule.trim()).map_err(refuse));
        Ok(Gate { rules: rules.collect::<Result<_, _>>()?, counts_differing: false })
    }
}

/// As it is written: `worse:2%,missing`.
impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, rule) in self.rules.iter().enumerate() {
            if let GateTerm::KernelLog(kind) = rule.term {
                let comma = if index > 0 { "," } else { "" };
                write!(f, "{comma}{KERNEL_LOG}{}", kind.map_or(ANY, KernelTrouble::name))?;
                continue;
            }
            let term = GATE_TERMS.iter().find(|(_, term)| *term == rule.term).map_or("", |(word, _)| *word);
            write!(f, "{}{term}", if index > 0 { "," } else { "" })?;
            if rule.beyond > 0.0 {
                write!(f, ":{}", Ratio(rule.beyond))?;
            }
        }
        if self.counts_differing { f.write_str(" --fail-on-differs") } else { Ok(()) }
    }
}

fn parse_limit(text: &str) -> Result<f64, String> {
    Ratio::parse(text).map(|limit| limit.0).map_err(|error| error.to_string())
}

/// How conditions about the kernel's log begin.
const KERNEL_LOG: &str = "kernel-log:";

/// Any kind of trouble.
const ANY: &str = "any";

impl GateRule {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some(kind) = text.strip_prefix(KERNEL_LOG) {
            let found = if kind == ANY { Some(None) } else { KernelTrouble::from_name(kind).map(Some) };
            let kinds =
                || KernelTrouble::NAMES.iter().map(|(_, name, _)| *name).collect::<Vec<_>>().join(", ");
            let term = found
                .ok_or_else(|| format!("`{kind}` is no trouble of the kernel's log: any, {}", kinds()))?;
            return Ok(GateRule { term: GateTerm::KernelLog(term), beyond: 0.0 });
        }
        let (word, limit) = text.split_once(':').map_or((text, None), |(word, limit)| (word, Some(limit)));
        let found = GATE_TERMS.iter().find(|(known, _)| *known == word.trim());
        let Some((_, what)) = found else {
            let words: Vec<&str> =
                GATE_TERMS.iter().map(|(word, _)| *word).chain(["kernel-log:KIND"]).collect();
            return Err(format!("`{}` is none of {}", word.trim(), words.join(", ")));
        };
        let changes = matches!(what, GateTerm::Verdict(Verdict::Better | Verdict::Worse));
        match limit {
            None => Ok(GateRule { term: *what, beyond: 0.0 }),
            Some(limit) if changes => Ok(GateRule { term: *what, beyond: parse_limit(limit)? }),
            Some(_) => Err(format!("only better and worse take a size, `{word}` does not")),
        }
    }

    fn matches_row(&self, row: &VerdictRow, counts_differing: bool) -> bool {
        match self.term {
            GateTerm::KernelLog(_) => false,
            GateTerm::Missing => row.flags.contains(&RowFlag::OneSided),
            GateTerm::Verdict(verdict) => {
                // A change from a baseline of zero has no relative size, and is beyond any; so are failures and tails.
                let size = row.deciding_relative_change().map_or(f64::INFINITY, f64::abs);
                let has_no_size = matches!(row.basis, VerdictBasis::Failures | VerdictBasis::Tail);
                let beyond = self.beyond == 0.0 || has_no_size || size > self.beyond;
                let goes_that_way =
                    row.is_good_change().is_some_and(|good| good == (verdict == Verdict::Better));
                let is_change = matches!(verdict, Verdict::Better | Verdict::Worse);
                let differs = counts_differing
                    && is_change
                    && row.verdict_word() == Verdict::Differs.word()
                    && goes_that_way;
                (differs || row.verdict_word() == verdict.word()) && beyond
            }
        }
    }
}

impl Gate {
    /// The gate of whatever is worse, however little.
    #[must_use]
    pub fn worse() -> Self {
        let term = GateTerm::Verdict(Verdict::Worse);
        Gate { rules: vec![GateRule { term, beyond: 0.0 }], counts_differing: false }
    }

    /// Whether any of its conditions is about rows, which then need verdicts.
    #[must_use]
    pub fn judges_rows(&self) -> bool {
        self.counts_differing || self.rules.iter().any(|rule| !matches!(rule.term, GateTerm::KernelLog(_)))
    }

    /// Whether any of its conditions is about the kernel's log.
    #[must_use]
    pub fn reads_kernel_log(&self) -> bool {
        self.rules.iter().any(|rule| matches!(rule.term, GateTerm::KernelLog(_)))
    }

    /// Whether it does not accept a kind of trouble.
    #[must_use]
    pub fn refuses_trouble(&self, trouble: KernelTrouble) -> bool {
        let is_hit = |rule: &GateRule| match rule.term {
            GateTerm::KernelLog(kind) => kind.is_none_or(|kind| kind == trouble),
            _ => false,
        };
        self.rules.iter().any(is_hit)
    }

    /// The gate, for which what differs between two single runs is better or worse, whichever way it goes.
    #[must_use]
    pub fn counting_differing(self) -> Self {
        Gate { counts_differing: true, ..self }
    }
}

impl Comparison {
    /// The kinds of trouble in the kernel's log that a gate does not accept: those that a candidate has, and not the baseline.
    #[must_use]
    pub fn kernel_log_violations(&self, gate: &Gate) -> Vec<&KernelLogRow> {
        let troubles = self.kernel_log.iter().flat_map(|found| &found.troubles);
        let is_refused =
            |row: &&KernelLogRow| row.is_new() && row.trouble.is_some_and(|kind| gate.refuses_trouble(kind));
        troubles.filter(is_refused).collect()
    }

    /// The rows that a gate does not accept. Where the comparison has primary metrics, only they decide.
    #[must_use]
    pub fn violations(&self, gate: &Gate) -> Vec<&VerdictRow> {
        let has_primary = self.rows.iter().any(|row| row.primary);
        let decides = |row: &&VerdictRow| row.primary || !has_primary;
        let hit =
            |row: &&VerdictRow| gate.rules.iter().any(|rule| rule.matches_row(row, gate.counts_differing));
        self.rows.iter().filter(decides).filter(hit).collect()
    }
}
