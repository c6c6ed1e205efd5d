//! Reads ahead for every program, without being asked.
//!
//! Each exec on the watched file systems is shown to the daemon before it happens (fanotify, `FAN_OPEN_EXEC_PERM`).
//! The first startup of a program is only watched; if it waited for disks long enough, the second is traced; from
//! the third on its trace is read ahead while the exec waits, but never beyond a bound.
//!
//! The rules that keep a machine safe from its daemon:
//!
//! - Every exec that was read from the kernel is answered, with yes, whatever becomes of the thread that handles
//!   it.
//! - One thread only watches the clock; a thread that panics or hangs ends the daemon, and then the kernel lets
//!   everything through.
//! - What one user's startups read decides nothing for another user.
//! - The daemon starts no programs, never answers no, and reads no file ahead that the user who starts the program
//!   could not open.
//!
//! | module | what a reader finds |
//! |---|---|
//! | [`options`] | what can be set, with its bounds; lists of programs |
//! | [`exec_gate`] | execs that are held, and the clock that lets overdue ones go |
//! | [`exec_guard`] | a process that answers the kernel where the daemon does not |
//! | `exec_loop` | the thread that answers execs, and the one that looks at new files |
//! | [`file_classifier`] | what a file is: a program, a script, a loader |
//! | [`programs`] | the state of each program, user by user, and the threshold of learning |
//! | [`process_tree`] | what a program and its descendants used |
//! | `opened_files` | which files a startup opened of those that were read ahead for it |
//! | `saved_programs` | what is known of programs, kept from one daemon to the next |
//! | [`workers`] | learning and reading ahead, each on a thread, files opened as the user |
//! | [`housekeeper`] | everything that can wait: judging, saving, mounts, systemd's watchdog |
//! | [`service`] | how the daemon begins, and its status over a socket |
//! | `shared_state` | what the threads share |

pub mod exec_gate;
pub mod exec_guard;
pub(crate) mod exec_loop;
pub mod file_classifier;
pub mod housekeeper;
pub(crate) mod opened_files;
pub mod options;
pub mod process_tree;
pub mod programs;
pub(crate) mod saved_programs;
pub mod service;
pub(crate) mod shared_state;
pub mod workers;

pub use exec_guard::{GuardStatus, run_guard};
pub use options::{DaemonError, DaemonOptions, ProgramLists};
pub use programs::{LearnThreshold, ProgramKey, ProgramRecord, ProgramState, StateReason};
pub use saved_programs::{ProgramStatus, read_programs_file};
pub use service::{DaemonStatus, run_daemon};
