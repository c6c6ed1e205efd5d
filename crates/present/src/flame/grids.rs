//! Tables of functions, of shares with their denominators, and of what became of every sample.

use perflab_analyze::flame::{
    CategoryShares, CostPerOperation, FrameRole, FunctionRow, ProfileAmount, ProfileFunction, ShareEstimate,
};
use perflab_model::profile::{ProfileSummary, SampleCounts};

use crate::grid::{Grid, GridCell, GridColumn};
use perflab_model::quantity::format_share;

/// Operations and their categories.
#[must_use]
pub fn share_grid(shares: &CategoryShares) -> Grid {
    let numbers =
        ["samples", "of all", "of the operation", "touching it", "per operation"].map(GridColumn::right);
    let mut grid = Grid::new(["operation", "category"].map(GridColumn::left).into_iter().chain(numbers));
    for row in shares.all_rows() {
        let touching = row.touching.map(|value| ShareEstimate { value: Some(value), interval: None });
        grid.add_row([
            row.operation.as_str().into(),
            row.category.as_deref().unwrap_or("all").into(),
            row.amount.samples.into(),
            profile_share_cell(&row.of_all),
            profile_share_cell(&row.of_operation),
            touching.as_ref().map_or_else(GridCell::missing, profile_share_cell),
            row.per_operation.as_ref().map_or_else(GridCell::missing, per_operation_cell),
        ]);
    }
    grid
}

pub(crate) fn profile_share_cell(share: &ShareEstimate) -> GridCell {
    let Some(value) = share.value else { return GridCell::missing() };
    let interval = share.interval.map(|(low, high)| format!(" [{:.2}, {:.2}]", 100.0 * low, 100.0 * high));
    GridCell::with_text(format!("{}{}", format_share(value), interval.unwrap_or_default()), value)
}

fn per_operation_cell(one: &CostPerOperation) -> GridCell {
    let interval = one.interval.map(|(low, high)| format!(" [{low:.1}, {high:.1}]"));
    GridCell::with_text(format!("{:.1} {}{}", one.value, one.unit, interval.unwrap_or_default()), one.value)
}

/// What the shares are of, how sure they are, and what stands beside them.
#[must_use]
pub fn share_sentences(shares: &CategoryShares) -> Vec<String> {
    let variant = shares.variant.as_deref().unwrap_or("no variant was recognised");
    let mut lines =
        vec![format!("table {} ({variant}); `of all`: of {} samples", shares.rules, shares.all.samples)];
    lines.push(match shares.repetitions.count {
        0 | 1 => "one iteration: no interval can be given; repeat for one".into(),
        _ => format!("intervals: 95 %, of the mean over {} (Student's t)", shares.repetitions),
    });
    lines.push(rule_coverage_text(shares));
    for (name, share) in &shares.leaves {
        lines.push(format!("of the operations' samples, ending where {name}: {}", share_percent_text(share)));
    }
    let beside = shares.beside.iter().filter(|(_, share)| share.value.is_some_and(|value| value > 0.0));
    let beside: Vec<String> =
        beside.map(|(name, share)| format!("{name} {}", share_percent_text(share))).collect();
    if !beside.is_empty() {
        lines.push(format!("beside it, of all, inclusive: {}", beside.join(", ")));
    }
    lines
}

fn share_percent_text(share: &ShareEstimate) -> String {
    share.value.map_or("none".into(), format_share)
}

/// How samples were recognised; functions without a rule by name, so that the table can grow.
pub(crate) fn rule_coverage_text(shares: &CategoryShares) -> String {
    let coverage = &shares.coverage;
    let all =
        coverage.by_name.saturating_add(coverage.by_window).saturating_add(coverage.undecided).max(1) as f64;
    let part = |count: u64| format_share(count as f64 / all);
    let window = coverage.no_window.as_ref().map(|why| format!("; no window: {why}")).unwrap_or_default();
    let without: Vec<String> =
        coverage.without_rule.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    let without =
        if without.is_empty() { String::new() } else { format!("; without a rule: {}", without.join(", ")) };
    format!(
        "coverage: {} by name, {} by address in the kernel's text, {} undecided{window}{without}",
        part(coverage.by_name),
        part(coverage.by_window),
        part(coverage.undecided)
    )
}

/// The first `top` functions, as shares of `all`.
#[must_use]
pub fn function_grid(rows: &[FunctionRow], all: ProfileAmount, top: usize) -> Grid {
    let numbers = ["self", "inclusive", "self samples", "inclusive samples"].map(GridColumn::right);
    let mut grid = Grid::new(["function", "where"].map(GridColumn::left).into_iter().chain(numbers));
    for row in rows.iter().take(top) {
        grid.add_row([
            row.function.name.as_str().into(),
            function_place(&row.function).into(),
            percent_of_cell(row.own.samples, all.samples),
            percent_of_cell(row.inclusive.samples, all.samples),
            row.own.samples.into(),
            row.inclusive.samples.into(),
        ]);
    }
    grid
}

pub(crate) fn function_place(function: &ProfileFunction) -> &'static str {
    match (function.role, function.inlined) {
        (FrameRole::Kernel, false) => "kernel",
        (FrameRole::Kernel, true) => "kernel, inlined",
        (FrameRole::User, false) => "user",
        (FrameRole::User, true) => "user, inlined",
        _ => "",
    }
}

/// `part` of `all` in percent.
fn percent_of_cell(part: u64, all: u64) -> GridCell {
    if all == 0 {
        return GridCell::missing();
    }
    let share = part as f64 / all as f64;
    GridCell::with_text(format_share(share), share)
}

/// The parts by name, disjoint, in the order of the table.
pub(crate) fn named_sample_parts(parts: &SampleCounts) -> [(&'static str, u64); 5] {
    [
        ("with a stack", parts.stacks),
        ("without a stack", parts.stackless),
        ("of dying tasks", parts.dead),
        ("lost for want of room", parts.lost),
        ("unreadable", parts.unreadable),
    ]
}

/// Every part and its share of all; they sum to 100 %.
#[must_use]
pub fn sample_part_grid(parts: &SampleCounts) -> Grid {
    let numbers = ["count", "share of all"].map(GridColumn::right);
    let mut grid = Grid::new([GridColumn::left("samples")].into_iter().chain(numbers));
    for (name, count) in named_sample_parts(parts).into_iter().chain([("all", parts.total())]) {
        grid.add_row([name.into(), count.into(), percent_of_cell(count, parts.total())]);
    }
    grid
}

/// The same in a line; parts that are nothing are left out.
#[must_use]
pub fn sample_account(parts: &SampleCounts) -> String {
    let all = parts.total();
    if all == 0 {
        return "no sample was taken: nothing ran, or not for long enough".into();
    }
    let part_text = |(name, count): (&str, u64)| {
        (count > 0).then(|| format!("{count} {name} ({})", format_share(count as f64 / all as f64)))
    };
    let parts: Vec<String> = named_sample_parts(parts).into_iter().filter_map(part_text).collect();
    format!("{all} samples: {}", parts.join(", "))
}

/// Where samples come from, in a line: `perf.data, cpu-clock at 499 Hz`.
#[must_use]
pub fn profile_source_text(about: &ProfileSummary) -> String {
    let event = if about.event.is_empty() { String::new() } else { format!(", {}", about.event) };
    let rate = about.frequency.map(|rate| format!(" at {rate} Hz")).unwrap_or_default();
    format!("{}{event}{rate}", about.source)
}
