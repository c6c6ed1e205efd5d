//! The terminal: raw while we watch, as it was when we leave, however we leave.

use std::time::{Duration, Instant};

use perflab_model::Nanos;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::widgets::TableState;

use super::draw::draw;
use super::live::Live;
use super::view::{By, View};
use crate::arguments::slab::Order;

/// Puts the terminal back, after an error too; `ratatui::init` does so after a panic.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Watches until q.
pub fn run(mut live: Live, every: Nanos, by: Order) -> anyhow::Result<()> {
    let mut view = View::new(column(by));
    view.take(&live.sample()?);
    let mut terminal = ratatui::init();
    let _restore = Restore;
    let mut table = TableState::default();
    let every = Duration::from(every).max(Duration::from_millis(20));
    let mut due = Instant::now() + every;
    while !view.quit {
        terminal.draw(|frame| draw(frame, &mut view, &mut table))?;
        let left = due.saturating_duration_since(Instant::now());
        if event::poll(left)? {
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
            {
                view.key(key);
            }
        } else {
            due = Instant::now() + every;
            if !view.paused {
                view.take(&live.sample()?);
            }
        }
    }
    Ok(())
}

fn column(by: Order) -> By {
    match by {
        Order::Wasted => By::Wasted,
        Order::Efficiency | Order::Unweighted => By::Efficiency,
        Order::Bytes => By::Slab,
        Order::Name => By::Name,
    }
}
