//! Every monitor's rows as of its last tick: whole ticks out of those that are told as changes. It refuses to guess: a
//! change to a tick that was not seen restores nothing.

use super::CellRow;
use crate::{RunEvent, RunEventKind};

/// The last tick of each monitor of a stream.
#[derive(Debug, Default)]
pub struct LatestTicks(Vec<MonitorTick>);

#[derive(Debug)]
struct MonitorTick {
    target: Option<u32>,
    monitor: String,
    step: u32,
    rows: Vec<CellRow>,
}

impl LatestTicks {
    /// The monitor and all its rows at the event's time, where the event is a tick.
    ///
    /// Nothing for other events, and for changes that do not follow on the last tick taken.
    pub fn apply(&mut self, event: RunEvent) -> Option<(&str, &[CellRow])> {
        let target = event.target;
        let tick = match event.what {
            RunEventKind::Rows { monitor, rows } => {
                self.store_whole(MonitorTick { target, monitor, step: 0, rows })
            }
            RunEventKind::Changed { monitor, step, rows } => self.apply_changes(target, &monitor, step, rows),
            _ => None,
        }?;
        Some((&tick.monitor, &tick.rows))
    }

    /// Something was lost of the stream: what comes is told again with the next whole tick of each monitor.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn store_whole(&mut self, tick: MonitorTick) -> Option<&MonitorTick> {
        let same = |known: &MonitorTick| (known.target, &known.monitor) == (tick.target, &tick.monitor);
        match self.0.iter().position(same) {
            Some(place) => {
                let known = self.0.get_mut(place)?;
                *known = tick;
                Some(known)
            }
            None => {
                self.0.push(tick);
                self.0.last()
            }
        }
    }

    fn apply_changes(
        &mut self,
        target: Option<u32>,
        monitor: &str,
        step: u32,
        rows: Vec<(u32, CellRow)>,
    ) -> Option<&MonitorTick> {
        let follows = |tick: &&mut MonitorTick| (tick.target, tick.monitor.as_str()) == (target, monitor);
        let tick = self.0.iter_mut().find(follows).filter(|tick| tick.step.checked_add(1) == Some(step))?;
        let length = tick.rows.len();
        if rows.iter().any(|(place, _)| *place as usize >= length) {
            return None;
        }
        for (place, row) in rows {
            *tick.rows.get_mut(place as usize)? = row;
        }
        tick.step = step;
        Some(tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Nanos, TableCell};

    fn apply_whole_tick(latest: &mut LatestTicks, numbers: &[i64]) -> Option<Vec<i64>> {
        let rows = numbers.iter().map(|number| vec![TableCell::Int(*number)]).collect();
        apply_event(latest, None, RunEventKind::Rows { monitor: "m".into(), rows })
    }

    fn apply_changed_rows(latest: &mut LatestTicks, step: u32, rows: &[(u32, i64)]) -> Option<Vec<i64>> {
        let rows = rows.iter().map(|(place, number)| (*place, vec![TableCell::Int(*number)])).collect();
        apply_event(latest, None, RunEventKind::Changed { monitor: "m".into(), step, rows })
    }

    fn apply_event(latest: &mut LatestTicks, target: Option<u32>, what: RunEventKind) -> Option<Vec<i64>> {
        let (_, rows) = latest.apply(RunEvent { at: Nanos(7), target, what })?;
        let number = |row: &CellRow| match row[0] {
            TableCell::Int(number) => number,
            _ => -1,
        };
        Some(rows.iter().map(number).collect())
    }

    #[test]
    fn changes_restore_the_whole_tick() {
        let latest = &mut LatestTicks::default();
        assert_eq!(apply_whole_tick(latest, &[10, 20]), Some(vec![10, 20]));
        assert_eq!(apply_changed_rows(latest, 1, &[(1, 21)]), Some(vec![10, 21]));
        assert_eq!(apply_changed_rows(latest, 2, &[]), Some(vec![10, 21]));
        assert_eq!(apply_whole_tick(latest, &[5]), Some(vec![5]));
        assert_eq!(apply_changed_rows(latest, 1, &[(0, 6)]), Some(vec![6]));
    }

    #[test]
    fn a_change_that_does_not_follow_restores_nothing_until_the_next_whole_tick() {
        let latest = &mut LatestTicks::default();
        assert_eq!(apply_changed_rows(latest, 1, &[(0, 1)]), None);
        apply_whole_tick(latest, &[10, 20]);
        assert_eq!(apply_changed_rows(latest, 2, &[(0, 11)]), None, "the first step was lost");
        assert_eq!(apply_changed_rows(latest, 3, &[(0, 12)]), None);
        assert_eq!(apply_whole_tick(latest, &[1]), Some(vec![1]));
        latest.clear();
        assert_eq!(apply_changed_rows(latest, 1, &[(0, 12)]), None);
    }

    #[test]
    fn a_place_that_is_not_there_restores_nothing() {
        let latest = &mut LatestTicks::default();
        apply_whole_tick(latest, &[10]);
        assert_eq!(apply_changed_rows(latest, 1, &[(0, 11), (1, 5)]), None);
    }

    #[test]
    fn targets_have_monitors_of_their_own() {
        let latest = &mut LatestTicks::default();
        apply_whole_tick(latest, &[10]);
        let rows = vec![(0, vec![TableCell::Int(5)])];
        assert_eq!(
            apply_event(latest, Some(1), RunEventKind::Changed { monitor: "m".into(), step: 1, rows }),
            None
        );
    }
}
