//! Git in somebody's repository: only asked, nothing of the repository's or the caller's that runs programs or leads elsewhere.

use std::path::Path;
use std::process::{Command, Stdio};

/// Variables by which git would look at another repository than the one that is named.
const FOREIGN_REPOSITORY: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
];

/// Settings of a repository that run programs, or change what is checked out.
const SETTINGS: [&str; 4] =
    ["core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "core.autocrlf=false"];

/// git in a folder, whatever the caller's variables say.
pub fn git_command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).stdin(Stdio::null());
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    for variable in FOREIGN_REPOSITORY {
        command.env_remove(variable);
    }
    // What only asks takes no lock, and so is in nobody's way.
    command.env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
    command
}
