//! The answer about operations in sentences, each with its numbers: what a person would say who had looked at the
//! pictures for an hour.

use perflab_analyze::operations::{
    CauseMode, CauseOnset, CausePeriod, MaintenanceCost, OperationClock, OperationComparison,
    OperationReport, QuantileChange,
};
use perflab_model::quantity::{format_count, format_digits, format_quantity, format_share};

/// What one trace says.
pub fn operation_conclusions(report: &OperationReport) -> Vec<String> {
    let mut all = vec![describe_times(report)];
    all.extend(probe_conclusions(report));
    all.extend(describe_off_cpu(report));
    all.extend(report.causes.iter().filter(|cause| cause.share.outliers > 0).map(|cause| {
        let without = report.is_beyond_probe_cost(report.quantiles[2]).then(|| {
            let [_, _, without, _] = cause.quantiles_without;
            format!(
                "; without it p99.9 would be {} instead of {}",
                format_time(without),
                format_time(report.quantiles[2])
            )
        });
        format!(
            "`{}` dominates {} of {} outliers ({}) and is {} of their excess time{}.",
            cause.name,
            format_number(cause.share.outliers),
            format_number(report.outlier_count),
            format_share(cause.share.coverage),
            format_share(cause.share.excess),
            without.unwrap_or_default(),
        )
    }));
    all.extend((report.unexplained.outliers > 0).then(|| describe_unexplained(report)));
    all.extend(report.onsets.iter().map(describe_onset));
    all.extend(report.efficiencies.iter().map(describe_maintenance_cost));
    all.extend(describe_modes(report));
    all.extend(report.periods.iter().map(describe_period));
    all.extend(describe_doubts(report));
    all
}

/// What outliers are beyond: the limit, or they are among the longest of all.
fn describe_outlier_bounds(report: &OperationReport) -> String {
    let below = report.outliers.iter().filter(|outlier| outlier.time <= report.limit).count();
    match below {
        0 => format!("above {}", format_time(report.limit)),
        below => format!(
            "{} above {}, {} among the longest below that;",
            format_number(report.outlier_count - below),
            format_time(report.limit),
            format_number(below)
        ),
    }
}

fn describe_times(report: &OperationReport) -> String {
    let clock = match report.clock {
        OperationClock::OnCpu => "on the CPU",
        OperationClock::Wall if report.clock_chosen => {
            "by the clock on the wall (threads waited for longer than they ran; `--clock cpu` leaves waiting out)"
        }
        OperationClock::Wall => "by the clock on the wall",
    };
    let judged =
        |name: &str, ns: i64| report.is_beyond_probe_cost(ns).then(|| format!("{name} {}", format_time(ns)));
    let [p50, p99, p999, _] = report.quantiles;
    let shown = [judged("p50", p50), judged("p99", p99), judged("p99.9", p999)];
    let shown: String = shown.into_iter().flatten().map(|one| one + ", ").collect();
    // Where probes cost more than operations take, what is left of the sum is chance.
    let is_sum_judged = report.probe_cost.as_ref().is_none_or(|cost| cost.middle_judged);
    let (sum, of_sum) = match is_sum_judged {
        true => (
            format!("took {} ", format_time(report.time)),
            format!(" took {} of that time", format_share(report.outlier_time)),
        ),
        false => ("were timed ".into(), String::new()),
    };
    format!(
        "{} operations `{}` {sum}{clock}: {shown}the longest {}. {} outliers ({} and ten times the spread around \
         them){of_sum}.",
        format_number(report.operations),
        report.operation,
        format_time(report.longest),
        format_number(report.outlier_count),
        describe_outlier_bounds(report),
    )
}

/// What the probes cost, and what therefore is not judged.
pub fn probe_conclusions(report: &OperationReport) -> Vec<String> {
    let Some(cost) = &report.probe_cost else { return Vec::new() };
    let taken = format_time(cost.operation);
    let mut all = vec![if cost.middle_judged {
        format!("Probes cost {taken} at each of them, which is taken off.")
    } else {
        format!(
            "Probes cost {taken} at each of them, which is taken off and more than what is left: their number, what they waited \
             and times above {} are judged, the middle is not.",
            format_time(cost.judged_above)
        )
    }];
    if cost.inside > 0 {
        all.push(format!(
            "{} of that, in the mean, are the probes of operations inside an operation, which are taken off too.",
            format_time(cost.inside)
        ));
    }
    all.extend(cost.spans.iter().filter(|span| !span.judged).map(|span| {
        format!(
            "The probes of `{}` cost {} each time, more than it takes: as a cause counts only where it took ten times that.",
            span.name,
            format_time(span.cost)
        )
    }));
    all
}

