//! What the screen shows and how keys change it; no terminal here.

use std::collections::HashMap;

use perflab_analyze::slab::{Recording, Usage};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// One cache, now.
#[derive(Debug, Clone)]
pub struct Line {
    pub name: String,
    pub members: Vec<String>,
    pub usage: Usage,
    pub objects: u64,
    pub object_size: u64,
    /// slab bytes now minus those at the first reading
    pub growth: i128,
    /// slab bytes now minus those at the reading before
    pub step: i128,
}

/// Columns to sort by, in their order on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Name,
    Slab,
    Growth,
    Step,
    Wasted,
    Efficiency,
    Objects,
    Size,
}

impl By {
    pub const ALL: [By; 8] =
        [By::Name, By::Slab, By::Growth, By::Step, By::Wasted, By::Efficiency, By::Objects, By::Size];

    fn shifted(self, by: isize) -> Self {
        let here = Self::ALL.iter().position(|one| *one == self).unwrap_or(0) as isize;
        let index = (here + by).rem_euclid(Self::ALL.len() as isize);
        Self::ALL.get(index as usize).copied().unwrap_or(By::Slab)
    }
}

/// The screen's state.
#[derive(Debug)]
pub struct View {
    pub by: By,
    pub reversed: bool,
    pub search: String,
    pub typing: bool,
    pub with_empty: bool,
    pub paused: bool,
    pub selected: usize,
    pub quit: bool,
    pub total: Usage,
    pub total_growth: i128,
    pub readings: u64,
    /// rows of a screenful, as last drawn
    pub page: usize,
    lines: Vec<Line>,
    first: HashMap<String, u128>,
    before: HashMap<String, u128>,
}

impl View {
    pub fn new(by: By) -> Self {
        View {
            by,
            reversed: false,
            search: String::new(),
            typing: false,
            with_empty: false,
            paused: false,
            selected: 0,
            quit: false,
            total: Usage::default(),
            total_growth: 0,
            readings: 0,
            page: 10,
            lines: Vec::new(),
            first: HashMap::new(),
            before: HashMap::new(),
        }
    }

    /// Takes a reading of one tick.
    pub fn take(&mut self, recording: &Recording) {
        let lines: Vec<Line> = recording.rows().iter().filter_map(|row| self.line(recording, row)).collect();
        let bytes: HashMap<String, u128> =
            lines.iter().map(|line| (line.name.clone(), line.usage.slab_bytes)).collect();
        if self.readings == 0 {
            self.first = bytes.clone();
        }
        // A cache that is gone gave back all its bytes: that is growth of the total too.
        let at_first: u128 = self.first.values().sum();
        self.total = Usage::default();
        lines.iter().for_each(|line| self.total.add(&line.usage));
        self.total_growth = signed(self.total.slab_bytes) - signed(at_first);
        (self.before, self.lines) = (bytes, lines);
        self.readings += 1;
    }

    fn line(&self, recording: &Recording, row: &perflab_analyze::slab::Observed) -> Option<Line> {
        let cache = recording.caches().get(row.cache)?;
        let (name, usage) = (cache.label(), row.usage());
        let since = |known: &HashMap<String, u128>| match self.readings {
            0 => 0,
            _ => signed(usage.slab_bytes) - signed(known.get(&name).copied().unwrap_or(0)),
        };
        Some(Line {
            growth: since(&self.first),
            step: since(&self.before),
            members: cache.members(),
            objects: row.objects,
            object_size: row.object_size.unwrap_or(row.slab_size),
            usage,
            name,
        })
    }

    /// The lines to be shown, in order. A search finds any of a cache's names.
    pub fn shown(&self) -> Vec<&Line> {
        let wanted = self.search.to_lowercase();
        let found = |line: &&Line| {
            let named =
                line.members.iter().chain([&line.name]).any(|name| name.to_lowercase().contains(&wanted));
            named && (self.with_empty || line.usage.slab_bytes > 0 || line.growth != 0)
        };
        let mut lines: Vec<&Line> = self.lines.iter().filter(found).collect();
        lines.sort_by(|a, b| self.compare(a, b).then_with(|| a.name.cmp(&b.name)));
        if self.reversed {
            lines.reverse();
        }
        lines
    }

    fn compare(&self, a: &Line, b: &Line) -> std::cmp::Ordering {
        let efficiency = |line: &Line| line.usage.overall().value().unwrap_or(f64::INFINITY);
        match self.by {
            By::Name => a.name.cmp(&b.name),
            By::Slab => b.usage.slab_bytes.cmp(&a.usage.slab_bytes),
            By::Growth => b.growth.cmp(&a.growth),
            By::Step => b.step.cmp(&a.step),
            By::Wasted => b.usage.wasted().cmp(&a.usage.wasted()),
            // The worst first, as everywhere.
            By::Efficiency => efficiency(a).total_cmp(&efficiency(b)),
            By::Objects => b.objects.cmp(&a.objects),
            By::Size => b.object_size.cmp(&a.object_size),
        }
    }

    /// A key was pressed.
    pub fn key(&mut self, key: KeyEvent) {
        if key.modifiers.contains(KeyModifiers::CONTROL) && matches!(key.code, KeyCode::Char('c' | 'd')) {
            self.quit = true;
        } else if self.typing {
            self.type_key(key.code);
        } else {
            self.command(key.code);
        }
        self.selected = self.selected.min(self.shown().len().saturating_sub(1));
    }

    fn type_key(&mut self, code: KeyCode) {
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

    fn command(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('q') => self.quit = true,
            KeyCode::Esc => self.search.clear(),
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('n') => self.sort(By::Name),
            KeyCode::Char('b') => self.sort(By::Slab),
            KeyCode::Char('g') => self.sort(By::Growth),
            KeyCode::Char('d') => self.sort(By::Step),
            KeyCode::Char('w') => self.sort(By::Wasted),
            KeyCode::Char('e') => self.sort(By::Efficiency),
            KeyCode::Char('o') => self.sort(By::Objects),
            KeyCode::Char('s') => self.sort(By::Size),
            KeyCode::Right => self.sort(self.by.shifted(1)),
            KeyCode::Left => self.sort(self.by.shifted(-1)),
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Char('z') => self.with_empty = !self.with_empty,
            KeyCode::Char('0') => self.forget(),
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            other => self.step(other),
        }
    }

    fn step(&mut self, code: KeyCode) {
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

    fn sort(&mut self, by: By) {
        (self.by, self.reversed) = (by, false);
    }

    /// Growth counts from now on.
    fn forget(&mut self) {
        self.first = self.before.clone();
        self.lines.iter_mut().for_each(|line| line.growth = 0);
        self.total_growth = 0;
    }
}

/// Bytes of a memory always fit.
fn signed(bytes: u128) -> i128 {
    i128::try_from(bytes).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests;
