//! Numbered pieces of work, done by a few threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

/// How many tests run at a time.
const WORKERS: usize = 2;

/// Does the pieces 0 to `count` - 1, each once; a thread that meets an error does no further one.
pub fn work_through(count: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let run = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            work(number)?;
        }
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..WORKERS).map(|_| scope.spawn(run)).collect();
        running
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use anyhow::bail;

    use super::*;

    #[test]
    fn each_piece_is_done_once() {
        let done = Mutex::new(Vec::new());
        work_through(100, |number| {
            done.lock().unwrap().push(number);
            Ok(())
        })
        .unwrap();
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        assert_eq!(done, (0..100).collect::<Vec<usize>>());
    }

    #[test]
    fn an_error_is_told() {
        let failed = work_through(10, |number| if number == 3 { bail!("three") } else { Ok(()) });
        assert_eq!(failed.unwrap_err().to_string(), "three");
    }
}
