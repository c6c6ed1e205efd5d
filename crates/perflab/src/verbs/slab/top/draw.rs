//! The screen: a line of totals, the caches, a line of keys.

use perflab_model::Bytes;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line as Text;
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};

use super::view::{SlabTop, SlabTopColumn, SlabTopRow};

const KEYS: &str =
    "q quit  / search  sort by ←→ or n b g d w e o s  r reverse  z empty  0 growth from now  p pause";

/// Columns in the order in which they go where the terminal is narrow.
const FIRST_TO_GO: [SlabTopColumn; 5] = [
    SlabTopColumn::Size,
    SlabTopColumn::Objects,
    SlabTopColumn::Step,
    SlabTopColumn::Wasted,
    SlabTopColumn::Efficiency,
];

/// Draws the view; the table scrolls with the selected line.
pub fn draw_slab_top(frame: &mut Frame<'_>, view: &mut SlabTop, table: &mut TableState) {
    let [head, body, names, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(2),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    view.page = usize::from(body.height.saturating_sub(2)).max(1);
    frame.render_widget(Paragraph::new(totals_text(view)), head);
    table.select(Some(view.selected));
    draw_caches(frame, view, table, body);
    frame.render_widget(Paragraph::new(selected_cache_names(view)), names);
    let dim = Style::default().add_modifier(Modifier::DIM);
    let below =
        if view.typing { format!("/{}▏  Enter keeps it, Esc drops it", view.search) } else { KEYS.into() };
    frame.render_widget(Paragraph::new(below).style(dim), keys);
}

fn totals_text(view: &SlabTop) -> String {
    let share = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.2} %"));
    let state = match (view.paused, view.search.is_empty()) {
        (true, _) => "   paused".to_owned(),
        (false, false) => format!("   search: {}", view.search),
        (false, true) => String::new(),
    };
    format!(
        "slab {}   growth {}   wasted {}   efficiency {}, at least {}{state}",
        bytes_text(view.total.slab_bytes),
        growth_text(view.total_growth),
        signed_bytes_text(view.total.wasted_bytes()),
        share(view.total.overall().percent()),
        share(view.total.overall_at_least().and_then(perflab_analyze::slab::ExactRatio::percent)),
    )
}

fn draw_caches(frame: &mut Frame<'_>, view: &SlabTop, table: &mut TableState, area: Rect) {
    let columns = fitting_columns(area.width);
    let header = columns.iter().map(|by| {
        let mark = match (*by == view.sort_column, view.reversed) {
            (false, _) => "",
            (true, false) => "▼",
            (true, true) => "▲",
        };
        let text = Text::from(format!("{}{mark}", column_title(*by)));
        let style =
            if *by == view.sort_column { Modifier::BOLD | Modifier::UNDERLINED } else { Modifier::BOLD };
        Cell::from(text.alignment(column_alignment(*by))).style(Style::default().add_modifier(style))
    });
    let header = Row::new(header.collect::<Vec<_>>());
    let row =
        |line: &SlabTopRow| Row::new(columns.iter().map(|by| cache_cell(line, *by)).collect::<Vec<_>>());
    let rows: Vec<Row<'_>> = view.visible_rows().into_iter().map(row).collect();
    let widths = columns.iter().map(|by| match by {
        SlabTopColumn::Name => Constraint::Min(column_width(*by)),
        by => Constraint::Length(column_width(*by)),
    });
    let reversed = Style::default().add_modifier(Modifier::REVERSED);
    let caches = Table::new(rows, widths).header(header).row_highlight_style(reversed);
    frame.render_stateful_widget(caches, area, table);
}

/// The columns that fit: a size that lost its first digits would be a lie.
fn fitting_columns(room: u16) -> Vec<SlabTopColumn> {
    let mut kept = SlabTopColumn::ALL.to_vec();
    for by in FIRST_TO_GO {
        let needed: u16 = kept.iter().map(|by| column_width(*by) + 1).sum();
        if needed > room {
            kept.retain(|one| *one != by);
        }
    }
    kept
}

fn column_width(by: SlabTopColumn) -> u16 {
    match by {
        SlabTopColumn::Name => 16,
        SlabTopColumn::Objects => 10,
        SlabTopColumn::Size => 7,
        _ => 11,
    }
}

fn column_title(by: SlabTopColumn) -> &'static str {
    match by {
        SlabTopColumn::Name => "cache",
        SlabTopColumn::Slab => "slab",
        SlabTopColumn::Growth => "growth",
        SlabTopColumn::Step => "step",
        SlabTopColumn::Wasted => "wasted",
        SlabTopColumn::Efficiency => "efficiency",
        SlabTopColumn::Objects => "objects",
        SlabTopColumn::Size => "size",
    }
}

fn column_alignment(by: SlabTopColumn) -> Alignment {
    if by == SlabTopColumn::Name { Alignment::Left } else { Alignment::Right }
}

fn cache_cell(line: &SlabTopRow, by: SlabTopColumn) -> Cell<'static> {
    let text = match by {
        SlabTopColumn::Name => line.name.clone(),
        SlabTopColumn::Slab => bytes_text(line.usage.slab_bytes),
        SlabTopColumn::Growth => growth_text(line.growth),
        SlabTopColumn::Step => growth_text(line.step),
        SlabTopColumn::Wasted => signed_bytes_text(line.usage.wasted_bytes()),
        SlabTopColumn::Efficiency => {
            line.usage.overall().percent().map_or("-".into(), |share| format!("{share:.2} %"))
        }
        SlabTopColumn::Objects => line.objects.to_string(),
        SlabTopColumn::Size => line.object_size.to_string(),
    };
    Cell::from(Text::from(text).alignment(column_alignment(by)))
}

/// All names of the selected cache.
fn selected_cache_names(view: &SlabTop) -> String {
    let shown = view.visible_rows();
    let Some(line) = shown.get(view.selected) else { return "no cache is called like that".into() };
    let others: Vec<&str> =
        line.members.iter().map(String::as_str).filter(|name| *name != line.name).collect();
    let place = format!("{}/{}  {}", view.selected + 1, shown.len(), line.name);
    if others.is_empty() { place } else { format!("{place} = {}", others.join(", ")) }
}

fn bytes_text(value: u128) -> String {
    Bytes(u64::try_from(value).unwrap_or(u64::MAX)).to_string()
}

/// A signed size; nothing where nothing changed.
fn growth_text(value: i128) -> String {
    match value {
        0 => "·".into(),
        value if value > 0 => format!("+{}", signed_bytes_text(value)),
        value => signed_bytes_text(value),
    }
}

fn signed_bytes_text(value: i128) -> String {
    let sign = if value < 0 { "−" } else { "" };
    format!("{sign}{}", bytes_text(value.unsigned_abs()))
}
