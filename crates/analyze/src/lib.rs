//! What runs mean: comparisons, verdicts and warnings.
