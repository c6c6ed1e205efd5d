//! What every chart over two axes has: scales, ticks, grid, title, legend, and bands with the names of phases.
//!
//! Ticks are 1, 2 or 5 times a power of ten, as few as fit; on a logarithmic axis of bytes or bare numbers they are powers of two. Charts of bytes
//! that add up have no logarithmic axes: they need a zero.

use crate::chart::axis_unit::AxisUnit;
use crate::chart::look::{AxisLook, ChartLook};
use crate::chart::palette::RgbColour;
use crate::chart::scene::{
    MarkInk, Scene, SceneMark, TEXT, TextAnchor, faint_text, line_mark, rect_mark, text_mark, title_text,
};
use crate::chart::typeface;

/// A range of the horizontal axis that has a name: a phase of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisBand {
    /// where it begins
    pub from: f64,
    /// where it ends; infinite where it goes on
    pub to: f64,
    /// `iteration 0`
    pub name: String,
}

const WIDTH: f64 = 900.0;

const HEIGHT: f64 = 440.0;

const LEFT: f64 = 64.0;

const TOP: f64 = 76.0;

const BOTTOM: f64 = 48.0;

const LEGEND: f64 = 190.0;

/// Pixels from one of its names to the next.
const LEGEND_LINE: f64 = 20.0;

/// The place between the axes, and the marks so far.
#[derive(Debug)]
pub(crate) struct ChartFrame {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) marks: Vec<SceneMark>,
    description: String,
    size: (f64, f64),
}

impl ChartFrame {
    /// A frame with its title and, below it, one line that explains; room for a legend where there is one.
    pub(crate) fn new(heading: &str, note: &str, legend: bool) -> Self {
        let right = WIDTH - if legend { LEGEND } else { 24.0 };
        let heading_text = typeface::shorten_to_width(heading, crate::chart::scene::TITLE, WIDTH - 32.0);
        let marks = vec![
            title_text(16.0, 26.0, heading_text),
            faint_text(16.0, 46.0, TextAnchor::Start, typeface::shorten_to_width(note, TEXT, WIDTH - 32.0)),
        ];
        let description = format!("{heading}. {note}").trim_end().to_owned();
        let size = (WIDTH, HEIGHT);
        ChartFrame { left: LEFT, right, top: TOP, bottom: HEIGHT - BOTTOM, marks, description, size }
    }

    /// A frame of the size that is asked for: the title, the note broken into lines, and the legend, which stands above the chart
    /// where that is narrow. One name alone needs no legend.
    pub(crate) fn fitting(heading: &str, note: &str, legend: &[(RgbColour, &str)], look: &ChartLook) -> Self {
        let room = look.width - 32.0;
        let heading_text = typeface::shorten_to_width(heading, crate::chart::scene::TITLE, room);
        let mut marks = vec![title_text(16.0, 26.0, heading_text)];
        let mut y = 28.0;
        for line in typeface::break_into_lines(note, TEXT, room) {
            y += LINE;
            marks.push(faint_text(16.0, y, TextAnchor::Start, line));
        }
        let legend = if legend.len() > 1 { legend } else { &[] };
        let beside = !legend.is_empty() && !look.is_narrow();
        let widest = legend.iter().map(|(_, name)| typeface::text_width(name, TEXT)).fold(0.0, f64::max);
        let right = look.width - if beside { (widest + 52.0).min(LEGEND) } else { 20.0 };
        if !legend.is_empty() && !beside {
            y = push_legend_lines(&mut marks, legend, y + LINE + 2.0, look.width);
        }
        let description = format!("{heading}. {note}").trim_end().to_owned();
        let (top, bottom) = (y + 30.0, (look.height - BOTTOM).max(y + 60.0));
        let size = (look.width, look.height.max(bottom + BOTTOM));
        let mut frame = ChartFrame { left: LEFT, right, top, bottom, marks, description, size };
        if beside {
            frame.add_legend(legend.iter().copied());
        }
        frame
    }

    /// Puts the left edge where the labels of the vertical axis leave room, and no more.
    pub(crate) fn make_room_for_labels(&mut self, y: &ChartAxis) {
        let widest = y.ticks().iter().map(|(_, label)| typeface::text_width(label, TEXT)).fold(0.0, f64::max);
        self.left = (widest + 20.0).max(28.0);
    }

    /// Begins the axes further down; a picture that would have no room for them is higher.
    pub(crate) fn make_room_above(&mut self, pixels: f64) {
        self.top += pixels;
        self.bottom = self.bottom.max(self.top + 40.0);
        self.size.1 = self.size.1.max(self.bottom + BOTTOM);
    }

