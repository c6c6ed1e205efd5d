//! Targets in step as a line for people: what each is doing, and whom the others wait for.

use std::time::Duration;

use perflab_model::Nanos;
use perflab_model::event::{TargetState, TargetStatus};

/// More targets than this are counted, not listed.
const LISTED: usize = 8;
/// How many of those that are waited for are named then.
const NAMED: usize = 3;

/// `guest1 done · guest2 works 3.1 s; waiting for guest2`
pub fn target_states_line(all: &[TargetStatus], now: Nanos) -> String {
    let mut text = if all.len() > LISTED { count_target_states(all) } else { list_target_states(all, now) };
    if let Some(names) = awaited_targets(all) {
        text.push_str(&format!("; waiting for {names}"));
    }
    text
}

fn list_target_states(all: &[TargetStatus], now: Nanos) -> String {
    let one = |one: &TargetStatus| {
        let seconds = Duration::from(now.since(one.since)).as_secs_f64();
        let time = if one.doing.is_awaited() { format!(" {seconds:.0} s") } else { String::new() };
        format!("{} {}{time}", one.name, target_state_word(one.doing))
    };
    all.iter().map(one).collect::<Vec<_>>().join(" · ")
}

fn count_target_states(all: &[TargetStatus]) -> String {
    let mut counts: Vec<(&str, u32)> = Vec::new();
    for one in all {
        match counts.iter_mut().find(|(known, _)| *known == target_state_word(one.doing)) {
            Some((_, count)) => *count += 1,
            None => counts.push((target_state_word(one.doing), 1)),
        }
    }
    let parts: Vec<String> = counts.into_iter().map(|(what, count)| format!("{count} {what}")).collect();
    format!("{} targets: {}", all.len(), parts.join(", "))
}

/// Those that keep the others waiting: some are there, and these are not.
pub fn awaited_targets(all: &[TargetStatus]) -> Option<String> {
    let late: Vec<&str> =
        all.iter().filter(|one| one.doing.is_awaited()).map(|one| one.name.as_str()).collect();
    let waits =
        |one: &TargetStatus| matches!(one.doing, TargetState::Ready | TargetState::Done | TargetState::Gone);
    if late.is_empty() || !all.iter().any(waits) {
        return None;
    }
    let mut names = late.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    if late.len() > NAMED {
        names.push_str(&format!(" and {} more", late.len() - NAMED));
    }
    Some(names)
}

fn target_state_word(doing: TargetState) -> &'static str {
    match doing {
        TargetState::Starts => "starts",
        TargetState::Prepares => "prepares",
        TargetState::Sets => "sets",
        TargetState::Ready => "ready",
        TargetState::Works => "works",
        TargetState::Done => "done",
        TargetState::Leaves => "leaves",
        TargetState::Gone => "gone",
        TargetState::Lost => "lost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states_of_targets(doing: &[TargetState]) -> Vec<TargetStatus> {
        let one = |(index, doing): (usize, &TargetState)| TargetStatus {
            name: format!("guest{}", index + 1),
            doing: *doing,
            since: Nanos(1_000_000_000),
        };
        doing.iter().enumerate().map(one).collect()
    }

    #[test]
    fn each_with_what_it_does_and_the_slowest_by_name() {
        let text =
            |doing: &[TargetState]| target_states_line(&states_of_targets(doing), Nanos(4_200_000_000));
        use TargetState::{Done, Lost, Starts, Works};
        assert_eq!(
            text(&[Done, Works, Lost]),
            "guest1 done · guest2 works 3 s · guest3 lost; waiting for guest2"
        );
        assert_eq!(text(&[Starts, Starts]), "guest1 starts 3 s · guest2 starts 3 s");
        let many: Vec<TargetState> = (0..12).map(|n| if n < 7 { Done } else { Works }).collect();
        assert_eq!(
            text(&many),
            "12 targets: 7 done, 5 works; waiting for guest8, guest9, guest10 and 2 more"
        );
    }
}
