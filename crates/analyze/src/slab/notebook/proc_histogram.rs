//! Owns the notebook's histogram of /proc/slabinfo. It refuses to call the result efficiency anywhere but here: it is
//! the packing, one constant a cache.

use std::collections::HashMap;

use perflab_model::series::{Series, Spans};
use serde::Serialize;

use super::super::columns::{ints, texts};
use super::super::error::SlabError;
use super::super::input::Input;
use super::super::intern::Interner;
use super::super::recording::with_rows;
use super::bins::Bins;
use super::reason::Reason;

/// The notebook's bins.
const BINS: usize = 100;
/// The notebook's page.
const PAGE: f64 = 4096.0;

/// num_objs * objsize * 100 / (num_slabs * 4096 * 2^order) of all rows, in bins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcHistogram {
    /// The notebook's.
    pub notebook: Bins,
    /// Ours in the same bins: active_objs * objsize * 100 / S, with the row's own pages; rows without slabs have none.
    /// Null where the page size is unknown.
    pub ours: Option<Bins>,
    /// Rows read.
    pub rows: usize,
    /// Rows in the notebook's bins.
    pub counted: usize,
    /// Caches whose number was not the same at every tick with slabs; the notebook's is the packing, so none.
    pub moving: usize,
    /// Why they differ.
    pub reasons: Vec<Reason>,
}

/// Makes the histogram.
///
/// # Errors
/// No `slabinfo` rows.
pub fn proc_histogram(input: &Input) -> Result<ProcHistogram, SlabError> {
    let hint = "import a log of /proc/slabinfo";
    let none = SlabError::NoRows { monitor: "slabinfo", hint };
    let spans = input.slabinfo.filter(|spans| spans.rows() > 0).ok_or(none)?;
    let page_size = input.page_size().ok();
    let found = Values::read(spans, &Orders::of(input.caches), page_size);
    let notebook = Bins::of(&found.notebook, BINS);
    let ours = page_size.map(|_| notebook.with(&found.ours));
    let (rows, counted) = (spans.rows(), found.notebook.iter().map(|(_, times)| times).sum());
    Ok(ProcHistogram {
        notebook,
        ours,
        rows,
        counted,
        moving: found.moving,
        reasons: reasons(page_size, &found),
    })
}

fn reasons(page_size: Option<u64>, found: &Values) -> Vec<Reason> {
    let mut reasons = vec![Reason::CapacityAsUse, Reason::PaddedSize];
    reasons.extend((found.empty > 0).then_some(Reason::EmptyDropped { rows: found.empty }));
    reasons.extend((page_size != Some(4096)).then_some(Reason::PageSizeAssumed { page_size }));
    reasons.extend((found.assumed > 0).then_some(Reason::OrderAssumed { rows: found.assumed }));
    reasons.push(Reason::CachesAlike);
    reasons
}

/// The orders that the notebook looks up by name; 0 where a name is missing, as there.
struct Orders<'a>(Option<HashMap<&'a str, u64>>);

impl<'a> Orders<'a> {
    fn of(caches: Option<&'a Series>) -> Self {
        let read = |series: &'a Series| {
            let (name, order) = (texts(series, "cache"), ints(series, "order"));
            let pair = |row| Some((name.text(row)?, order.count(row)?));
            (0..series.at.len()).filter_map(pair).collect()
        };
        Orders(with_rows(caches).map(read))
    }

    /// The order of a cache, if it is in the list. Nothing at all without any list: then the row's own pages count.
    fn of_cache(&self, name: &str) -> Option<Option<i32>> {
        let known = self.0.as_ref()?;
        Some(known.get(name).and_then(|order| i32::try_from(*order).ok()))
    }
}

/// What was seen of a cache.
struct CacheSoFar {
    /// As [`Orders::of_cache`].
    order: Option<Option<i32>>,
    /// The first number that it had.
    value: Option<f64>,
    /// Whether it had another one since.
    is_moving: bool,
}

/// Both numbers of every row that has them, each with the number of its ticks.
#[derive(Default)]
struct Values {
    notebook: Vec<(f64, usize)>,
    ours: Vec<(f64, usize)>,
    /// Rows of 0 / 0.
    empty: usize,
    /// Rows with an assumed order.
    assumed: usize,
    /// Caches whose number changed.
    moving: usize,
}

impl Values {
    fn read(spans: &Spans, orders: &Orders, page_size: Option<u64>) -> Self {
        let series = &spans.series;
        let name = texts(series, "cache");
        let (active, total) = (ints(series, "active_objs"), ints(series, "num_objs"));
        let (size, slabs) = (ints(series, "objsize"), ints(series, "num_slabs"));
        let pages = ints(series, "pagesperslab");
        let (mut found, mut names) = (Values::default(), Interner::default());
        let mut caches: Vec<CacheSoFar> = Vec::new();
        for row in 0..series.at.len() {
            let fields = || Some((name.text(row)?, total.count(row)?, size.count(row)?, slabs.count(row)?));
            let Some((name, total, size, slabs)) = fields() else { continue };
            let times = spans.span(row).len();
            let own_pages = pages.count(row).unwrap_or(0);
            let number = names.number(name);
            if number == caches.len() {
                caches.push(CacheSoFar { order: orders.of_cache(name), value: None, is_moving: false });
            }
            let Some(cache) = caches.get_mut(number) else { continue };
            let pages = cache.order.map_or(own_pages as f64, |order| 2_f64.powi(order.unwrap_or(0)));
            found.assumed += times * usize::from(cache.order == Some(None));
            let value = (total as f64 * size as f64 * 100.0) / (slabs as f64 * (PAGE * pages));
            if !value.is_finite() {
                found.empty += times;
                continue;
            }
            found.notebook.push((value, times));
            cache.is_moving |= *cache.value.get_or_insert(value) != value;
            let bytes = slabs as f64 * own_pages as f64 * page_size.unwrap_or(0) as f64;
            let used = active.count(row).unwrap_or(0) as f64 * size as f64;
            found.ours.extend((bytes > 0.0).then(|| (used * 100.0 / bytes, times)));
        }
        found.moving = caches.iter().filter(|cache| cache.is_moving).count();
        found
    }
}
