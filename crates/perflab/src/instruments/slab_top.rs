//! `perflab slab top`: the caches of this machine, live; full-screen on a terminal, once anywhere else.
//!
//! The terminal is raw while we watch, and restored when we leave, however we leave. What the screen shows and how keys
//! change it is a value that knows no terminal.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use perflab_analyze::slab::{
    self, CacheOrder, CacheTableOptions, SlabFacts, SlabInput, SlabRecording, SlabUsage,
};
use perflab_formats::kernel::meminfo::find_meminfo_field;
use perflab_formats::kernel::slabinfo::SlabinfoRow;
use perflab_model::fact_table;
use perflab_model::series::{RowRuns, Series};
use perflab_model::{Bytes, CellRow, Nanos};
use perflab_observe::{Monitor, Root};
use perflab_present::comparison::{Grid, GridCell, GridColumn};
use perflab_present::slab as present;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line as Text;
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};

use crate::app::{self, App};
use crate::failure::{Exit, Failure, UsageError};
use crate::instruments::slab_args::{CACHE_BARS, SlabTopArgs, WITHOUT_ROOT, grid_width};
use perflab_model::quantity::format_share;

/// Watches the caches until q; prints one snapshot where nobody could watch.
pub fn show_slab_top(context: &App, args: &SlabTopArgs) -> Result<Exit, Failure> {
    let every = args.every;
    if !rustix::process::geteuid().is_root() {
        if args.output.is_some() {
            let what = "without root, only totals are recorded, which cannot be drawn";
            return Err(UsageError::new(what, "run it as root, or omit --output").into());
        }
        return print_slab_totals(context);
    }
    let live = LiveSlab::open(&context.root, every)?;
    if args.output.is_none() && std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        watch_slab_caches(live, every, args.by)?;
        return Ok(Exit::Fine);
    }
    print_snapshot(context, live, args)
}

fn print_snapshot(context: &App, mut live: LiveSlab, args: &SlabTopArgs) -> Result<Exit, Failure> {
    let recording = live.sample()?;
    let result = slab::cache_table(&recording, &CacheTableOptions::default());
    let order = args.by;
    app::print_result(context, &result, || {
        present::show_grid(&result, order, usize::MAX, grid_width(context, false))
    })?;
    app::write_scene(context, args.output.as_ref(), || present::show_figure(&result, order, CACHE_BARS))?;
    app::note_row_counts(context, &result.rows);
    Ok(Exit::Fine)
}

/// What everybody may read.
fn print_slab_totals(context: &App) -> Result<Exit, Failure> {
    stderr_line!("warning: {}", WITHOUT_ROOT);
    let text = context.root.read("/proc/meminfo")?;
    let mut grid = Grid::new([GridColumn::left("meminfo"), GridColumn::right("size")]);
    for name in ["Slab", "SReclaimable", "SUnreclaim"] {
        let size = find_meminfo_field(&text, name).and_then(|bytes| u64::try_from(bytes).ok());
        let size = size.map(perflab_model::Bytes);
        let cell = size.map_or_else(GridCell::missing, |size| GridCell::with_text(size.to_string(), size.0));
        grid.add_row([GridCell::from(name), cell]);
    }
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

/// The opened monitors. Attributes and exact counts are optional: a kernel may lack /sys/kernel/slab.
pub struct LiveSlab {
    slabinfo: Box<dyn Monitor>,
    caches: Option<Box<dyn Monitor>>,
    attributes: Option<Series>,
    names: Vec<String>,
    system: SlabFacts,
}

impl LiveSlab {
    /// Opens them.
    pub fn open(root: &Root, every: Nanos) -> Result<Self, Failure> {
        let open =
            |name: &str| perflab_observe::open_monitor(perflab_observe::find_monitor(name)?, root, every);
        let facts = perflab_observe::collect_facts(root, None)?;
        let fact = |key| facts.integer(key).and_then(|value| u64::try_from(value).ok());
        let system = SlabFacts {
            page_size: fact(&fact_table::MEMORY_PAGE_SIZE),
            cpus: fact(&fact_table::CPU_ONLINE),
            nodes: fact(&fact_table::NUMA_NODES),
        };
        Ok(LiveSlab {
            slabinfo: open("slabinfo")?,
            caches: open("slab-caches").ok(),
            attributes: None,
            names: Vec::new(),
            system,
        })
    }

    /// Reads once. Attributes are read again only where the set of caches changed.
    pub fn sample(&mut self) -> Result<SlabRecording, Failure> {
        let slabinfo = read_one_tick(self.slabinfo.as_mut())?;
        let names = cache_names(&slabinfo);
        if names != self.names {
            // The monitor gives rows only when the set changed since it was asked last.
            let read = self.caches.as_mut().and_then(|caches| read_one_tick(caches.as_mut()).ok());
            if let Some(read) = read.filter(|read| !read.at.is_empty()) {
                self.attributes = Some(read);
            }
            self.names = names;
        }
        let input = SlabInput {
            slabinfo: Some(&RowRuns::from_series(&slabinfo)),
            caches: self.attributes.as_ref(),
            system: self.system,
            ..SlabInput::default()
        };
        Ok(SlabRecording::read(&input)?)
    }
}

fn cache_names(series: &Series) -> Vec<String> {
    series.column(SlabinfoRow::CACHE).iter().flatten().map(str::to_owned).collect()
}

fn read_one_tick(monitor: &mut dyn Monitor) -> Result<Series, Failure> {
    let mut rows = Vec::new();
    monitor.read_rows(&mut rows)?;
    // Attributes of a later scan hold for earlier rows too, so one moment is enough for all.
    let rows: Vec<(Nanos, CellRow)> = rows.into_iter().map(|row| (Nanos(1), row)).collect();
    Ok(Series::from_rows(monitor.schema().clone(), &rows))
}

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
    let share = |value: Option<f64>| value.map_or("-".into(), format_share);
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
        share(view.total.overall().value()),
        share(view.total.overall_at_least().and_then(perflab_analyze::slab::ExactRatio::value)),
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
        SlabTopColumn::Efficiency => line.usage.overall().value().map_or("-".into(), format_share),
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
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", bytes_text(value.unsigned_abs()))
}

