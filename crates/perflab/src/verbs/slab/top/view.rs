//! What the screen shows and how keys change it; no terminal here.

use std::collections::HashMap;

use perflab_analyze::slab::{SlabRecording, SlabUsage};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

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
        let wanted = self.search.to_lowercase();
        let found = |line: &&SlabTopRow| {
            let named =
                line.members.iter().chain([&line.name]).any(|name| name.to_lowercase().contains(&wanted));
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
mod tests;
