//! Targets in step as a line for people: what each is doing, and whom the others wait for.

use std::time::Duration;

use perflab_model::Nanos;
use perflab_model::event::{Doing, Standing};

/// More targets than this are counted, not listed.
const LISTED: usize = 8;
/// How many of those that are waited for are named then.
const NAMED: usize = 3;

/// `guest1 done · guest2 works 3.1 s; waiting for guest2`
pub fn line(all: &[Standing], now: Nanos) -> String {
    let mut text = if all.len() > LISTED { counted(all) } else { listed(all, now) };
    if let Some(names) = awaited(all) {
        text.push_str(&format!("; waiting for {names}"));
    }
    text
}

fn listed(all: &[Standing], now: Nanos) -> String {
    let one = |one: &Standing| {
        let seconds = Duration::from(now.since(one.since)).as_secs_f64();
        let time = if one.doing.is_awaited() { format!(" {seconds:.0} s") } else { String::new() };
        format!("{} {}{time}", one.name, word(one.doing))
    };
    all.iter().map(one).collect::<Vec<_>>().join(" · ")
}

fn counted(all: &[Standing]) -> String {
    let mut counts: Vec<(&str, u32)> = Vec::new();
    for one in all {
        match counts.iter_mut().find(|(known, _)| *known == word(one.doing)) {
            Some((_, count)) => *count += 1,
            None => counts.push((word(one.doing), 1)),
        }
    }
    let parts: Vec<String> = counts.into_iter().map(|(what, count)| format!("{count} {what}")).collect();
    format!("{} targets: {}", all.len(), parts.join(", "))
}

/// Those that keep the others waiting: some are there, and these are not.
pub fn awaited(all: &[Standing]) -> Option<String> {
    let late: Vec<&str> =
        all.iter().filter(|one| one.doing.is_awaited()).map(|one| one.name.as_str()).collect();
    let waits = |one: &Standing| matches!(one.doing, Doing::Ready | Doing::Done | Doing::Gone);
    if late.is_empty() || !all.iter().any(waits) {
        return None;
    }
    let mut names = late.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    if late.len() > NAMED {
        names.push_str(&format!(" and {} more", late.len() - NAMED));
    }
    Some(names)
}

fn word(doing: Doing) -> &'static str {
    match doing {
        Doing::Starts => "starts",
        Doing::Prepares => "prepares",
        Doing::Sets => "sets",
        Doing::Ready => "ready",
        Doing::Works => "works",
        Doing::Done => "done",
        Doing::Leaves => "leaves",
        Doing::Gone => "gone",
        Doing::Lost => "lost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(doing: &[Doing]) -> Vec<Standing> {
        let one = |(index, doing): (usize, &Doing)| Standing {
            name: format!("guest{}", index + 1),
            doing: *doing,
            since: Nanos(1_000_000_000),
        };
        doing.iter().enumerate().map(one).collect()
    }

    #[test]
    fn each_with_what_it_does_and_the_slowest_by_name() {
        let text = |doing: &[Doing]| line(&standing(doing), Nanos(4_200_000_000));
        use Doing::{Done, Lost, Starts, Works};
        assert_eq!(
            text(&[Done, Works, Lost]),
            "guest1 done · guest2 works 3 s · guest3 lost; waiting for guest2"
        );
        assert_eq!(text(&[Starts, Starts]), "guest1 starts 3 s · guest2 starts 3 s");
        let many: Vec<Doing> = (0..12).map(|n| if n < 7 { Done } else { Works }).collect();
        assert_eq!(
            text(&many),
            "12 targets: 7 done, 5 works; waiting for guest8, guest9, guest10 and 2 more"
        );
    }
}