/// Puts the terminal back, after an error too; `ratatui::init` does so after a panic.
struct TerminalGuard;

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Watches until q.
pub fn watch_slab_caches(mut live: LiveSlab, every: Nanos, by: CacheOrder) -> Result<(), Failure> {
    let mut view = SlabTop::new(sort_column(by));
    view.add_reading(&live.sample()?);
    let mut terminal = ratatui::init();
    let _restore = TerminalGuard;
    let mut table = TableState::default();
    let every = Duration::from(every).max(Duration::from_millis(20));
    let mut due = Instant::now() + every;
    while !view.quit {
        terminal.draw(|frame| draw_slab_top(frame, &mut view, &mut table))?;
        let left = due.saturating_duration_since(Instant::now());
        if event::poll(left)? {
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
            {
                view.press_key(key);
            }
        } else {
            due = Instant::now() + every;
            if !view.paused {
                view.add_reading(&live.sample()?);
            }
        }
    }
    Ok(())
}

fn sort_column(by: CacheOrder) -> SlabTopColumn {
    match by {
        CacheOrder::Waste => SlabTopColumn::Wasted,
        CacheOrder::Efficiency | CacheOrder::Unweighted => SlabTopColumn::Efficiency,
        CacheOrder::Bytes => SlabTopColumn::Slab,
        CacheOrder::Name => SlabTopColumn::Name,
    }
}

/// One cache, now.
#[derive(Debug, Clone)]
pub struct SlabTopRow {
    pub name: String,
    pub members: Vec<String>,
    pub usage: SlabUsage,
    pub objects: u64,
    pub object_size: u64,
    /// slab bytes now minus those at the first reading
    pub growth: i128,
    /// slab bytes now minus those at the reading before
    pub step: i128,
}

/// Columns to sort by, in their order on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlabTopColumn {
    Name,
    Slab,
    Growth,
    Step,
    Wasted,
    Efficiency,
    Objects,
    Size,
}

impl SlabTopColumn {
    pub const ALL: [SlabTopColumn; 8] = [
        SlabTopColumn::Name,
        SlabTopColumn::Slab,
        SlabTopColumn::Growth,
        SlabTopColumn::Step,
        SlabTopColumn::Wasted,
        SlabTopColumn::Efficiency,
        SlabTopColumn::Objects,
        SlabTopColumn::Size,
    ];

    fn shifted_by(self, by: isize) -> Self {
        let here = Self::ALL.iter().position(|one| *one == self).unwrap_or(0) as isize;
        let index = (here + by).rem_euclid(Self::ALL.len() as isize);
        Self::ALL.get(index as usize).copied().unwrap_or(SlabTopColumn::Slab)
    }
}

