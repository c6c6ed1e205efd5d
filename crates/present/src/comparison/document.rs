//! A comparison as JSON, its diagnostics with their texts.

use perflab_analyze::slab::{CacheChange, SlabComparison};
use perflab_analyze::{Comparison, ComparisonDiagnostic};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;

use crate::diagnostics::{are_runs_imported, diagnostic_advice, diagnostic_message, noise_card_doubts};
use crate::method_text::describe_methods;

/// The JSON Schema of a comparison as JSON.
#[must_use]
pub fn comparison_schema() -> serde_json::Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.into_root_schema_for::<ComparisonDocument<'_>>().to_value()
}

/// What `perflab compare --format json` prints: a comparison with its warnings and methods as texts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComparisonDocument<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    /// What to be careful about.
    warnings: Vec<DiagnosticDocument<'a>>,
    /// How the numbers came about.
    notes: Vec<String>,
}

/// A warning with its texts.
#[derive(Debug, Serialize, JsonSchema)]
struct DiagnosticDocument<'a> {
    #[serde(flatten)]
    diagnostic: &'a ComparisonDiagnostic,
    /// Why a noise card may not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    doubts: Option<Vec<String>>,
    /// What was found.
    message: String,
    /// What to do about it.
    advice: &'static str,
}

impl<'a> ComparisonDocument<'a> {
    /// The comparison with the texts of its diagnostics and methods.
    #[must_use]
    pub fn new(comparison: &'a Comparison) -> Self {
        let imported = are_runs_imported(comparison);
        let document = |diagnostic: &'a ComparisonDiagnostic| DiagnosticDocument {
            doubts: match diagnostic {
                ComparisonDiagnostic::OldNoiseCard { doubts } => Some(noise_card_doubts(doubts)),
                _ => None,
            },
            message: diagnostic_message(diagnostic),
            advice: diagnostic_advice(diagnostic, imported),
            diagnostic,
        };
        ComparisonDocument {
            comparison,
            warnings: comparison.warnings.iter().map(document).collect(),
            notes: describe_methods(&comparison.notes),
        }
    }
}

/// Caches side by side, for programs that do not have our texts.
#[derive(Debug, Serialize)]
pub struct SlabComparisonDocument<'a> {
    whole_runs: bool,
    caches: &'a [CacheChange],
    mean: ComparisonDocument<'a>,
}

impl<'a> SlabComparisonDocument<'a> {
    /// The caches with the texts of their comparison.
    #[must_use]
    pub fn new(found: &'a SlabComparison) -> Self {
        let SlabComparison { whole_runs, caches, mean } = found;
        SlabComparisonDocument { whole_runs: *whole_runs, caches, mean: ComparisonDocument::new(mean) }
    }
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::{RunBuilder, primary_metric};
    use perflab_analyze::compare::diagnostic::NoiseCardDoubt;
    use perflab_analyze::{AnalysisOptions, ComparisonSide, compare_sides};
    use perflab_model::Direction;

    use super::*;

    #[test]
    fn diagnostics_have_their_texts_and_keep_their_keys() {
        let side = |name: &str| {
            let lab = RunBuilder::new(name)
                .with(|lab| lab.metrics = vec![primary_metric("time", "s", Direction::Lower)]);
            ComparisonSide { name: name.into(), runs: vec![lab.build_run(|_| Some(1.0))] }
        };
        let mut found = compare_sides(&side("a"), &[side("b")], &AnalysisOptions::default()).unwrap();
        let card = |days| vec![NoiseCardDoubt::Age { days }];
        found.warnings = vec![
            ComparisonDiagnostic::NotInterleaved { baseline: "a".into(), candidate: "b".into() },
            ComparisonDiagnostic::OldNoiseCard { doubts: card(40) },
        ];
        let json = serde_json::to_value(ComparisonDocument::new(&found)).unwrap();
        assert_eq!((json["format"].as_u64(), json["rows"].as_array().map(Vec::len)), (Some(1), Some(1)));
        insta::assert_snapshot!(serde_json::to_string_pretty(&[&json["warnings"], &json["notes"]]).unwrap());
    }
}