    /// What is asked of ticks: as many as have room.
    pub(crate) fn ticks_across(&self) -> usize {
        ((self.right - self.left) / 90.0).clamp(2.0, 10.0) as usize
    }

    /// The same up the vertical axis.
    pub(crate) fn ticks_up(&self) -> usize {
        ((self.bottom - self.top) / 44.0).clamp(2.0, 8.0) as usize
    }

    /// Whether a place is between the axes.
    pub(crate) fn holds(&self, x: f64, y: f64) -> bool {
        (self.left - 0.5..=self.right + 0.5).contains(&x) && (self.top - 0.5..=self.bottom + 0.5).contains(&y)
    }

    /// Pixels of the horizontal axis.
    pub(crate) fn horizontal_pixels(&self) -> (f64, f64) {
        (self.left, self.right)
    }

    /// Pixels of the vertical axis, its low end first.
    pub(crate) fn vertical_pixels(&self) -> (f64, f64) {
        (self.bottom, self.top)
    }

    /// Grid and ticks of both axes; drawn before the data, so that it lies below.
    pub(crate) fn add_axes(&mut self, x: &ChartAxis, y: &ChartAxis, x_name: &str) {
        let mut labelled = f64::INFINITY;
        for (place, label) in y.ticks() {
            self.marks.push(line_mark((self.left, place), (self.right, place), MarkInk::Grid, false));
            // Ticks of a logarithmic axis may be too near one another for their labels.
            if (labelled - place).abs() >= TEXT {
                self.marks.push(faint_text(self.left - 8.0, place + 4.0, TextAnchor::End, label));
                labelled = place;
            }
        }
        for (place, label) in x.ticks_apart(self.size.0) {
            self.marks.push(line_mark(
                (place, self.bottom),
                (place, self.bottom + 4.0),
                MarkInk::Faint,
                false,
            ));
            self.marks.push(faint_text(place, self.bottom + 18.0, TextAnchor::Middle, label));
        }
        self.marks.push(line_mark(
            (self.left, self.bottom),
            (self.right, self.bottom),
            MarkInk::Faint,
            false,
        ));
        // A short unit stands above its numbers; a long one would begin beyond the edge.
        let fits = typeface::text_width(&y.name, TEXT) < self.left - 12.0;
        let (place, anchor) =
            if fits { (self.left - 8.0, TextAnchor::End) } else { (4.0, TextAnchor::Start) };
        self.marks.push(faint_text(place, self.top - 10.0, anchor, y.name.as_str()));
        let middle = (self.left + self.right) / 2.0;
        self.marks.push(faint_text(middle, self.bottom + 38.0, TextAnchor::Middle, x_name));
    }

    /// One axis below rows: a rule up from every tick.
    pub(crate) fn add_value_axis(&mut self, x: &ChartAxis, name: &str) {
        for (place, label) in x.ticks_apart(self.size.0) {
            self.marks.push(line_mark((place, self.top), (place, self.bottom), MarkInk::Grid, false));
            self.marks.push(faint_text(place, self.bottom + 16.0, TextAnchor::Middle, label));
        }
        let rule = line_mark((self.left, self.bottom), (self.right, self.bottom), MarkInk::Faint, false);
        self.marks.push(rule);
        let middle = (self.left + self.right) / 2.0;
        self.marks.push(faint_text(middle, self.bottom + 36.0, TextAnchor::Middle, name));
    }

    /// Phases: a dashed line at each beginning, its name above where there is room.
    pub(crate) fn add_bands(&mut self, x: &ChartAxis, spans: &[AxisBand]) {
        for span in spans {
            let (from, to) = (x.pixel_of(span.from), x.pixel_of(span.to));
            self.marks.push(line_mark((from, self.top), (from, self.bottom), MarkInk::Faint, true));
            let name = typeface::shorten_to_width(&span.name, TEXT, to - from - 8.0);
            if name.chars().count() > 2 {
                self.marks.push(faint_text(from + 4.0, self.top - 10.0, TextAnchor::Start, name));
            }
        }
        // One that goes on beyond the picture has no end in it.
        if let Some(last) = spans.last().filter(|last| last.to.is_finite()) {
            let to = x.pixel_of(last.to);
            self.marks.push(line_mark((to, self.top), (to, self.bottom), MarkInk::Faint, true));
        }
    }