/// The screen's state.
#[derive(Debug)]
pub struct SlabTop {
    pub sort_column: SlabTopColumn,
    pub reversed: bool,
    pub search: String,
    pub typing: bool,
    pub with_empty: bool,
    pub paused: bool,
    pub selected: usize,
    pub quit: bool,
    pub total: SlabUsage,
    pub total_growth: i128,
    pub readings: u64,
    /// rows of a screenful, as last drawn
    pub page: usize,
    rows: Vec<SlabTopRow>,
    first_sizes: HashMap<String, u128>,
    previous_sizes: HashMap<String, u128>,
}

impl SlabTop {
    pub fn new(by: SlabTopColumn) -> Self {
        SlabTop {
            sort_column: by,
            reversed: false,
            search: String::new(),
            typing: false,
            with_empty: false,
            paused: false,
            selected: 0,
            quit: false,
            total: SlabUsage::default(),
            total_growth: 0,
            readings: 0,
            page: 10,
            rows: Vec::new(),
            first_sizes: HashMap::new(),
            previous_sizes: HashMap::new(),
        }
    }

    /// Takes a reading of one tick.
    pub fn add_reading(&mut self, recording: &SlabRecording) {
        let lines: Vec<SlabTopRow> =
            recording.rows().iter().filter_map(|row| self.cache_row(recording, row)).collect();
        let bytes: HashMap<String, u128> =
            lines.iter().map(|line| (line.name.clone(), line.usage.slab_bytes)).collect();
        if self.readings == 0 {
            self.first_sizes = bytes.clone();
        }
        // A cache that is gone gave back all its bytes: that is growth of the total too.
        let at_first: u128 = self.first_sizes.values().sum();
        self.total = SlabUsage::default();
        lines.iter().for_each(|line| self.total.add(&line.usage));
        self.total_growth = signed_bytes(self.total.slab_bytes) - signed_bytes(at_first);
        (self.previous_sizes, self.rows) = (bytes, lines);
        self.readings += 1;
    }

    fn cache_row(
        &self,
        recording: &SlabRecording,
        row: &perflab_analyze::slab::SlabRow,
    ) -> Option<SlabTopRow> {
        let cache = recording.caches().get(row.cache)?;
        let (name, usage) = (cache.label(), row.usage());
        let since = |known: &HashMap<String, u128>| match self.readings {
            0 => 0,
            _ => signed_bytes(usage.slab_bytes) - signed_bytes(known.get(&name).copied().unwrap_or(0)),
        };
        Some(SlabTopRow {
            growth: since(&self.first_sizes),
            step: since(&self.previous_sizes),
            members: cache.members(),
            objects: row.objects,
            object_size: row.object_size.unwrap_or(row.slab_size),
            usage,
            name,
        })
    }

    /// The lines to be shown, in order. A search finds any of a cache's names.
    pub fn visible_rows(&self) -> Vec<&SlabTopRow> {
        let requested = self.search.to_lowercase();
        let found = |line: &&SlabTopRow| {
            let named =
                line.members.iter().chain([&line.name]).any(|name| name.to_lowercase().contains(&requested));
            named && (self.with_empty || line.usage.slab_bytes > 0 || line.growth != 0)
        };
        let mut lines: Vec<&SlabTopRow> = self.rows.iter().filter(found).collect();
        lines.sort_by(|a, b| self.compare_rows(a, b).then_with(|| a.name.cmp(&b.name)));
        if self.reversed {
            lines.reverse();
        }
        lines
    }

    fn compare_rows(&self, a: &SlabTopRow, b: &SlabTopRow) -> std::cmp::Ordering {
        let efficiency = |line: &SlabTopRow| line.usage.overall().value().unwrap_or(f64::INFINITY);
        match self.sort_column {
            SlabTopColumn::Name => a.name.cmp(&b.name),
            SlabTopColumn::Slab => b.usage.slab_bytes.cmp(&a.usage.slab_bytes),
            SlabTopColumn::Growth => b.growth.cmp(&a.growth),
            SlabTopColumn::Step => b.step.cmp(&a.step),
            SlabTopColumn::Wasted => b.usage.wasted_bytes().cmp(&a.usage.wasted_bytes()),
            // The worst first, as everywhere.
            SlabTopColumn::Efficiency => efficiency(a).total_cmp(&efficiency(b)),
            SlabTopColumn::Objects => b.objects.cmp(&a.objects),
            SlabTopColumn::Size => b.object_size.cmp(&a.object_size),
        }
    }

