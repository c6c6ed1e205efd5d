//! Owns why there is no answer about slabs at all. It refuses what concerns single rows: those are counted and flagged.

use perflab_stats::StatsError;

use crate::AnalyzeError;

/// Why slabs cannot be analysed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SlabError {
    /// The run has no rows of the kind that the question is about.
    #[error("no rows of `{monitor}` in this run: {hint}")]
    NoRows {
        /// The monitor.
        monitor: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// Nothing says how large a page is.
    #[error(
        "page size unknown: neither a `page_size` of `slab-caches` nor the fact `memory.page_size` is there"
    )]
    NoPageSize,
    /// Scans of one run disagree.
    #[error("mixed page sizes in one run: {}", list_sizes(sizes))]
    MixedPageSizes {
        /// All of them, bytes.
        sizes: Vec<u64>,
    },
    /// No cache of that name.
    #[error("no cache `{name}`{}", suggest_names(near))]
    UnknownCache {
        /// What was asked for.
        name: String,
        /// Names like it.
        near: Vec<String>,
    },
    /// A layout that cannot be.
    #[error("{what}")]
    Layout {
        /// Why not.
        what: String,
    },
    /// What stands in the way of a comparison.
    #[error(transparent)]
    Compare(#[from] AnalyzeError),
    /// A statistic without an answer.
    #[error("{subject}: {source}")]
    Statistic {
        /// Of what.
        subject: String,
        /// Why.
        source: StatsError,
    },
}

fn list_sizes(sizes: &[u64]) -> String {
    sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

fn suggest_names(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}