    /// Names beside their colours, from the top.
    pub(crate) fn add_legend<'a>(&mut self, entries: impl Iterator<Item = (RgbColour, &'a str)>) {
        let x = self.right + 18.0;
        let (colours, names): (Vec<RgbColour>, Vec<&str>) = entries.unzip();
        let room = ((self.bottom - self.top - 8.0) / LEGEND_LINE).max(0.0) as usize + 1;
        // The last line says how many have none.
        let shown = if names.len() > room { room - 1 } else { names.len() };
        let line = |index: usize| self.top + 8.0 + LEGEND_LINE * index as f64;
        let short = typeface::shorten_apart(&names, TEXT, LEGEND - 44.0);
        let mut marks = Vec::new();
        for (index, (colour, name)) in colours.into_iter().zip(short).take(shown).enumerate() {
            let y = line(index);
            marks.push(rect_mark((x, y - 9.0), (x + 11.0, y + 2.0), MarkInk::Own(colour), ""));
            marks.push(text_mark(x + 18.0, y, TextAnchor::Start, name));
        }
        if shown < names.len() {
            let more = format!("and {} more", names.len() - shown);
            marks.push(faint_text(x + 18.0, line(shown), TextAnchor::Start, more));
        }
        self.marks.extend(marks);
    }

    /// Says in the middle that there is nothing to draw.
    pub(crate) fn add_empty_note(&mut self) {
        let (x, y) = ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0);
        self.marks.push(faint_text(x, y, TextAnchor::Middle, "no data"));
    }

    /// The figure.
    pub(crate) fn into_scene(self) -> Scene {
        Scene { width: self.size.0, height: self.size.1, description: self.description, marks: self.marks }
    }
}

/// No axis reaches farther from 0, nor nearer to it on a logarithmic one.
const FARTHEST: f64 = 1e300;

/// Pixels from one line of text to the next.
const LINE: f64 = 18.0;

