//! Every kind of fact, declared once: its unit, whether it varies by itself, how often it explains a change, and what is
//! good to measure on. Collectors, comparisons, checks and tables read it here.

use crate::Scalar;

/// What is known of a kind of fact before it is read.
#[derive(Debug, Clone, Copy)]
pub struct FactSpec {
    /// A key, or how the keys of a kind begin; of those that fit a key the longest counts.
    pub key: &'static str,
    /// What its numbers are.
    pub unit: FactUnit,
    /// Whether it varies by itself.
    pub volatility: FactVolatility,
    /// How often its difference explains a change.
    pub weight: FactWeight,
    /// What is good to measure on, where it is judged.
    pub good: Option<GoodFact>,
}

/// What the numbers of a fact are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactUnit {
    /// a text, a switch or a bare number
    Plain,
    /// bytes
    Bytes,
}

/// Whether a fact varies by itself from run to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactVolatility {
    /// it holds until somebody changes it
    Holds,
    /// it varies by itself, or is of the run itself
    Varies,
}

/// How likely a difference in a fact explains a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactWeight {
    /// It often does: rows are flagged.
    Often,
    /// It changes by itself from run to run, and does where it changed a lot.
    WhenLarge,
    /// It says when, where or from what a run was made, and hardly ever does.
    Hardly,
}

/// Which values of a fact are good to measure on.
#[derive(Debug, Clone, Copy)]
pub struct GoodFact {
    /// The good ones.
    pub values: GoodValues,
    /// What would be better than a bad one.
    pub better: &'static str,
    /// What a bad one does.
    pub why: &'static str,
}

/// Values that are good.
#[derive(Debug, Clone, Copy)]
pub enum GoodValues {
    /// these texts
    OneOf(&'static [&'static str]),
    /// all but this text
    AllBut(&'static str),
    /// numbers up to this
    AtMost(f64),
}

impl GoodFact {
    /// Whether the value is one of the good ones; one that is not judged is.
    pub fn holds_for(&self, value: &Scalar) -> bool {
        match self.values {
            GoodValues::OneOf(good) => good.contains(&value.to_string().as_str()),
            GoodValues::AllBut(bad) => value.to_string() != bad,
            GoodValues::AtMost(most) => value.as_number().is_none_or(|number| number <= most),
        }
    }
}

const fn fact(key: &'static str) -> FactSpec {
    let (unit, volatility) = (FactUnit::Plain, FactVolatility::Holds);
    FactSpec { key, unit, volatility, weight: FactWeight::Often, good: None }
}

impl FactSpec {
    const fn in_bytes(self) -> Self {
        FactSpec { unit: FactUnit::Bytes, ..self }
    }

    const fn varies(self) -> Self {
        FactSpec { volatility: FactVolatility::Varies, ..self }
    }

    const fn weighing(self, weight: FactWeight) -> Self {
        FactSpec { weight, ..self }
    }

    const fn good(self, values: GoodValues, better: &'static str, why: &'static str) -> Self {
        FactSpec { good: Some(GoodFact { values, better, why }), ..self }
    }

    const fn hardly(self) -> Self {
        self.weighing(FactWeight::Hardly)
    }

    const fn when_large(self) -> Self {
        self.weighing(FactWeight::WhenLarge)
    }
}

