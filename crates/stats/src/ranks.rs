//! Owns ranking with ties. It refuses to break ties: equal values share the mean of their ranks (midranks).

/// The ranks of some values, and which of them are tied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MidRanks {
    /// Twice the midrank of each value, in the order of the values: an integer even where ranks are shared,
    /// so that sums of ranks stay exact. The smallest value has rank 1.
    pub(crate) doubled: Vec<usize>,
    /// Σ (t³ - t) over the groups of t equal values; 0 when there are no ties.
    pub(crate) tie_term: f64,
}

impl MidRanks {
    /// Ranks finite values.
    pub(crate) fn from_values(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
        let mut ranking = Self { doubled: vec![0; values.len()], tie_term: 0.0 };
        let mut before = 0;
        for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
            ranking.share_ranks(group, before);
            before += group.len();
        }
        ranking
    }

    /// Gives each member of a group of equal values the mean of the ranks before+1 ..= before+len, doubled.
    fn share_ranks(&mut self, group: &[usize], before: usize) {
        for index in group {
            self.doubled[*index] = 2 * before + group.len() + 1;
        }
        let size = group.len() as f64;
        self.tie_term += size.powi(3) - size;
    }

    /// Whether any two values are equal.
    pub(crate) fn has_ties(&self) -> bool {
        self.tie_term > 0.0
    }

    /// The midranks themselves.
    pub(crate) fn midranks(&self) -> Vec<f64> {
        self.doubled.iter().map(|doubled| *doubled as f64 / 2.0).collect()
    }
}