/// Names beside their colours in lines, from `y` on; the base line of the last.
fn push_legend_lines(marks: &mut Vec<SceneMark>, legend: &[(RgbColour, &str)], y: f64, width: f64) -> f64 {
    let (mut x, mut y) = (16.0, y);
    let names: Vec<&str> = legend.iter().map(|(_, name)| *name).collect();
    let short = typeface::shorten_apart(&names, TEXT, width - 50.0);
    for ((colour, _), name) in legend.iter().zip(short) {
        let needed = typeface::text_width(&name, TEXT) + 34.0;
        if x > 16.0 && x + needed > width - 10.0 {
            (x, y) = (16.0, y + LINE);
        }
        marks.push(rect_mark((x, y - 9.0), (x + 11.0, y + 2.0), MarkInk::Own(*colour), ""));
        marks.push(text_mark(x + 17.0, y, TextAnchor::Start, name));
        x += needed;
    }
    y
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChartAxis {
    low: f64,
    high: f64,
    /// pixels of `low` and `high`
    from_pixel: f64,
    to_pixel: f64,
    step: f64,
    divisor: f64,
    /// the unit as shown
    pub(crate) name: String,
    /// what stands at 0, 1, 2, … in place of the number
    labels: Vec<String>,
    /// equal distances are equal ratios: `low`, `high` and ticks are powers
    powers: Option<TickPowers>,
}

/// The ticks of a logarithmic axis, and the unit of their labels.
#[derive(Debug, Clone, PartialEq)]
struct TickPowers {
    values: Vec<f64>,
    unit: AxisUnit,
}

impl ChartAxis {
    /// From `low` to `high`, widened to whole ticks, between two pixels, with about `requested` ticks.
    pub(crate) fn with_rounded_ends(
        unit: &AxisUnit,
        (low, high): (f64, f64),
        pixels: (f64, f64),
        requested: usize,
    ) -> Self {
        let mut axis = ChartAxis::with_exact_ends(unit, (low, high), pixels, requested);
        axis.low = (axis.low / axis.step + 1e-9).floor() * axis.step;
        axis.high = (axis.high / axis.step - 1e-9).ceil() * axis.step;
        axis
    }

    /// From `low` to `high` exactly.
    pub(crate) fn with_exact_ends(
        unit: &AxisUnit,
        (low, high): (f64, f64),
        pixels: (f64, f64),
        requested: usize,
    ) -> Self {
        let shown = unit.scale_for(low.abs().max(high.abs()));
        let (low, high) = (low / shown.divisor, high / shown.divisor);
        let high = if high > low { high } else { low + 1.0 };
        let step = nice_step(high - low, requested);
        ChartAxis {
            low,
            high,
            from_pixel: pixels.0,
            to_pixel: pixels.1,
            step,
            divisor: shown.divisor,
            name: shown.name,
            labels: Vec::new(),
            powers: None,
        }
    }

    /// As it is asked for: whole ticks at the ends that are not said, around what the data span. A logarithmic axis of data of
    /// which nothing is above zero has no ends: it is linear.
    pub(crate) fn for_look(
        unit: &AxisUnit,
        look: &AxisLook,
        (least, most): (f64, f64),
        pixels: (f64, f64),
        requested: usize,
    ) -> Self {
        // Values that are all equal stand in the middle.
        let room = if least == most { (least.abs() * 0.05).max(f64::MIN_POSITIVE) } else { 0.0 };
        let room = if least == 0.0 && most == 0.0 { 0.5 } else { room };
        let (low, high) = (look.low.unwrap_or(least - room), look.high.unwrap_or(most + room));
        // A range that no number holds is drawn as far as one does.
        let [low, high] = [low, high].map(|end| end.clamp(-FARTHEST, FARTHEST));
        let high = if high > low { high } else { low + low.abs().max(1.0) };
        if look.logarithmic && low > 0.0 {
            return ChartAxis::with_powers(unit, (low.max(FARTHEST.recip()), high), pixels, requested);
        }
        let mut axis = ChartAxis::with_exact_ends(unit, (low, high), pixels, requested);
        // Of things that are counted there is nothing between two of them.
        if *unit == AxisUnit::Number && high - low >= 2.0 {
            axis.step = axis.step.max(1.0);
        }
        if look.low.is_none() {
            axis.low = (axis.low / axis.step + 1e-9).floor() * axis.step;
        }
        if look.high.is_none() {
            axis.high = (axis.high / axis.step - 1e-9).ceil() * axis.step;
        }
        axis
    }

    /// Logarithmic, from `low` above zero to `high` exactly.
    fn with_powers(unit: &AxisUnit, (low, high): (f64, f64), pixels: (f64, f64), requested: usize) -> Self {
        let values = power_ticks(low, high, requested, matches!(unit, AxisUnit::Bytes | AxisUnit::Number));
        let powers = Some(TickPowers { values, unit: unit.clone() });
        // Labels have their own units.
        let name = String::new();
        let (from_pixel, to_pixel) = pixels;
        ChartAxis {
            low,
            high,
            from_pixel,
            to_pixel,
            step: 1.0,
            divisor: 1.0,
            name,
            labels: Vec::new(),
            powers,
        }
    }

    /// The same with texts at 0, 1, 2, … in place of the numbers.
    pub(crate) fn with_labels(self, labels: Vec<String>) -> Self {
        ChartAxis { labels, ..self }
    }

    /// The same under another name.
    pub(crate) fn with_name(&self, name: String) -> Self {
        ChartAxis { name, ..self.clone() }
    }

    /// Of things that are counted: no tick between two of them.
    pub(crate) fn for_counts(ends: (f64, f64), pixels: (f64, f64), requested: usize) -> Self {
        let axis = ChartAxis::with_exact_ends(&AxisUnit::Number, ends, pixels, requested);
        ChartAxis { step: axis.step.max(1.0), ..axis }
    }

    /// The pixel of a value; values beyond the ends stay at them.
    pub(crate) fn pixel_of(&self, value: f64) -> f64 {
        self.from_pixel + self.part(value).clamp(0.0, 1.0) * (self.to_pixel - self.from_pixel)
    }

    /// The same, also beyond the ends.
    pub(crate) fn open_pixel_of(&self, value: f64) -> f64 {
        // Far beyond is far enough.
        self.from_pixel + self.part(value).clamp(-1e3, 1e3) * (self.to_pixel - self.from_pixel)
    }

    /// 0 at the low end, 1 at the high one.
    fn part(&self, value: f64) -> f64 {
        let value = value / self.divisor;
        let part = match self.powers {
            Some(_) if value <= 0.0 => f64::NEG_INFINITY,
            Some(_) => (value / self.low).ln() / (self.high / self.low).ln(),
            None => (value - self.low) / (self.high - self.low),
        };
        if part.is_nan() { 0.0 } else { part }
    }

    /// Ticks whose labels do not touch one another, nor the edges of a picture so wide.
    fn ticks_apart(&self, width: f64) -> Vec<(f64, String)> {
        let all = self.ticks();
        let half = |label: &str| typeface::text_width(label, TEXT) / 2.0;
        let are_apart = |stride: usize| {
            let kept: Vec<&(f64, String)> = all.iter().step_by(stride).collect();
            kept.windows(2).all(|pair| match pair {
                [(one, a), (next, b)] => (next - one).abs() >= half(a) + half(b) + 8.0,
                _ => true,
            })
        };
        let stride = (1..all.len().max(2)).find(|stride| are_apart(*stride)).unwrap_or(all.len().max(1));
        let is_inside = |(place, label): &(f64, String)| place + half(label) <= width - 2.0;
        all.into_iter().step_by(stride).filter(is_inside).collect()
    }

    /// Pixel and text of every tick.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        if let Some(powers) = &self.powers {
            let label = |value: &f64| (self.pixel_of(*value), powers.unit.format_value(*value));
            return powers.values.iter().map(label).collect();
        }
        let decimals = tick_decimals(self.step);
        let label = |value: f64| self.labels.get(value as usize).filter(|_| value >= 0.0);
        let text = |value: f64| {
            if !self.labels.is_empty() {
                return label(value).cloned().unwrap_or_default();
            }
            let digits = value.abs().max(self.step).log10();
            if value != 0.0 && !(-9.0..15.0).contains(&self.step.log10().min(digits)) || digits >= 15.0 {
                return format!("{value:.2e}");
            }
            let text = format!("{value:.decimals$}");
            let zero = text.chars().all(|letter| matches!(letter, '-' | '0' | '.'));
            if zero { "0".to_owned() } else { text }
        };
        let multiples = tick_values(self.low, self.high, self.step);
        multiples.into_iter().map(|value| (self.pixel_of(value * self.divisor), text(value))).collect()
    }
}

