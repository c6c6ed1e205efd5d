//! A metric over a parameter that is a number, one curve a side or level, and the law that fits it.

use indexmap::IndexMap;
use perflab_model::{Direction, Unit};
use perflab_stats::{ScalingFit, ScalingLaw, StatsError, fit_scaling_law};

use crate::error::AnalyzeError;
use crate::sample_lines::{MetricLines, SampleLine};

/// What was measured at one value of the parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalingPoint {
    /// The parameter.
    pub n: f64,
    /// The median, in the metric's unit.
    pub median: f64,
    /// Its interval; none where there are too few values.
    pub interval: Option<(f64, f64)>,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct ScalingCurve {
    /// A side's name, a level, or both.
    pub name: String,
    /// Ascending in the parameter.
    pub points: Vec<ScalingPoint>,
    /// The law through the medians, where one was asked for, or why there is none.
    pub fit: Option<Result<ScalingFit, StatsError>>,
}

/// The curves of a metric in a case, but for the parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct ScalingCurves {
    /// The case without the parameter and what tells curves apart.
    pub subject: String,
    /// The metric's name.
    pub metric: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Which way is good.
    pub direction: Direction,
    /// In the order of sides and levels.
    pub curves: Vec<ScalingCurve>,
}

/// The metrics over a parameter. A law is fitted to the medians, each with the same weight, and needs a metric of which more is better.
///
/// # Errors
/// A parameter that no case varies, naming those that do; a value of it that is no number; a law for a metric that is no rate.
pub fn scaling_curves(
    metrics: &[MetricLines],
    over: &str,
    law: Option<ScalingLaw>,
    confidence: f64,
) -> Result<Vec<ScalingCurves>, AnalyzeError> {
    let mut found: IndexMap<(String, &str, &Unit), ScalingCurves> = IndexMap::new();
    for metric in metrics {
        let Some((_, value)) = metric.point.iter().find(|(name, _)| name == over) else { continue };
        let n = value.parse::<f64>().ok().filter(|n| n.is_finite());
        let n = n.ok_or_else(|| AnalyzeError::NoNumber { key: over.to_owned(), value: value.clone() })?;
        let subject = metric.subject.replacen(&format!(" {over}={value}"), "", 1);
        let curves =
            found.entry((subject.clone(), &metric.metric, &metric.unit)).or_insert_with(|| ScalingCurves {
                subject,
                metric: metric.metric.clone(),
                unit: metric.unit.clone(),
                direction: metric.direction,
                curves: Vec::new(),
            });
        for line in &metric.lines {
            let Some(point) = scaling_point(n, line, confidence) else { continue };
            match curves.curves.iter_mut().find(|curve| curve.name == line.name) {
                Some(curve) => curve.points.push(point),
                None => curves.curves.push(ScalingCurve {
                    name: line.name.clone(),
                    points: vec![point],
                    fit: None,
                }),
            }
        }
    }
    if found.is_empty() {
        let keys = metrics.iter().flat_map(|metric| metric.point.iter().map(|(name, _)| name.clone()));
        let known: indexmap::IndexSet<String> = keys.collect();
        return Err(AnalyzeError::UnknownConditionKey {
            key: over.to_owned(),
            known: known.into_iter().collect(),
        });
    }
    let mut found: Vec<ScalingCurves> = found.into_values().collect();
    for curves in &mut found {
        if law.is_some() && curves.direction != Direction::Higher {
            return Err(AnalyzeError::NoRate {
                metric: curves.metric.clone(),
                unit: curves.unit.to_string(),
            });
        }
        for curve in &mut curves.curves {
            curve.points.sort_by(|one, other| one.n.total_cmp(&other.n));
            let points: Vec<(f64, f64)> = curve.points.iter().map(|point| (point.n, point.median)).collect();
            curve.fit = law.map(|law| fit_scaling_law(&points, law));
        }
    }
    Ok(found)
}

fn scaling_point(n: f64, line: &SampleLine, confidence: f64) -> Option<ScalingPoint> {
    let found = line.median(confidence).ok()?;
    let interval = found.interval.map(|ends| (ends.low, ends.high));
    Some(ScalingPoint { n, median: found.value, interval })
}

#[cfg(test)]
mod tests {
    use perflab_model::Nanos;

    use super::*;
    use crate::compare::comparison::SamplePoint;

    fn metric(threads: &str, rate: f64, direction: Direction) -> MetricLines {
        let point = |iteration: u32| SamplePoint {
            value: rate * (1.0 + f64::from(iteration) * 1e-3),
            at: Nanos(0),
            run: 0,
            boot: 0,
            iteration,
        };
        let line = |name: &str| SampleLine {
            name: name.into(),
            points: (0..8).map(point).collect(),
            machines: Default::default(),
        };
        MetricLines {
            subject: format!("sweep threads={threads}"),
            point: vec![("threads".into(), threads.into())],
            metric: "rate".into(),
            unit: Unit::new("ops/s"),
            direction,
            primary: true,
            lines: vec![line("old"), line("new")],
        }
    }

    fn amdahl_metrics(direction: Direction) -> Vec<MetricLines> {
        let rate = |n: f64| 100.0 * n / (1.0 + 0.1 * (n - 1.0));
        ["8", "1", "2", "16", "4"].map(|n| metric(n, rate(n.parse().unwrap()), direction)).to_vec()
    }

    #[test]
    fn curves_ascend_and_are_fitted() {
        let metrics = amdahl_metrics(Direction::Higher);
        let found = scaling_curves(&metrics, "threads", Some(ScalingLaw::Universal), 0.95).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].subject.as_str(), found[0].curves.len()), ("sweep", 2));
        let curve = &found[0].curves[0];
        assert_eq!(curve.points.iter().map(|point| point.n).collect::<Vec<_>>(), [1.0, 2.0, 4.0, 8.0, 16.0]);
        let fit = curve.fit.clone().unwrap().unwrap();
        assert!((fit.contention - 0.1).abs() < 1e-6 && fit.coherency < 1e-9, "{fit:?}");
        assert!(curve.points.iter().all(|point| point.interval.is_some()));
    }

    #[test]
    fn what_has_no_curve_is_refused() {
        let metrics = amdahl_metrics(Direction::Lower);
        let curves = |over: &str, law| scaling_curves(&metrics, over, law, 0.95);
        assert!(matches!(curves("threads", Some(ScalingLaw::Amdahl)), Err(AnalyzeError::NoRate { .. })));
        let unknown = curves("size", None).unwrap_err();
        assert!(matches!(unknown, AnalyzeError::UnknownConditionKey { known, .. } if known == ["threads"]));
        let texts = [metric("many", 1.0, Direction::Higher)];
        let refused = scaling_curves(&texts, "threads", None, 0.95);
        assert!(matches!(refused, Err(AnalyzeError::NoNumber { .. })));
        // Two points have no law, and say so.
        let few = &amdahl_metrics(Direction::Higher)[..2];
        let found = scaling_curves(few, "threads", Some(ScalingLaw::Amdahl), 0.95).unwrap();
        assert!(matches!(found[0].curves[0].fit, Some(Err(StatsError::TooFew { needed: 3, got: 2 }))));
    }
}
