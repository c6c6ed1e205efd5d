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
pub struct Caches {
    lock: Option<File>,
    /// Stays with its thread, which may have it twice.
    _thread: PhantomData<MutexGuard<'static, ()>>,
}

impl Caches {
    /// Waits for it.
    pub fn alone() -> Self {
        let lock = (HELD.get() == 0).then(|| {
            let file = lock();
            file.lock().unwrap();
            file
        });
        HELD.set(HELD.get() + 1);
        Caches { lock, _thread: PhantomData }
    }
}

impl Drop for Caches {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
        drop(self.lock.take());
    }
}

/// The file whose lock it is.
fn lock() -> File {
    let user = rustix::process::geteuid().as_raw();
    let own = std::env::temp_dir().join(format!("perflab-tests-{user}"));
    let open = |path: &Path| File::options().create(true).append(true).open(path);
    let shared = is_root().then(|| open(Path::new("/run/lock/perflab-tests")).ok()).flatten();
    shared.unwrap_or_else(|| open(&own).unwrap())
}

/// Whether these arguments have perflab drop caches, or set what every start sets.
fn changes(arguments: &[&str]) -> bool {
    let own = arguments.iter().take_while(|word| **word != "--");
    let has = |wanted: &str| own.clone().any(|word| *word == wanted);
    is_root() && (has("startup") || has("start-once") || has("--cold"))
}

/// Taken where these arguments need it.
pub fn needed(arguments: &[&str]) -> Option<Caches> {
    changes(arguments).then(Caches::alone)
}

/// No test may forget it.
pub fn assert_held(arguments: &[&str]) {
    assert!(!changes(arguments) || HELD.get() > 0, "{arguments:?}: `Caches::alone` comes first");
}

#[test]
fn a_thread_may_have_them_twice_and_nobody_else() {
    let first = Caches::alone();
    drop(Caches::alone());
    assert!(lock().try_lock().is_err(), "it is still the first one's");
    drop(first);
    let begun = Caches::alone();
    assert!(begun.lock.is_some() && HELD.get() == 1);
}
