use perflab_analyze::slab::{SlabFacts, SlabInput};
use perflab_model::Nanos;
use perflab_model::series::{ColumnData, Series, SeriesSchema};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::widgets::TableState;

use super::*;

/// A reading of three caches with so many slabs of one page.
fn three_cache_reading(slabs: [i64; 3]) -> SlabRecording {
    let names = ["dentry", "filp", "vm_area_struct"];
    let int = |values: Vec<i64>| ColumnData::Int(values.into_iter().map(Some).collect());
    let columns = [
        ("cache", ColumnData::Text(names.iter().map(|name| Some((*name).to_owned())).collect())),
        ("active_objs", int(slabs.iter().map(|slabs| slabs * 9).collect())),
        ("num_objs", int(slabs.iter().map(|slabs| slabs * 10).collect())),
        ("objsize", int(vec![400, 300, 200])),
        ("objperslab", int(vec![10; 3])),
        ("pagesperslab", int(vec![1; 3])),
        ("num_slabs", int(slabs.to_vec())),
    ];
    let (declared, columns): (Vec<_>, Vec<_>) = columns
        .into_iter()
        .map(|(name, data)| match &data {
            ColumnData::Text(_) => (perflab_model::ColumnSpec::key(name), data),
            _ => (perflab_model::ColumnSpec::gauge(name, "1"), data),
        })
        .unzip();
    let schema = SeriesSchema {
        monitor: "slabinfo".into(),
        source: String::new(),
        interval: Nanos(1),
        columns: declared,
    };
    let series = Series { schema, at: vec![Nanos(1); 3], columns };
    let system = SlabFacts { page_size: Some(4096), cpus: Some(2), nodes: Some(1) };
    SlabRecording::read(&SlabInput {
        slabinfo: Some(&perflab_model::series::RowRuns::from_series(&series)),
        system,
        ..SlabInput::default()
    })
    .unwrap()
}

fn sample_view() -> SlabTop {
    let mut view = SlabTop::new(SlabTopColumn::Slab);
    view.add_reading(&three_cache_reading([5, 9, 0]));
    view.add_reading(&three_cache_reading([7, 9, 4]));
    view
}

fn press_keys(view: &mut SlabTop, keys: &str) {
    for letter in keys.chars() {
        let code = if letter == '\n' { KeyCode::Enter } else { KeyCode::Char(letter) };
        view.press_key(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

fn visible_names(view: &SlabTop) -> Vec<&str> {
    view.visible_rows().into_iter().map(|line| line.name.as_str()).collect()
}

#[test]
fn keys_sort() {
    let mut view = sample_view();
    assert_eq!(visible_names(&view), ["filp", "dentry", "vm_area_struct"]);
    press_keys(&mut view, "g");
    assert_eq!(visible_names(&view), ["vm_area_struct", "dentry", "filp"]);
    press_keys(&mut view, "r");
    assert_eq!(visible_names(&view), ["filp", "dentry", "vm_area_struct"]);
    press_keys(&mut view, "e");
    assert_eq!(visible_names(&view), ["vm_area_struct", "filp", "dentry"], "the worst first");
}

#[test]
fn growth_counts_from_the_start_or_from_when_it_was_asked() {
    let mut view = sample_view();
    assert_eq!(view.total_growth, 6 * 4096);
    press_keys(&mut view, "0");
    assert_eq!(view.total_growth, 0);
    view.add_reading(&three_cache_reading([8, 9, 4]));
    assert_eq!(view.total_growth, 4096);
}

#[test]
fn a_search_narrows_and_escape_widens() {
    let mut view = sample_view();
    press_keys(&mut view, "/VM_\n");
    assert_eq!(visible_names(&view), ["vm_area_struct"]);
    view.press_key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE));
    assert_eq!(visible_names(&view).len(), 3);
    press_keys(&mut view, "/q\n");
    assert!(!view.quit, "a letter of the search is no command");
}

#[test]
fn control_c_quits_even_from_a_search() {
    let mut view = sample_view();
    press_keys(&mut view, "/");
    view.press_key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert!(view.quit);
}

#[test]
fn the_screen_reads_as_it_was_looked_at() {
    insta::assert_snapshot!("wide", draw_screen(100));
    insta::assert_snapshot!("narrow", draw_screen(50));
}

fn draw_screen(width: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(width, 9)).unwrap();
    let mut view = sample_view();
    view.press_key(KeyEvent::new(KeyCode::End, KeyModifiers::NONE));
    let mut table = TableState::default();
    terminal.draw(|frame| super::super::draw::draw_slab_top(frame, &mut view, &mut table)).unwrap();
    terminal.backend().clone()
}
