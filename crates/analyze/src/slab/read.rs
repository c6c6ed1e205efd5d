//! Owns the reading of rows into a [`Recording`], column by column. It refuses to drop a row without counting it.

use perflab_model::Nanos;
use perflab_model::series::Series;

use super::attributes::{Attributes, Scans, holding};
use super::columns::{at, in_time};
use super::counts::RowCounts;
use super::error::SlabError;
use super::held::{Held, cpu_slabs};
use super::hidden::Hidden;
use super::input::Input;
use super::names::Names;
use super::recording::{Recording, with_rows};
use super::row::Observed;
use super::source::Source;

/// What a reading goes through once.
pub(super) struct Reading<'a> {
    input: &'a Input<'a>,
    series: &'a Series,
    source: Source<'a>,
    scans: Scans,
    held: Held,
    page_size: u64,
}

impl<'a> Reading<'a> {
    pub(super) fn of(input: &'a Input<'a>) -> Result<Self, SlabError> {
        let hint = "record with `perflab slab record` as root, or import a log";
        let none = SlabError::NoRows { monitor: "slabinfo", hint };
        let (series, source) = match (with_rows(input.slabinfo), with_rows(input.exact)) {
            (Some(series), _) => (series, Source::proc(series)),
            (None, Some(series)) => (series, Source::exact(series)),
            (None, None) => return Err(none),
        };
        let page_size = input.page_size()?;
        let scans = Scans::read(input.caches, input.tool);
        let held = Held::read(input.exact, input.tool);
        Ok(Reading { input, series, source, scans, held, page_size })
    }

    pub(super) fn recording(self) -> Recording {
        let (mut names, mut ticks) = (Names::default(), Vec::new());
        let mut rows = Vec::with_capacity(self.series.at.len());
        let mut counts = RowCounts::default();
        let mut known: Vec<Known> = Vec::new();
        for row in in_time(self.series).into_iter().filter(|row| self.source.is_row(*row)) {
            let now = at(self.series, row);
            if ticks.last() != Some(&now) {
                ticks.push(now);
                names.next_tick();
            }
            let cache = self.source.name(row).map(|name| names.number(name));
            let found = cache.and_then(|cache| {
                if cache == known.len() {
                    known.push(self.known(names.name(cache)));
                }
                let found = self.row(row, known.get(cache)?, now)?;
                Some(Observed { cache, tick: ticks.len() - 1, ..found })
            });
            counts.count(found.map(|found| (found.flags, found.slabs == 0)));
            rows.extend(found);
        }
        let caches = names.caches(&rows, &ticks, &self.scans);
        let (system, phases) = (self.input.system, self.input.phases());
        Recording { caches, ticks, rows, counts, page_size: self.page_size, system, phases }
    }

    /// Looked up once a cache, not once a row.
    fn known(&self, name: &str) -> Known<'_> {
        Known { scans: self.scans.of(name), held: self.held.of(name) }
    }

    fn row(&self, row: usize, known: &Known, now: Nanos) -> Option<Observed> {
        let counted = self.source.counted(row, || holding(known.scans, now, None))?;
        let attributes = holding(known.scans, now, Some(counted.slab_size));
        let hidden = Hidden {
            cpu_slabs: cpu_slabs(known.held, now),
            cpu_partial: attributes.and_then(|attributes| attributes.cpu_partial),
            sheaf_capacity: attributes.and_then(|attributes| attributes.sheaf_capacity),
        };
        let found = Observed {
            cache: 0,
            tick: 0,
            objects: counted.objects,
            total_objects: counted.total_objects,
            slabs: counted.slabs,
            slab_size: counted.slab_size,
            objs_per_slab: counted.objs_per_slab,
            bytes_per_slab: counted.pages_per_slab.checked_mul(self.page_size)?,
            object_size: attributes.and_then(|attributes| attributes.object_size),
            hidden_objects: hidden.objects(counted.slabs, counted.objs_per_slab, &self.input.system),
            flags: counted.flags,
        };
        found.is_believable().then(|| found.checked())
    }
}

/// What other series know of a cache, over time.
struct Known<'a> {
    scans: &'a [(Nanos, Attributes)],
    held: &'a [(Nanos, u64)],
}