/// All kinds, the likeliest cause of a change first; those of one group rank alike. The last is whatever has no row: facts of
/// imports and of older versions.
const FACT_GROUPS: &[&[FactSpec]] = &[
    &[fact("kernel.release")],
    &[fact("kernel.cmdline")],
    &[fact("mitigations.")],
    &[fact("cpu.model")],
    &[fact("cpu.microcode")],
    &[
        fact("cpu."),
        fact("cpu.cache.").in_bytes(),
        fact("cpu.governor").good(
            GoodValues::OneOf(&["performance"]),
            "performance",
            "the clock follows the load, so the first iterations are slower",
        ),
    ],
    &[
        fact("hypervisor."),
        fact("hypervisor.present").good(
            GoodValues::AllBut("true"),
            "bare metal",
            "neighbours and steal time are part of what is measured",
        ),
    ],
    &[
        fact("kernel."),
        fact("kernel.config.KASAN").good(
            GoodValues::AllBut("y"),
            "n",
            "a debug kernel: its costs are not those of a production kernel",
        ),
        fact("kernel.tainted").good(
            GoodValues::AtMost(0.0),
            "0",
            "out-of-tree modules or warnings: this is not a clean kernel",
        ),
    ],
    &[fact("thp.")],
    &[fact("numa.")],
    &[fact("memory.").in_bytes(), fact("memory.huge_pages"), fact("memory.ksm"), fact("memory.zswap")],
    &[fact("cgroup.")],
    &[fact("sysctl.")],
    &[fact("reclaim.")],
    &[
        fact("clocksource"),
        fact("clocksource.current").good(
            GoodValues::OneOf(&["tsc", "kvm-clock", "arch_sys_counter"]),
            "tsc",
            "reading the clock takes a slow system call",
        ),
    ],
    &[fact("distribution.")],
    // Other processes mount and unmount, and loop devices come and go.
    &[fact("disk."), fact("disk.mount./.")],
    &[fact("job.")],
    &[
        fact("load.").varies().when_large(),
        fact("load.1").varies().when_large().good(
            GoodValues::AtMost(0.5),
            "below 0.5",
            "something else is running",
        ),
        fact("load.15").varies().when_large(),
        fact("load.steal_percent").varies().when_large().good(
            GoodValues::AtMost(0.1),
            "below 0.1",
            "the hypervisor gives CPU time of this machine to others",
        ),
    ],
    &[fact("memory.available").in_bytes().varies().when_large()],
    &[fact("").hardly(), fact("uptime").varies().hardly(), fact("time.").varies().hardly()],
    &[fact("disk.free.").in_bytes().varies().hardly()],
    &[fact("disk.loop").hardly()],
    &[fact("disk.mount.").hardly()],
    &[fact("kernel.config.sha256").hardly()],
    &[fact("job.run").hardly()],
    &[fact("import.").varies().hardly()],
];

/// Whatever has no row.
const UNKNOWN: FactSpec = fact("").hardly();

/// How many ranks there are.
pub const FACT_RANKS: usize = FACT_GROUPS.len();

/// All kinds of facts, the likeliest cause of a change first.
pub fn all_fact_specs() -> impl Iterator<Item = &'static FactSpec> {
    FACT_GROUPS.iter().copied().flatten()
}

/// What is declared of a key, and its rank among causes: 0 is the likeliest.
pub fn ranked_fact_spec(key: &str) -> (&'static FactSpec, usize) {
    let rows = FACT_GROUPS.iter().zip(0..).flat_map(|(group, rank)| group.iter().map(move |row| (row, rank)));
    let fits = rows.filter(|(row, _)| key.starts_with(row.key));
    fits.max_by_key(|(row, _)| row.key.len()).unwrap_or((&UNKNOWN, FACT_RANKS))
}

/// What is declared of a key.
pub fn fact_spec(key: &str) -> &'static FactSpec {
    ranked_fact_spec(key).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_row_counts_and_whatever_has_none_is_read() {
        assert_eq!(fact_spec("load.1").key, "load.1");
        assert_eq!(fact_spec("load.15").key, "load.15");
        assert_eq!(fact_spec("memory.total").unit, FactUnit::Bytes);
        assert_eq!(fact_spec("memory.huge_pages").unit, FactUnit::Plain);
        assert_eq!(fact_spec("disk.mount./.options").weight, FactWeight::Often);
        assert_eq!(fact_spec("disk.mount./home.options").weight, FactWeight::Hardly);
        assert_eq!(fact_spec("unheard.of").weight, FactWeight::Hardly);
        assert!(ranked_fact_spec("kernel.release").1 < ranked_fact_spec("kernel.config.HZ").1);
        let mut keys: Vec<&str> = all_fact_specs().map(|spec| spec.key).collect();
        keys.sort_unstable();
        let all = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), all, "a row stands twice");
    }

    #[test]
    fn values_are_judged_where_good_ones_are_declared() {
        let judge = |key: &str, value: Scalar| fact_spec(key).good.map(|good| good.holds_for(&value));
        assert_eq!(judge("cpu.governor", "powersave".into()), Some(false));
        assert_eq!(judge("load.1", Scalar::Float(0.4)), Some(true));
        assert_eq!(judge("load.1", Scalar::Float(0.6)), Some(false));
        assert_eq!(judge("hypervisor.present", Scalar::Bool(true)), Some(false));
        assert_eq!(judge("kernel.tainted", Scalar::Int(1)), Some(false));
        assert_eq!(judge("kernel.config.KASAN", "y".into()), Some(false));
        assert_eq!(judge("cpu.model", "x".into()), None);
    }
}
