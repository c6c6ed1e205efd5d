//! How numbers came about, as values: whoever shows a result has the sentences.

use crate::compare::change::ShiftEstimator;

/// One thing to know of how a result was computed, or of what it leaves out.
#[derive(Debug, Clone, PartialEq)]
pub enum MethodDescription {
    /// Levels of a run that was looked at after every block: the pseudo-median, with a confidence sequence.
    AlwaysValid,
    /// Rows whose change comes from an estimator.
    ChangeBy {
        /// Which one.
        estimator: ShiftEstimator,
        /// Whether these are all rows.
        all: bool,
        /// Whether some of them are paired.
        of_pairs: bool,
    },
    /// Rows whose medians lie further apart than their change says, or less far: of skewed values the typical difference is another.
    MediansApart {
        /// How many.
        rows: usize,
    },
    /// Rows with few pairs of machines: Student's t on the differences of their medians.
    MachinePairMeans,
    /// Rows with few boots or runs: Student's or Welch's t on their medians.
    BootMeans,
    /// Rows with two or three boots or runs a side whose spread earlier runs agree with.
    PooledNoise {
        /// Pairs of earlier runs, in the row that has fewest.
        pairs: usize,
        /// Whether, in some row, these are runs of the machine's noise card.
        from_card: bool,
    },
    /// Rows whose boots or runs are of unequal size: means by a model of random effects.
    RandomEffects,
    /// Rows of metrics that are assumed exact: any difference is a change.
    ExactValues,
    /// Warm-up iterations that were found are left out.
    WarmUpLeftOut {
        /// How many values, over all sides.
        values: usize,
    },
    /// Rows with one run a side that were not interleaved.
    OneRunASide {
        /// The interval is up to so many times as wide as that of independent iterations.
        widened: f64,
        /// They are levels of one run that were measured one after the other.
        in_turn: bool,
        /// Pairs of earlier runs that say how much runs differ, in the row that has fewest; 0 where too few are known.
        earlier_pairs: usize,
        /// Whether, in some row, these are runs of the machine's noise card.
        from_card: bool,
        /// Whether other tools measured all runs.
        imported: bool,
    },
    /// What makes a verdict.
    VerdictRule {
        /// Confidence of the interval of a *same*, such as 0.9.
        narrow_confidence: f64,
        /// Confidence of the interval of a *better* or *worse*, such as 0.95.
        confidence: f64,
    },
    /// What rows that are the same could not have seen.
    UnseenTail {
        /// Bad iterations that are rarer than this share.
        share: f64,
        /// Values of the candidate, in the row that has fewest.
        values: usize,
    },
    /// Benjamini and Hochberg's adjustment, each family by itself.
    FalseDiscoveryRate {
        /// Primary rows.
        primary: usize,
        /// Explanatory rows.
        explanatory: usize,
    },
    /// The sides have one level each of a factor.
    ComparedFactor {
        /// The factor.
        factor: String,
        /// Each side with its level; absent where it did not vary the factor.
        levels: Vec<(String, Option<String>)>,
    },
    /// Columns of a monitor without rows: the kernel averages them over longer than an iteration lasts.
    KernelAverages {
        /// The columns.
        columns: Vec<String>,
    },
    /// What the noise floor of a slab cache is.
    SlabNoiseFloor,
    /// What a history's values, steps and changes are.
    HistorySteps,
    /// A case of a history was edited and is a series of its own since.
    EditedCase {
        /// The case.
        subject: String,
        /// Id of the first run with the edited case.
        run: String,
        /// What differs, as `key: before -> after`.
        differences: Vec<String>,
    },
    /// Series too short to look for steps.
    ShortSeries {
        /// How many.
        series: usize,
        /// The fewest runs that it takes.
        fewest_runs: usize,
    },
    /// Runs that cannot be read, and are left out of a history.
    UnreadableRuns {
        /// They.
        runs: Vec<UnreadableRun>,
    },
    /// Series in which the runs of a day share its luck.
    DaysAsLevel {
        /// How many.
        series: usize,
    },
    /// When the newest run of a history alarms.
    GuardRule {
        /// Confidence of the prediction interval.
        confidence: f64,
        /// A step among so many newest runs alarms.
        recent_runs: usize,
    },
    /// What effects and interactions of two factors are.
    EffectContrasts,
    /// Effects that were compared within blocks, boots or machines.
    EffectsWithinBlocks,
    /// Effects that were compared within two to five machines.
    EffectsWithinMachines,
    /// Effects that were compared by means.
    EffectsByMeans,
    /// Effects whose cells were measured in different boots, which do not repeat.
    EffectsWithoutBoots,
}

/// A run that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRun {
    /// The shortest prefix that names it in its archive.
    pub run: String,
    /// Why.
    pub reason: String,
}