/// The distance between ticks, where about `requested` of them cover `span`.
pub(crate) fn nice_step(span: f64, requested: usize) -> f64 {
    if span <= 0.0 || !span.is_finite() {
        return 1.0;
    }
    let rough = span / requested.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let nice = [1.0, 2.0, 5.0, 10.0].into_iter().find(|nice| nice * power >= rough * 0.999);
    nice.unwrap_or(10.0) * power
}

/// Powers of ten from `low` to `high`, with their doubles and halves where there is room for as many; powers of two where binary. Where
/// fewer than two lie between the ends, round numbers.
fn power_ticks(low: f64, high: f64, requested: usize, binary: bool) -> Vec<f64> {
    let base: f64 = if binary { 2.0 } else { 10.0 };
    let exponent = |value: f64| value.ln() / base.ln();
    let (first, last) = ((exponent(low) - 1e-9).floor() as i32, (exponent(high) + 1e-9).floor() as i32);
    let inside = |value: &f64| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(value);
    let multiples: &[f64] = if binary { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let finest = (first..=last)
        .flat_map(|power| multiples.iter().map(move |multiple| multiple * base.powi(power)))
        .filter(inside)
        .collect::<Vec<_>>();
    if finest.len() <= requested.max(2) && finest.len() >= 2 {
        return finest;
    }
    let every = |stride: i32| -> Vec<f64> {
        (first..=last)
            .filter(|power| power.rem_euclid(stride) == 0)
            .map(|power| base.powi(power))
            .filter(inside)
            .collect()
    };
    let strides = if binary { [1, 2, 5, 10, 20, 40] } else { [1, 2, 3, 6, 12, 24] };
    let coarser = strides.into_iter().map(every).find(|ticks| ticks.len() <= requested.max(2));
    match coarser.filter(|ticks| ticks.len() >= 2) {
        Some(ticks) => ticks,
        None if finest.len() >= 2 => finest.into_iter().filter(inside).collect(),
        None => tick_values(low, high, nice_step(high - low, requested.min(4))),
    }
}

/// Every multiple of `step` from `low` to `high`.
pub(crate) fn tick_values(low: f64, high: f64, step: f64) -> Vec<f64> {
    let first = (low / step - 1e-9).ceil();
    let last = (high / step + 1e-9).floor();
    // A scale that would need more is a mistake of its caller; the figure stays readable.
    let count = (last - first + 1.0).clamp(0.0, 100.0) as usize;
    (0..count).map(|index| (first + index as f64) * step).collect()
}

/// As many decimals as tell neighbouring ticks apart.
fn tick_decimals(step: f64) -> usize {
    usize::try_from(-step.log10().floor() as i64).unwrap_or(0).min(9)
}
