//! The sides of a comparison with everything that their runs recorded of each iteration.

use perflab_analyze::ComparisonSide;
use perflab_analyze::why::{LeftOut, QuantityGap, add_durations, add_monitor_quantities};
use perflab_archive::RunDir;
use perflab_model::{RunRecord, join_continued_runs};

use crate::failure::Failure;

/// Monitors that say what is there, or repeat another: none has a cause that no other has.
const PASSED_OVER: &[&str] = &[
    "slabinfo",
    "slab-caches",
    "slab-exact",
    "meminfo",
    "loadavg",
    "buddy",
    "zones",
    "page-types",
    "node-vmstat",
    "filesystems",
    "cpu-state",
    "energy",
    "thermal",
    "sensors",
    "locks",
    "swaps",
    "mdstat",
    "blocked",
    "smaps",
    "sched-domains",
    "writeback",
    "tasks",
    "gpu",
];

/// The sides with all that their runs recorded of each iteration.
pub(super) struct RecordedSides {
    pub(super) sides: Vec<ComparisonSide>,
    /// Monitors that any run has.
    pub(super) monitors: Vec<String>,
    /// What could not be read, or has gaps.
    pub(super) left_out: Vec<LeftOut>,
}

impl RecordedSides {
    /// Reads them again.
    ///
    /// # Errors
    /// A run's record cannot be read; monitors that cannot are left out.
    pub(super) fn read(sides: &[ComparisonSide], runs: &[RunDir]) -> Result<Self, Failure> {
        let mut found = RecordedSides { sides: Vec::new(), monitors: Vec::new(), left_out: Vec::new() };
        for side in sides {
            let mut records = Vec::new();
            for record in &side.runs {
                let find = |id: &str| runs.iter().find(|run| run.id() == id);
                match record.recorded_ids().map(find).collect::<Option<Vec<_>>>() {
                    Some(parts) => {
                        for part in parts {
                            records.push(found.read_run(part)?);
                        }
                    }
                    None => records.push(record.clone()),
                }
            }
            found.sides.push(ComparisonSide { name: side.name.clone(), runs: join_continued_runs(records) });
        }
        Ok(found)
    }

    fn read_run(&mut self, run: &RunDir) -> Result<RunRecord, Failure> {
        let mut record = run.read_record()?;
        add_durations(&mut record);
        let listed = run.list_sound_monitors()?;
        self.left_out.extend(listed.damaged.into_iter().map(|(monitor, error)| LeftOut::Unreadable {
            run: record.manifest.id.clone(),
            monitor,
            reason: error.to_string(),
        }));
        for monitor in listed.sound {
            let kind = monitor.split('.').next().unwrap_or(&monitor);
            if PASSED_OVER.contains(&kind) {
                continue;
            }
            // What cannot be read of one monitor leaves the others.
            let read = run.read_series(&monitor).and_then(|series| Ok((series, run.read_edges(&monitor)?)));
            match read {
                Ok((series, edges)) => {
                    let gap = add_monitor_quantities(&mut record, &monitor, &series, edges.as_ref());
                    self.left_out.extend(gap.map(left_out_gap));
                    if !self.monitors.contains(&monitor) {
                        self.monitors.push(monitor);
                    }
                }
                Err(error) => self.left_out.push(LeftOut::Unreadable {
                    run: record.manifest.id.clone(),
                    monitor,
                    reason: error.to_string(),
                }),
            }
        }
        Ok(record)
    }
}

fn left_out_gap(gap: QuantityGap) -> LeftOut {
    LeftOut::Gap { run: gap.run, monitor: gap.monitor, iterations: gap.iterations, went_back: gap.went_back }
}
