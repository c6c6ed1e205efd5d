//! A metric over a parameter, one curve a run or level, with the law that fits it.

use perflab_analyze::{ScalingCurve, ScalingCurves};
use perflab_model::quantity::{format_digits, format_quantity, format_share};

use crate::chart::axis_unit::AxisUnit;
use crate::chart::curve_chart::{Curve, CurveChart, CurvePoint, CurveShape};
use crate::chart::look::AxisLook;
use crate::chart::panels::stack_panels;
use crate::chart::scene::Scene;
use crate::plot::panel::{MOST_PANELS, PlotLook, direction_text, value_unit};

/// Pixels of a panel, where no height is asked for.
const HEIGHT: f64 = 420.0;

/// Places at which a law is drawn.
const STEPS: u32 = 120;

/// Curves of the metrics over the parameter, one panel each.
#[must_use]
pub fn scaling_scene(all: &[ScalingCurves], over: &str, look: &PlotLook) -> Scene {
    let shown = all.get(..MOST_PANELS.min(all.len())).unwrap_or_default();
    let panel = |curves: &ScalingCurves, title: Option<String>| {
        let title = title.unwrap_or_else(|| format!("{}, {}", curves.subject, curves.metric));
        let names: Vec<String> = curves.curves.iter().map(|curve| curve.name.clone()).collect();
        let measured = curves.curves.iter().enumerate().map(|(group, curve)| measured_curve(group, curve));
        let laws =
            curves.curves.iter().enumerate().filter_map(|(group, curve)| law_curve(group, curve, &look.x));
        CurveChart {
            title,
            note: scaling_note(curves, over, look),
            x_title: over.to_owned(),
            x_unit: AxisUnit::Number,
            y_title: curves.metric.clone(),
            y_unit: value_unit(&curves.unit),
            from_zero: true,
            curves: laws.chain(measured).collect(),
            groups: names,
            bands: Vec::new(),
            look: look.panel(shown.len(), HEIGHT),
        }
        .render()
    };
    match shown {
        [only] => panel(only, look.title.clone()),
        several => stack_panels(look.title.as_deref(), several.iter().map(|one| panel(one, None)).collect()),
    }
}

fn measured_curve(group: usize, curve: &ScalingCurve) -> Curve {
    let has_bands = curve.points.iter().all(|point| point.interval.is_some());
    let points = curve.points.iter().map(|point| CurvePoint {
        x: point.n,
        y: point.median,
        band: point.interval.filter(|_| has_bands),
    });
    Curve { group, shape: CurveShape::Marked, parts: vec![points.collect()] }
}

/// The law from 1, or the first place that was measured, to the last; on the whole axis where its end is asked for.
fn law_curve(group: usize, curve: &ScalingCurve, axis: &AxisLook) -> Option<Curve> {
    let fit = curve.fit.as_ref()?.as_ref().ok()?;
    let (first, last) = (curve.points.first()?.n, curve.points.last()?.n);
    let (first, last) = (axis.low.unwrap_or(first).max(1.0), axis.high.unwrap_or(last).max(last));
    let place = |step: u32| {
        let share = f64::from(step) / f64::from(STEPS);
        let n = if axis.logarithmic {
            first * (last / first).powf(share)
        } else {
            first + share * (last - first)
        };
        CurvePoint { x: n, y: fit.throughput(n), band: None }
    };
    Some(Curve { group, shape: CurveShape::Dashed, parts: vec![(0..=STEPS).map(place).collect()] })
}

fn scaling_note(curves: &ScalingCurves, over: &str, look: &PlotLook) -> String {
    let has_bands =
        curves.curves.iter().flat_map(|curve| &curve.points).any(|point| point.interval.is_some());
    let band = match has_bands {
        true => format!("square: median; band: its {} interval", look.confidence_text()),
        false => "square: median, without an interval: too few values".to_owned(),
    };
    let fits: Vec<String> =
        curves.curves.iter().filter_map(|curve| fit_text(curve, &curves.unit.0, over)).collect();
    let fits = match fits.as_slice() {
        [] => String::new(),
        fits => format!(
            "; dashed: the law X(N) = gamma N / (1 + sigma (N-1) + kappa N (N-1)), fitted to the medians: {}",
            fits.join("; ")
        ),
    };
    format!("{band}{}{fits}", direction_text(curves.direction))
}

/// `old: gamma 89.9 ops/s, sigma 0.028, kappa 1.04e-4, most at threads = 97 (explains 98.96 %)`
fn fit_text(curve: &ScalingCurve, unit: &str, over: &str) -> Option<String> {
    let text = match curve.fit.as_ref()? {
        Err(reason) => format!("no fit ({reason})"),
        Ok(fit) => {
            let end = match (fit.peak(), fit.limit()) {
                (Some(peak), _) => format!(", most at {over} = {peak:.0}"),
                (None, Some(limit)) => format!(", at most {}", format_quantity(limit, unit)),
                (None, None) => String::new(),
            };
            let rate = format_quantity(fit.rate, unit);
            let (contention, coherency) = (format_digits(fit.contention), format_digits(fit.coherency));
            format!(
                "gamma {rate}, sigma {contention}, kappa {coherency}{end} (explains {})",
                format_share(fit.explained)
            )
        }
    };
    Some(format!("{}: {text}", curve.name))
}
