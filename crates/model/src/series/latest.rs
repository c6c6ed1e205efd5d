//! Every monitor's rows as of its last tick: whole ticks out of those that are told as changes. It refuses to guess: a
//! change to a tick that was not seen restores nothing.

use super::Row;
use crate::{Event, What};

/// The last tick of each monitor of a stream.
#[derive(Debug, Default)]
pub struct Latest(Vec<Tick>);

#[derive(Debug)]
struct Tick {
    target: Option<u32>,
    monitor: String,
    step: u32,
    rows: Vec<Row>,
}

impl Latest {
    /// The monitor and all its rows at the event's time, where the event is a tick.
    ///
    /// Nothing for other events, and for changes that do not follow on the last tick taken.
    pub fn take(&mut self, event: Event) -> Option<(&str, &[Row])> {
        let target = event.target;
        let tick = match event.what {
            What::Rows { monitor, rows } => self.whole(Tick { target, monitor, step: 0, rows }),
            What::Changed { monitor, step, rows } => self.changed(target, &monitor, step, rows),
            _ => None,
        }?;
        Some((&tick.monitor, &tick.rows))
    }

    /// Something was lost of the stream: what comes is told again with the next whole tick of each monitor.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    fn whole(&mut self, tick: Tick) -> Option<&Tick> {
        let same = |known: &Tick| (known.target, &known.monitor) == (tick.target, &tick.monitor);
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

    fn changed(
        &mut self,
        target: Option<u32>,
        monitor: &str,
        step: u32,
        rows: Vec<(u32, Row)>,
    ) -> Option<&Tick> {
        let follows = |tick: &&mut Tick| (tick.target, tick.monitor.as_str()) == (target, monitor);
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
    use crate::{Cell, Nanos};

    fn whole(latest: &mut Latest, numbers: &[i64]) -> Option<Vec<i64>> {
        let rows = numbers.iter().map(|number| vec![Cell::Int(*number)]).collect();
        told(latest, None, What::Rows { monitor: "m".into(), rows })
    }

    fn changed(latest: &mut Latest, step: u32, rows: &[(u32, i64)]) -> Option<Vec<i64>> {
        let rows = rows.iter().map(|(place, number)| (*place, vec![Cell::Int(*number)])).collect();
        told(latest, None, What::Changed { monitor: "m".into(), step, rows })
    }

    fn told(latest: &mut Latest, target: Option<u32>, what: What) -> Option<Vec<i64>> {
        let (_, rows) = latest.take(Event { at: Nanos(7), target, what })?;
        let number = |row: &Row| match row[0] {
            Cell::Int(number) => number,
            _ => -1,
        };
        Some(rows.iter().map(number).collect())
    }

    #[test]
    fn changes_restore_the_whole_tick() {
        let latest = &mut Latest::default();
        assert_eq!(whole(latest, &[10, 20]), Some(vec![10, 20]));
        assert_eq!(changed(latest, 1, &[(1, 21)]), Some(vec![10, 21]));
        assert_eq!(changed(latest, 2, &[]), Some(vec![10, 21]));
        assert_eq!(whole(latest, &[5]), Some(vec![5]));
        assert_eq!(changed(latest, 1, &[(0, 6)]), Some(vec![6]));
    }

    #[test]
    fn a_change_that_does_not_follow_restores_nothing_until_the_next_whole_tick() {
        let latest = &mut Latest::default();
        assert_eq!(changed(latest, 1, &[(0, 1)]), None);
        whole(latest, &[10, 20]);
        assert_eq!(changed(latest, 2, &[(0, 11)]), None, "the first step was lost");
        assert_eq!(changed(latest, 3, &[(0, 12)]), None);
        assert_eq!(whole(latest, &[1]), Some(vec![1]));
        latest.forget();
        assert_eq!(changed(latest, 1, &[(0, 12)]), None);
    }

    #[test]
    fn a_place_that_is_not_there_restores_nothing() {
        let latest = &mut Latest::default();
        whole(latest, &[10]);
        assert_eq!(changed(latest, 1, &[(0, 11), (1, 5)]), None);
    }

    #[test]
    fn targets_have_monitors_of_their_own() {
        let latest = &mut Latest::default();
        whole(latest, &[10]);
        let rows = vec![(0, vec![Cell::Int(5)])];
        assert_eq!(told(latest, Some(1), What::Changed { monitor: "m".into(), step: 1, rows }), None);
    }
}
