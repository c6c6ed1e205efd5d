//! The user in whose name a program starts. Files are opened as this user, on a thread that becomes it and never anybody else
//! again, so that the kernel itself says what may be opened, with groups, lists and modules and all.

use std::fs;
use std::io;

use rustix::fs::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// A user with all groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    user: u32,
    group: u32,
    groups: Vec<u32>,
}

impl Credentials {
    /// Their number.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Of a process, as it would open files (the last of the four numbers).
    pub fn of_process(process: u32) -> Option<Self> {
        parse_credentials(&fs::read_to_string(format!("/proc/{process}/status")).ok()?)
    }

    /// Makes the calling thread this user; threads that it makes are it too. Rights beyond the user's are given up with it.
    ///
    /// # Errors
    /// CAP_SETUID or CAP_SETGID is missing.
    pub fn assume(&self) -> io::Result<()> {
        if self.user == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        let groups: Vec<Gid> = self.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        set_thread_groups(&groups)?;
        let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
        set_thread_res_gid(group, group, group)?;
        Ok(set_thread_res_uid(user, user, user)?)
    }
}

fn parse_credentials(status: &str) -> Option<Credentials> {
    let line = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>()
    };
    let last = |name: &str| line(name)?.get(3).copied();
    Some(Credentials { user: last("Uid:")?, group: last("Gid:")?, groups: line("Groups:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_for_files_is_the_last() {
        let status = "Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \nVmPeak:\t1 kB\n";
        assert_eq!(parse_credentials(status), Some(Credentials { user: 4, group: 8, groups: vec![9, 10] }));
        assert_eq!(parse_credentials("Uid:\t1\t2\t3\t4\nGid:\t5\n"), None);
        assert!(Credentials::of_process(std::process::id()).is_some());
    }

    #[test]
    fn a_thread_that_became_somebody_may_open_no_more_than_they() {
        if !rustix::process::geteuid().is_root() {
            assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none());
            return eprintln!("SKIP a_thread_that_became_somebody_may_open_no_more_than_they: it needs root");
        }
        let nobody = Credentials { user: 65534, group: 65534, groups: vec![65534] };
        let opened = std::thread::spawn(move || {
            nobody.assume().unwrap();
            let below = std::thread::spawn(|| fs::File::open("/etc/shadow").is_ok()).join().unwrap();
            (fs::File::open("/etc/shadow").is_ok(), below, fs::File::open("/etc/passwd").is_ok())
        });
        assert_eq!(opened.join().unwrap(), (false, false, true));
        assert!(fs::File::open("/etc/shadow").is_ok(), "other threads are who they were");
    }
}