fn describe_off_cpu(report: &OperationReport) -> Option<String> {
    let (away, operations) = report.off_cpu;
    (away > 0 && report.clock == OperationClock::OnCpu).then(|| {
        format!(
            "In {} operations the thread was off the CPU for {} in all, which is in no time here (`--clock wall` shows it).",
            format_number(operations),
            format_time(away)
        )
    })
}

fn describe_unexplained(report: &OperationReport) -> String {
    format!(
        "{} outliers ({}) are explained by nothing that was traced: a cache or TLB miss, an interrupt, or the host of this \
         virtual machine.",
        format_number(report.unexplained.outliers),
        format_share(report.unexplained.coverage)
    )
}

fn describe_onset(onset: &CauseOnset) -> String {
    let state: Vec<String> =
        onset.state.iter().map(|(name, value)| format!("{name} {}", format_count(*value))).collect();
    let before = if onset.rate_before > 0.0 {
        format!(
            "from one in {} operations to one in {}",
            format_rate(onset.rate_before),
            format_rate(onset.rate_after)
        )
    } else {
        format!("from never to one in {} operations", format_rate(onset.rate_after))
    };
    let crossed = onset.crossed.as_ref().map_or(String::new(), |crossing| {
        format!(
            " Right there `{}` went from {} to {} for the first time; it was beyond {} in {} of the occurrences since.",
            crossing.number,
            format_count(crossing.from),
            format_count(crossing.to),
            format_count(crossing.from),
            format_share(crossing.holds)
        )
    });
    let state = if state.is_empty() { String::new() } else { format!(" (then: {})", state.join(", ")) };
    format!(
        "`{}` sets in at operation {}, {before}{state}.{crossed}",
        onset.cause,
        format_count(onset.row.into())
    )
}

fn describe_maintenance_cost(efficiency: &MaintenanceCost) -> String {
    let price = match efficiency.saved {
        0 => "and saved nothing".to_owned(),
        saved => format!(
            "and saved {}: {:.2} each time, {} for each",
            format_count(saved),
            saved as f64 / efficiency.operations.max(1) as f64,
            format_time(efficiency.time / saved)
        ),
    };
    format!(
        "`{}` ran in {} operations for {} {price} (`{}`); {} times it saved none.",
        efficiency.cause,
        format_number(efficiency.operations),
        format_time(efficiency.time),
        efficiency.number,
        format_number(efficiency.in_vain)
    )
}

fn describe_modes(report: &OperationReport) -> Vec<String> {
    let mut names: Vec<&str> = report.modes.iter().map(|mode| mode.cause.as_str()).collect();
    names.dedup();
    let describe = |name: &str| {
        let of = report.modes.iter().filter(|mode| mode.cause == name);
        let parts: Vec<String> = of
            .map(|mode: &CauseMode| {
                format!(
                    "{} ({}, {})",
                    format_time(mode.time),
                    format_number(mode.count),
                    format_share(mode.share)
                )
            })
            .collect();
        let reported: usize =
            report.modes.iter().filter(|mode| mode.cause == name).map(|mode| mode.count).sum();
        let rest = report.find_cause(name).map_or(0, |cause| cause.operations.saturating_sub(reported));
        let rest = match rest {
            0 => String::new(),
            rest => format!("; {} times it took no time that the clock can tell", format_number(rest)),
        };
        format!("`{name}` is {} mechanisms by its time: {}{rest}.", parts.len(), parts.join(", "))
    };
    names.into_iter().map(describe).collect()
}

