//! The screen: a line of totals, the caches, a line of keys.

use perflab_model::Bytes;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line as Text;
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};

use super::view::{By, Line, View};

const KEYS: &str =
    "q quit  / search  sort by ←→ or n b g d w e o s  r reverse  z empty  0 growth from now  p pause";

/// Columns in the order in which they go where the terminal is narrow.
const FIRST_TO_GO: [By; 5] = [By::Size, By::Objects, By::Step, By::Wasted, By::Efficiency];

/// Draws the view; the table scrolls with the selected line.
pub fn draw(frame: &mut Frame<'_>, view: &mut View, table: &mut TableState) {
    let [head, body, names, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(2),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    view.page = usize::from(body.height.saturating_sub(2)).max(1);
    frame.render_widget(Paragraph::new(totals(view)), head);
    table.select(Some(view.selected));
    draw_caches(frame, view, table, body);
    frame.render_widget(Paragraph::new(selected(view)), names);
    let dim = Style::default().add_modifier(Modifier::DIM);
    let below =
        if view.typing { format!("/{}▏  Enter keeps it, Esc drops it", view.search) } else { KEYS.into() };
    frame.render_widget(Paragraph::new(below).style(dim), keys);
}

fn totals(view: &View) -> String {
    let share = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.2} %"));
    let state = match (view.paused, view.search.is_empty()) {
        (true, _) => "   paused".to_owned(),
        (false, false) => format!("   search: {}", view.search),
        (false, true) => String::new(),
    };
    format!(
        "slab {}   growth {}   wasted {}   efficiency {}, at least {}{state}",
        bytes(view.total.slab_bytes),
        growth(view.total_growth),
        change(view.total.wasted()),
        share(view.total.overall().percent()),
        share(view.total.overall_at_least().and_then(perflab_analyze::slab::Ratio::percent)),
    )
}

fn draw_caches(frame: &mut Frame<'_>, view: &View, table: &mut TableState, area: Rect) {
    let columns = columns(area.width);
    let header = columns.iter().map(|by| {
        let mark = match (*by == view.by, view.reversed) {
            (false, _) => "",
            (true, false) => "▼",
            (true, true) => "▲",
        };
        let text = Text::from(format!("{}{mark}", title(*by)));
        let style = if *by == view.by { Modifier::BOLD | Modifier::UNDERLINED } else { Modifier::BOLD };
        Cell::from(text.alignment(side(*by))).style(Style::default().add_modifier(style))
    });
    let header = Row::new(header.collect::<Vec<_>>());
    let row = |line: &Line| Row::new(columns.iter().map(|by| cell(line, *by)).collect::<Vec<_>>());
    let rows: Vec<Row<'_>> = view.shown().into_iter().map(row).collect();
    let widths = columns.iter().map(|by| match by {
        By::Name => Constraint::Min(width(*by)),
        by => Constraint::Length(width(*by)),
    });
    let reversed = Style::default().add_modifier(Modifier::REVERSED);
    let caches = Table::new(rows, widths).header(header).row_highlight_style(reversed);
    frame.render_stateful_widget(caches, area, table);
}

/// The columns that fit: a size that lost its first digits would be a lie.
fn columns(room: u16) -> Vec<By> {
    let mut kept = By::ALL.to_vec();
    for by in FIRST_TO_GO {
        let needed: u16 = kept.iter().map(|by| width(*by) + 1).sum();
        if needed > room {
            kept.retain(|one| *one != by);
        }
    }
    kept
}

fn width(by: By) -> u16 {
    match by {
        By::Name => 16,
        By::Objects => 10,
        By::Size => 7,
        _ => 11,
    }
}

fn title(by: By) -> &'static str {
    match by {
        By::Name => "cache",
        By::Slab => "slab",
        By::Growth => "growth",
        By::Step => "step",
        By::Wasted => "wasted",
        By::Efficiency => "efficiency",
        By::Objects => "objects",
        By::Size => "size",
    }
}

fn side(by: By) -> Alignment {
    if by == By::Name { Alignment::Left } else { Alignment::Right }
}

fn cell(line: &Line, by: By) -> Cell<'static> {
    let text = match by {
        By::Name => line.name.clone(),
        By::Slab => bytes(line.usage.slab_bytes),
        By::Growth => growth(line.growth),
        By::Step => growth(line.step),
        By::Wasted => change(line.usage.wasted()),
        By::Efficiency => line.usage.overall().percent().map_or("-".into(), |share| format!("{share:.2} %")),
        By::Objects => line.objects.to_string(),
        By::Size => line.object_size.to_string(),
    };
    Cell::from(Text::from(text).alignment(side(by)))
}

/// All names of the selected cache.
fn selected(view: &View) -> String {
    let shown = view.shown();
    let Some(line) = shown.get(view.selected) else { return "no cache is called like that".into() };
    let others: Vec<&str> =
        line.members.iter().map(String::as_str).filter(|name| *name != line.name).collect();
    let place = format!("{}/{}  {}", view.selected + 1, shown.len(), line.name);
    if others.is_empty() { place } else { format!("{place} = {}", others.join(", ")) }
}

fn bytes(value: u128) -> String {
    Bytes(u64::try_from(value).unwrap_or(u64::MAX)).to_string()
}

/// A signed size; nothing where nothing changed.
fn growth(value: i128) -> String {
    match value {
        0 => "·".into(),
        value if value > 0 => format!("+{}", change(value)),
        value => change(value),
    }
}

fn change(value: i128) -> String {
    let sign = if value < 0 { "−" } else { "" };
    format!("{sign}{}", bytes(value.unsigned_abs()))
}
