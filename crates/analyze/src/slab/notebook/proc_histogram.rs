//! Owns the notebook's histogram of /proc/slabinfo. It refuses to call the result efficiency anywhere but here: it is
//! the packing, one constant a cache.

use std::collections::HashMap;

use perflab_model::series::{RowRuns, Series};
use serde::Serialize;

use super::super::columns::{int_column, text_column};
use super::super::error::SlabError;
use super::super::input::SlabInput;
use super::super::intern::NameInterner;
use super::super::recording::non_empty;
use super::bins::NumpyHistogram;
use super::reason::NotebookDifference;

/// The notebook's bins.
const PROC_HISTOGRAM_BINS: usize = 100;
/// The notebook's page.
const PAGE: f64 = 4096.0;

/// num_objs * objsize * 100 / (num_slabs * 4096 * 2^order) of all rows, in bins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotebookProcHistogram {
    /// The notebook's.
    pub notebook: NumpyHistogram,
    /// Ours in the same bins: active_objs * objsize * 100 / S, with the row's own pages; rows without slabs have none.
    /// Null where the page size is unknown.
    pub ours: Option<NumpyHistogram>,
    /// Rows read.
    pub rows: usize,
    /// Rows in the notebook's bins.
    pub counted: usize,
    /// Caches whose number was not the same at every tick with slabs; the notebook's is the packing, so none.
    pub moving: usize,
    /// Why they differ.
    pub reasons: Vec<NotebookDifference>,
}

/// Makes the histogram.
///
/// # Errors
/// No `slabinfo` rows.
pub fn notebook_proc_histogram(input: &SlabInput) -> Result<NotebookProcHistogram, SlabError> {
    let hint = "import a log of /proc/slabinfo";
    let none = SlabError::NoRows { monitor: "slabinfo", hint };
    let spans = input.slabinfo.filter(|spans| spans.row_count() > 0).ok_or(none)?;
    let page_size = input.page_size().ok();
    let found = ProcEfficiencies::read(spans, &CacheOrders::from_series(input.caches), page_size);
    let notebook = NumpyHistogram::from_values(&found.notebook, PROC_HISTOGRAM_BINS);
    let ours = page_size.map(|_| notebook.with_same_bins(&found.ours));
    let (rows, counted) = (spans.row_count(), found.notebook.iter().map(|(_, times)| times).sum());
    Ok(NotebookProcHistogram {
        notebook,
        ours,
        rows,
        counted,
        moving: found.moving,
        reasons: proc_histogram_differences(page_size, &found),
    })
}

fn proc_histogram_differences(page_size: Option<u64>, found: &ProcEfficiencies) -> Vec<NotebookDifference> {
    let mut reasons = vec![NotebookDifference::CapacityAsUse, NotebookDifference::PaddedSize];
    reasons.extend((found.empty > 0).then_some(NotebookDifference::EmptyDropped { rows: found.empty }));
    reasons.extend((page_size != Some(4096)).then_some(NotebookDifference::PageSizeAssumed { page_size }));
    reasons.extend((found.assumed > 0).then_some(NotebookDifference::OrderAssumed { rows: found.assumed }));
    reasons.push(NotebookDifference::CachesAlike);
    reasons
}

/// The orders that the notebook looks up by name; 0 where a name is missing, as there.
struct CacheOrders<'a>(Option<HashMap<&'a str, u64>>);

impl<'a> CacheOrders<'a> {
    fn from_series(caches: Option<&'a Series>) -> Self {
        let read = |series: &'a Series| {
            let (name, order) = (text_column(series, "cache"), int_column(series, "order"));
            let pair = |row| Some((name.text(row)?, order.count(row)?));
            (0..series.at.len()).filter_map(pair).collect()
        };
        CacheOrders(non_empty(caches).map(read))
    }

    /// The order of a cache, if it is in the list. Nothing at all without any list: then the row's own pages count.
    fn order_of_cache(&self, name: &str) -> Option<Option<i32>> {
        let known = self.0.as_ref()?;
        Some(known.get(name).and_then(|order| i32::try_from(*order).ok()))
    }
}

/// What was seen of a cache.
struct ObservedCacheValue {
    /// As [`CacheOrders::order_of_cache`].
    order: Option<Option<i32>>,
    /// The first number that it had.
    value: Option<f64>,
    /// Whether it had another one since.
    is_moving: bool,
}

/// Both numbers of every row that has them, each with the number of its ticks.
#[derive(Default)]
struct ProcEfficiencies {
    notebook: Vec<(f64, usize)>,
    ours: Vec<(f64, usize)>,
    /// Rows of 0 / 0.
    empty: usize,
    /// Rows with an assumed order.
    assumed: usize,
    /// Caches whose number changed.
    moving: usize,
}

impl ProcEfficiencies {
    fn read(spans: &RowRuns, orders: &CacheOrders, page_size: Option<u64>) -> Self {
        let series = &spans.series;
        let name = text_column(series, "cache");
        let (active, total) = (int_column(series, "active_objs"), int_column(series, "num_objs"));
        let (size, slabs) = (int_column(series, "objsize"), int_column(series, "num_slabs"));
        let pages = int_column(series, "pagesperslab");
        let (mut found, mut names) = (ProcEfficiencies::default(), NameInterner::default());
        let mut caches: Vec<ObservedCacheValue> = Vec::new();
        for row in 0..series.at.len() {
            let fields = || Some((name.text(row)?, total.count(row)?, size.count(row)?, slabs.count(row)?));
            let Some((name, total, size, slabs)) = fields() else { continue };
            let times = spans.ticks_of_row(row).len();
            let own_pages = pages.count(row).unwrap_or(0);
            let number = names.intern(name);
            if number == caches.len() {
                caches.push(ObservedCacheValue {
                    order: orders.order_of_cache(name),
                    value: None,
                    is_moving: false,
                });
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