fn describe_period(period: &CausePeriod) -> String {
    let which = match period.longer_than {
        0 => format!("`{}`", period.cause),
        limit => format!("`{}` of more than {}", period.cause, format_time(limit)),
    };
    let of = if period.of == "operation" { "operation".into() } else { format!("`{}`", period.of) };
    format!(
        "{which} comes with every {} {of} ({} of the intervals).",
        format_ordinal(period.every),
        format_share(period.share)
    )
}

fn describe_doubts(report: &OperationReport) -> Vec<String> {
    let summary = &report.summary;
    let mut all = Vec::new();
    all.extend(
        summary
            .cut
            .as_ref()
            .map(|reason| format!("The trace is not whole: {reason}. What is before that is used.")),
    );
    all.extend((summary.lost > 0).then(|| format!("The tracer lost {} operations.", summary.lost)));
    all.extend(
        (summary.backwards > 0).then(|| {
            format!("In {} operations the clock ran backwards; they are left out.", summary.backwards)
        }),
    );
    all.extend((summary.beyond > 0).then(|| format!("{} operations had more spans or numbers than the tracer holds; the rest is time of the span around.", summary.beyond)));
    all.extend(
        (summary.unbalanced > 0)
            .then(|| format!("In {} operations `leave` and `enter` did not match.", summary.unbalanced)),
    );
    let left = [
        (summary.abandoned, "left without an end"),
        (summary.nested, "inside another"),
        (summary.open, "open at its end"),
    ];
    let left: Vec<String> =
        left.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    all.extend((!left.is_empty()).then(|| format!("Of the operations that began, {}.", left.join(", "))));
    all.extend((summary.rescued > 0).then(|| {
        format!(
            "The program ended without closing its trace; its last {} operations are there.",
            summary.rescued
        )
    }));
    all.extend((summary.forks > 0).then(|| {
        format!("The program forked {} times; what its children did is not in the trace.", summary.forks)
    }));
    all.extend(summary.refused.map(|errno| {
        format!(
            "The kernel refused its events (errno {errno}): page faults and time off the CPU are not known. As root, or with \
             kernel.perf_event_paranoid at 2 or below, they are, unless a container's seccomp filter forbids perf_event_open."
        )
    }));
    all.extend(
        (summary.events_lost > 0)
            .then(|| format!("The kernel had no room for {} of its events.", summary.events_lost)),
    );
    all
}

/// What two traces say about a change.
pub fn comparison_conclusions(comparison: &OperationComparison) -> Vec<String> {
    let (before, after) = &comparison.names;
    let changes: Vec<String> = comparison.quantiles.iter().map(describe_quantile_change).collect();
    let mut all = vec![
        format!("From {before} to {after}: {}.", changes.join("; ")),
        format!(
            "Above {} (the outliers' limit of {before}) are {} operations of {before} and {} of {after}; all operations took {} \
             and {}.",
            format_time(comparison.limit),
            format_number(comparison.above.0),
            format_number(comparison.above.1),
            format_time(comparison.time.0),
            format_time(comparison.time.1)
        ),
    ];
    all.extend(comparison.causes.iter().filter(|cause| cause.outliers != (0, 0)).map(|cause| {
        format!(
            "`{}` dominates {} of those in {before} and {} in {after}.",
            cause.name,
            format_number(cause.outliers.0),
            format_number(cause.outliers.1)
        )
    }));
    all
}

fn describe_quantile_change(change: &QuantileChange) -> String {
    let interval = change.interval.map_or(String::new(), |(low, high)| {
        let clear = if change.is_clear() { "" } else { ", no clear change" };
        format!(" (× {:.3}, 95 %: {low:.3} to {high:.3}{clear})", change.ratio())
    });
    if !change.judged {
        return format!("{} not judged, as the probes cost more", change.name);
    }
    format!("{} {} to {}{interval}", change.name, format_time(change.before), format_time(change.after))
}

fn format_time(ns: i64) -> String {
    format_quantity(ns as f64, "ns")
}

fn format_number(number: usize) -> String {
    format_count(number as i64)
}

fn format_rate(rate: f64) -> String {
    let each = 1.0 / rate;
    if each < 10.0 { format_digits(each) } else { format_count(each.round() as i64) }
}

fn format_ordinal(number: u32) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{}{ending}", format_count(number.into()))
}
