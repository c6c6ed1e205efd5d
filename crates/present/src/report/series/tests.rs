use perflab_model::series::{ColumnData, ColumnSpec, Series, SeriesSchema};
use perflab_model::{Nanos, Unit};

use super::*;
use crate::report::data::PackedItem;

fn unpack_numbers(packed: &data::PackedColumn) -> Vec<Option<f64>> {
    let (mut at, mut all) = (0_i64, Vec::new());
    for item in &packed.items {
        match item {
            PackedItem::Step(step) => {
                at += step;
                all.push(Some(at as f64 / packed.scale));
            }
            PackedItem::Repeat([times]) => all.extend((0..*times).map(|_| Some(at as f64 / packed.scale))),
            PackedItem::Missing(()) => all.push(None),
        }
    }
    all
}

#[test]
fn packed_numbers_come_back_as_they_were() {
    let values = vec![Some(5), Some(5), Some(5), None, Some(5), Some(-2), None, None, Some(0)];
    let packed = pack::pack_integers(values.iter().copied());
    assert_eq!(unpack_numbers(&packed), values.iter().map(|v| v.map(|n| n as f64)).collect::<Vec<_>>());
    assert_eq!(serde_json::to_string(&packed.items).unwrap(), "[5,[2],null,0,-7,null,null,2]");
    let floats = vec![Some(0.25), Some(1.5), None, Some(12.125)];
    assert_eq!(unpack_numbers(&pack::pack_floats(&floats)), floats);
}

#[test]
fn counters_grow_and_a_reset_is_missing() {
    let cells = [Some(10), Some(15), Some(3), None, Some(4), Some(9)];
    assert_eq!(counter_steps(&cells, i64::checked_sub), [None, Some(5), None, None, None, Some(5)]);
}

#[test]
fn thinning_keeps_the_only_spike() {
    let mut values = vec![Some(1.0); 10_000];
    values[7_777] = Some(99.0);
    let kept = thin::bucket_extremes(&values, 1_000);
    assert_eq!(kept.len(), 1_000);
    assert!(kept.contains(&Some(99.0)));
    let at: Vec<i64> = (0..10_000).collect();
    assert_eq!(thin::bucket_times(&at, 1_000).len(), 1_000);
}

#[test]
fn rows_of_one_tick_become_tracks_of_their_subjects() {
    let columns = vec![ColumnSpec::key("cache"), ColumnSpec::gauge("objects", "objects")];
    let schema = SeriesSchema {
        monitor: "slabinfo".into(),
        source: "/proc/slabinfo".into(),
        interval: Nanos(1),
        columns,
    };
    let names = ["a", "b", "a", "b"].map(|name| Some(name.to_owned())).to_vec();
    let series = Series {
        schema,
        at: [0, 0, 9, 9].map(Nanos).to_vec(),
        columns: vec![ColumnData::Text(names), ColumnData::Int(vec![Some(1), Some(2), Some(3), None])],
    };
    let spans = RowRuns::from_series(&series);
    let subjects = rows_by_subject(&spans.series);
    let tracks: Vec<_> = track_sources(&spans.series, &subjects)
        .map(|place| place.values_by_tick(&spans).whole_track())
        .collect();
    assert_eq!(tracks.len(), 2);
    assert_eq!((tracks[1].key.as_str(), tracks[1].column.as_str()), ("b", "objects"));
    assert_eq!(unpack_numbers(&tracks[1].values), [Some(2.0), None]);
    assert_eq!(tracks[0].unit, Unit::new("objects").0);
}

#[test]
fn what_swings_widely_is_livelier_than_what_flickers() {
    let wide = thin::variability([200_000.0, 400_000.0, 300_000.0].into_iter());
    let flicker = thin::variability([0.0, 1.0, 0.0].into_iter());
    assert!(wide > flicker && flicker > thin::variability([7.0, 7.0].into_iter()));
}
