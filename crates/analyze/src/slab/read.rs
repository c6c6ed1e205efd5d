//! Owns the reading of `slabinfo` rows into a [`Recording`], column by column. It refuses to hash a name twice: the
//! kernel lists its caches in one order, so most names stand where they stood a tick before.

use std::collections::HashMap;

use perflab_model::Nanos;
use perflab_model::series::Series;

use super::attributes::{Attributes, Scans, holding};
use super::columns::{Ints, Texts, at, in_time, ints, texts};
use super::counts::{RowCounts, RowFlags};
use super::error::SlabError;
use super::held::Held;
use super::hidden::Hidden;
use super::input::Input;
use super::recording::{Cache, Recording, with_rows};
use super::row::Observed;

/// What a reading goes through once.
pub(super) struct Reading<'a> {
    input: &'a Input<'a>,
    series: &'a Series,
    fields: Fields<'a>,
    scans: Scans,
    held: Held,
    page_size: u64,
}

/// The columns of `slabinfo`.
struct Fields<'a> {
    name: Texts<'a>,
    flags: Texts<'a>,
    active_objs: Ints<'a>,
    num_objs: Ints<'a>,
    objsize: Ints<'a>,
    objperslab: Ints<'a>,
    pagesperslab: Ints<'a>,
    num_slabs: Ints<'a>,
}

impl<'a> Fields<'a> {
    fn of(series: &'a Series) -> Self {
        Fields {
            name: texts(series, "cache"),
            flags: texts(series, "flags"),
            active_objs: ints(series, "active_objs"),
            num_objs: ints(series, "num_objs"),
            objsize: ints(series, "objsize"),
            objperslab: ints(series, "objperslab"),
            pagesperslab: ints(series, "pagesperslab"),
            num_slabs: ints(series, "num_slabs"),
        }
    }
}

impl<'a> Reading<'a> {
    pub(super) fn of(input: &'a Input<'a>) -> Result<Self, SlabError> {
        let hint = "record with `perflab slab record` as root, or import a log";
        let none = SlabError::NoRows { monitor: "slabinfo", hint };
        let series = with_rows(input.slabinfo).ok_or(none)?;
        let scans = Scans::read(input.caches, input.tool);
        let page_size = match scans.page_sizes.as_slice() {
            [] => input.system.page_size.filter(|size| *size > 0).ok_or(SlabError::NoPageSize)?,
            [one] => *one,
            several => return Err(SlabError::MixedPageSizes { sizes: several.to_vec() }),
        };
        let held = Held::read(input.exact, input.tool);
        Ok(Reading { input, series, fields: Fields::of(series), scans, held, page_size })
    }

    pub(super) fn recording(self) -> Result<Recording, SlabError> {
        let (mut names, mut ticks) = (Names::default(), Vec::new());
        let mut rows = Vec::with_capacity(self.series.at.len());
        let mut counts = RowCounts::default();
        for row in in_time(self.series) {
            let now = at(self.series, row);
            if ticks.last() != Some(&now) {
                ticks.push(now);
                names.next_tick();
            }
            let cache = self.fields.name.text(row).map(|name| names.number(name));
            let found = cache.and_then(|cache| self.row(row, cache, ticks.len() - 1, now, &names));
            counts.count(found.map(|found| (found.flags, found.slabs == 0)));
            rows.extend(found);
        }
        let caches = names.caches(&rows, &ticks, &self.scans);
        let (system, phases) = (self.input.system, self.input.phases());
        Ok(Recording { caches, ticks, rows, counts, page_size: self.page_size, system, phases })
    }

