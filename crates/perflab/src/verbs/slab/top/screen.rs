//! The terminal: raw while we watch, as it was when we leave, however we leave.

use std::time::{Duration, Instant};

use perflab_model::Nanos;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::widgets::TableState;

use super::draw::draw_slab_top;
use super::live::LiveSlab;
use super::view::{SlabTop, SlabTopColumn};
use crate::arguments::slab::CacheOrderName;

/// Puts the terminal back, after an error too; `ratatui::init` does so after a panic.
struct TerminalGuard;

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Watches until q.
pub fn watch_slab_caches(mut live: LiveSlab, every: Nanos, by: CacheOrderName) -> anyhow::Result<()> {
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

fn sort_column(by: CacheOrderName) -> SlabTopColumn {
    match by {
        CacheOrderName::Wasted => SlabTopColumn::Wasted,
        CacheOrderName::Efficiency | CacheOrderName::Unweighted => SlabTopColumn::Efficiency,
        CacheOrderName::Bytes => SlabTopColumn::Slab,
        CacheOrderName::Name => SlabTopColumn::Name,
    }
}