    /// A key was pressed.
    pub fn press_key(&mut self, key: KeyEvent) {
        if key.modifiers.contains(KeyModifiers::CONTROL) && matches!(key.code, KeyCode::Char('c' | 'd')) {
            self.quit = true;
        } else if self.typing {
            self.type_search_key(key.code);
        } else {
            self.run_command_key(key.code);
        }
        self.selected = self.selected.min(self.visible_rows().len().saturating_sub(1));
    }

    fn type_search_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.search.clear();
            }
            KeyCode::Backspace => drop(self.search.pop()),
            KeyCode::Char(letter) => self.search.push(letter),
            _ => {}
        }
    }

    fn run_command_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('q') => self.quit = true,
            KeyCode::Esc => self.search.clear(),
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('n') => self.sort_by(SlabTopColumn::Name),
            KeyCode::Char('b') => self.sort_by(SlabTopColumn::Slab),
            KeyCode::Char('g') => self.sort_by(SlabTopColumn::Growth),
            KeyCode::Char('d') => self.sort_by(SlabTopColumn::Step),
            KeyCode::Char('w') => self.sort_by(SlabTopColumn::Wasted),
            KeyCode::Char('e') => self.sort_by(SlabTopColumn::Efficiency),
            KeyCode::Char('o') => self.sort_by(SlabTopColumn::Objects),
            KeyCode::Char('s') => self.sort_by(SlabTopColumn::Size),
            KeyCode::Right => self.sort_by(self.sort_column.shifted_by(1)),
            KeyCode::Left => self.sort_by(self.sort_column.shifted_by(-1)),
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Char('z') => self.with_empty = !self.with_empty,
            KeyCode::Char('0') => self.reset_growth(),
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            other => self.move_selection(other),
        }
    }

    fn move_selection(&mut self, code: KeyCode) {
        match code {
            KeyCode::Down | KeyCode::Char('j') => self.selected += 1,
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::PageDown => self.selected += self.page,
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(self.page),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = usize::MAX,
            _ => {}
        }
    }

    fn sort_by(&mut self, by: SlabTopColumn) {
        (self.sort_column, self.reversed) = (by, false);
    }

    /// Growth counts from now on.
    fn reset_growth(&mut self) {
        self.first_sizes = self.previous_sizes.clone();
        self.rows.iter_mut().for_each(|line| line.growth = 0);
        self.total_growth = 0;
    }
}

/// Bytes of a memory always fit.
fn signed_bytes(bytes: u128) -> i128 {
    i128::try_from(bytes).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests {
    use perflab_analyze::slab::{SlabFacts, SlabInput};
    use perflab_model::column::stored_columns;
    use perflab_model::series::{Series, SeriesSchema};
    use perflab_model::{Nanos, RowSchema};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::widgets::TableState;

    use super::*;

    /// A reading of three caches with so many slabs of one page.
    fn three_cache_reading(slabs: [i64; 3]) -> SlabRecording {
        let names = ["dentry", "filp", "vm_area_struct"];
        let row = |(name, slabs, size): (&str, i64, i64)| {
            let mut row = SlabinfoRow::missing_row();
            SlabinfoRow::CACHE.set(&mut row, name);
            SlabinfoRow::ACTIVE_OBJS.set(&mut row, slabs * 9);
            SlabinfoRow::NUM_OBJS.set(&mut row, slabs * 10);
            SlabinfoRow::OBJSIZE.set(&mut row, size);
            SlabinfoRow::OBJPERSLAB.set(&mut row, 10);
            SlabinfoRow::PAGESPERSLAB.set(&mut row, 1);
            SlabinfoRow::NUM_SLABS.set(&mut row, slabs);
            (Nanos(1), row)
        };
        let schema = SeriesSchema {
            stored: perflab_model::series::StoredRows::Every,
            monitor: "slabinfo".into(),
            source: String::new(),
            interval: Nanos(1),
            columns: stored_columns(SlabinfoRow::COLUMNS),
        };
        let rows = [0, 1, 2].map(|at| row((names[at], slabs[at], [400, 300, 200][at])));
        let series = Series::from_rows(schema, &rows);
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
        terminal.draw(|frame| super::draw_slab_top(frame, &mut view, &mut table)).unwrap();
        terminal.backend().clone()
    }
}
