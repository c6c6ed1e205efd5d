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
//! | [`door`] | execs that wait, and their answer |
//! | [`deadline`] | the clock that lets through what is overdue |
//! | [`exec_guard`] | a process that answers where the daemon does not |
//! | [`scout`] | what a file is: a program, a script, a loader |
//! | [`program`] | where a program stands, and what its starts cost |
//! | [`programs`] | all of them, user by user, and what the next start of each is for |
//! | [`worth`] | whether a start waited long enough |
//! | [`trees`] | what a program and its children used, from the ends of their threads |
//! | `opened` | which files a start opened of those that were read ahead for it |
//! | [`who`] | the user in whose name a file is opened |
//! | `work`, `reading` | learning and reading ahead, each on a thread of its own |
//! | [`begin`] | what must be there before anything is held |
//! | `keeper` | everything that can wait: judging, saving, mounts |
//! | [`status`] | what it tells about itself, over a socket |
//! | [`notify`] | what it tells systemd |

pub mod begin;
pub mod deadline;
pub mod door;
pub mod exec_guard;
mod keeper;
pub mod lists;
pub mod notify;
mod opened;
pub mod program;
pub mod programs;
mod reading;
mod receive;
pub mod scout;
pub mod settings;
mod shared;
pub mod status;
pub mod trees;
pub mod who;
mod work;
pub mod worth;

pub use begin::{read_programs_file, run_daemon};
pub use exec_guard::{GuardStatus, run_guard};
pub use lists::ProgramLists;
pub use program::{ProgramRecord, ProgramState};
pub use programs::ProgramKey;
pub use settings::{DaemonError, DaemonOptions};
pub use status::{DaemonStatus, ProgramStatus};
pub use worth::LearnThreshold;
