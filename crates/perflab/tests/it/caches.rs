//! The machine's caches, of which there is one, with the settings that every start changes (`kernel.task_delayacct`): who drops or sets
//! them, and who needs what was read to stay, has them alone. Among all processes of the machine that run these tests: a lock on a file.

use std::cell::Cell;
use std::fs::File;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::MutexGuard;

use crate::laboratory::is_root;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// While a thread has it, nobody else drops caches, starts programs that are measured, or mounts an image: a mount namespace that
/// is made meanwhile keeps no other test's mounted, and in memory.
pub struct CachesLock {
    lock: Option<File>,
    /// Stays with its thread, which may have it twice.
    _thread: PhantomData<MutexGuard<'static, ()>>,
}

impl CachesLock {
    /// Waits for it.
    pub fn acquire() -> Self {
        let lock = (HELD.get() == 0).then(|| {
            let file = open_lock_file();
            file.lock().unwrap();
            file
        });
        HELD.set(HELD.get() + 1);
        CachesLock { lock, _thread: PhantomData }
    }
}

impl Drop for CachesLock {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
        drop(self.lock.take());
    }
}

/// The file whose lock it is.
fn open_lock_file() -> File {
    let user = rustix::process::geteuid().as_raw();
    let own = std::env::temp_dir().join(format!("perflab-tests-{user}"));
    let open = |path: &Path| File::options().create(true).append(true).open(path);
    let shared = is_root().then(|| open(Path::new("/run/lock/perflab-tests")).ok()).flatten();
    shared.unwrap_or_else(|| open(&own).unwrap())
}

/// Whether these arguments have perflab drop caches, or set what every start sets.
fn changes_caches(arguments: &[&str]) -> bool {
    let own = arguments.iter().take_while(|word| **word != "--");
    let has = |wanted: &str| own.clone().any(|word| *word == wanted);
    is_root() && (has("startup") || has("start-once") || has("--cold"))
}

/// Taken where these arguments need it.
pub fn lock_if_needed(arguments: &[&str]) -> Option<CachesLock> {
    changes_caches(arguments).then(CachesLock::acquire)
}

/// No test may forget it.
pub fn assert_lock_held(arguments: &[&str]) {
    assert!(!changes_caches(arguments) || HELD.get() > 0, "{arguments:?}: `Caches::alone` comes first");
}

#[test]
fn a_thread_may_have_them_twice_and_nobody_else() {
    let first = CachesLock::acquire();
    drop(CachesLock::acquire());
    assert!(open_lock_file().try_lock().is_err(), "it is still the first one's");
    drop(first);
    let begun = CachesLock::acquire();
    assert!(begun.lock.is_some() && HELD.get() == 1);
}
