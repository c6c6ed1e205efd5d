//! Reading ahead for every program, without being asked: each exec on the watched file systems is shown to the daemon before
//! it happens (fanotify, `FAN_OPEN_EXEC_PERM`). The first start of a program is only watched; if it waited for disks long
//! enough, the second is traced; from the third on its trace is read ahead, while the exec waits, but never beyond a bound.
//!
//! Owns that life of a program, and the rules that keep a machine safe from its daemon: every exec that was read from the kernel
//! is answered, with yes, whatever becomes of the thread that looks at it; one thread only looks at the clock; a thread that
//! panics or hangs ends the daemon, and then the kernel lets everything through. What one user's starts read decides nothing of
//! another's. Refuses to start programs, to answer no, and to read a file ahead that the user who starts the program could not open.
//!
//! | module | the user's noun |
//! |---|---|
//! | [`settings`] | what may be set, with its bounds |
//! | [`lists`] | programs that are wanted, and those that are not |
//! | [`gate`] | execs that wait, and their answer |
//! | [`deadline`] | the clock that lets through what is overdue |
//! | [`exec_guard`] | a process that answers where the daemon does not |
//! | [`classify_files`] | what a file is: a program, a script, a loader |
//! | [`find_program_path`] | where a program stands, and what its starts cost |
//! | [`programs`] | all of them, user by user, and what the next start of each is for |
//! | [`worth`] | whether a start waited long enough |
//! | [`trees`] | what a program and its children used, from the ends of their threads |
//! | `opened` | which files a start opened of those that were read ahead for it |
//! | [`credentials`] | the user in whose name a file is opened |
//! | `work`, `reading` | learning and reading ahead, each on a thread of its own |
//! | [`begin_startup`] | what must be there before anything is held |
//! | `keeper` | everything that can wait: judging, saving, mounts |
//! | [`status`] | what it tells about itself, over a socket |
//! | [`notify`] | what it tells systemd |

pub mod exec_gate;
pub mod exec_guard;
pub(crate) mod exec_loop;
pub mod file_classifier;
pub mod housekeeper;
pub(crate) mod opened_files;
pub mod options;
pub mod process_tree;
pub mod programs;
pub mod service;
pub(crate) mod shared_state;
pub mod workers;

pub use exec_guard::{GuardStatus, run_guard};
pub use options::{DaemonError, DaemonOptions, ProgramLists};
pub use programs::{LearnThreshold, ProgramKey, ProgramRecord, ProgramState};
pub use service::{DaemonStatus, ProgramStatus, read_programs_file, run_daemon};