    fn row(&self, row: usize, cache: usize, tick: usize, now: Nanos, names: &Names) -> Option<Observed> {
        let fields = &self.fields;
        let mut found = Observed {
            cache,
            tick,
            objects: fields.active_objs.count(row)?,
            total_objects: fields.num_objs.count(row)?,
            slabs: fields.num_slabs.count(row)?,
            slab_size: fields.objsize.count(row)?,
            objs_per_slab: fields.objperslab.count(row)?,
            bytes_per_slab: fields.pagesperslab.count(row)?.checked_mul(self.page_size)?,
            object_size: None,
            hidden_objects: None,
            flags: fields.flags.text(row).map(RowFlags::parse).unwrap_or_default(),
        };
        if !found.is_believable() {
            return None;
        }
        let name = names.name(cache);
        let attributes = holding(self.scans.of(name), now, found.slab_size);
        found.object_size = attributes.and_then(|attributes| attributes.object_size);
        found.hidden_objects = self.hidden(name, now, attributes, &found);
        Some(found.checked())
    }

    fn hidden(&self, name: &str, now: Nanos, known: Option<&Attributes>, row: &Observed) -> Option<u64> {
        let hidden = Hidden {
            cpu_slabs: self.held.cpu_slabs(name, now),
            cpu_partial: known.and_then(|known| known.cpu_partial),
            sheaf_capacity: known.and_then(|known| known.sheaf_capacity),
        };
        hidden.objects(row.slabs, row.objs_per_slab, &self.input.system)
    }
}

/// Caches by name and ordinal.
#[derive(Default)]
struct Names {
    names: Vec<(String, u32)>,
    numbers: HashMap<String, Vec<usize>>,
    /// Caches of the tick before, and of this one, in their order.
    before: Vec<usize>,
    now: Vec<usize>,
    /// The tick in which a cache was last seen.
    seen: Vec<u64>,
    tick: u64,
}

impl Names {
    fn next_tick(&mut self) {
        std::mem::swap(&mut self.before, &mut self.now);
        self.now.clear();
        self.tick += 1;
    }

    fn name(&self, number: usize) -> &str {
        self.names.get(number).map_or("", |(name, _)| name)
    }

    /// The number of the next row's cache.
    fn number(&mut self, name: &str) -> usize {
        let guess = self.before.get(self.now.len()).copied().filter(|guess| self.name(*guess) == name);
        let fits = guess.filter(|guess| self.is_next(*guess));
        let number = fits.unwrap_or_else(|| self.looked_up(name));
        if let Some(seen) = self.seen.get_mut(number) {
            *seen = self.tick;
        }
        self.now.push(number);
        number
    }

    /// Whether it is the first of its name that this tick has not shown yet.
    fn is_next(&self, number: usize) -> bool {
        let is_new = self.seen.get(number) != Some(&self.tick);
        let ordinal = self.names.get(number).map_or(0, |(_, ordinal)| *ordinal);
        is_new && (ordinal == 0 || self.looked(self.name(number)) == Some(number))
    }

    fn looked(&self, name: &str) -> Option<usize> {
        let known = self.numbers.get(name)?;
        known.iter().copied().find(|number| self.seen.get(*number) != Some(&self.tick))
    }

    fn looked_up(&mut self, name: &str) -> usize {
        if let Some(known) = self.looked(name) {
            return known;
        }
        let number = self.names.len();
        let same = self.numbers.entry(name.into()).or_default();
        self.names.push((name.into(), u32::try_from(same.len()).unwrap_or(u32::MAX)));
        self.seen.push(0);
        same.push(number);
        number
    }

    /// The caches, each with the last attributes that fit its last row.
    fn caches(self, rows: &[Observed], ticks: &[Nanos], scans: &Scans) -> Vec<Cache> {
        let mut attributes: Vec<Option<Attributes>> = vec![None; self.names.len()];
        let mut open = vec![true; self.names.len()];
        for row in rows.iter().rev() {
            let Some(wanted) = open.get_mut(row.cache).filter(|open| **open) else { continue };
            *wanted = false;
            let (name, _) = self.names.get(row.cache).map_or(("", 0), |(name, ordinal)| (name, *ordinal));
            let now = ticks.get(row.tick).copied().unwrap_or_default();
            if let Some(slot) = attributes.get_mut(row.cache) {
                *slot = holding(scans.of(name), now, row.slab_size).cloned();
            }
        }
        let named = self.names.into_iter().zip(attributes);
        named.map(|((name, ordinal), attributes)| Cache { name, ordinal, attributes }).collect()
    }
}
