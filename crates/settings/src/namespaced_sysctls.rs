//! Kernel settings of which each namespace has its own, so that a value on the host says nothing of a container
//! (namespaces(7), ipc_namespaces(7), uts_namespaces(7), user_namespaces(7); `pid_max` since Linux 6.14).

use std::path::Path;

const IN_KERNEL: &[&str] = &[
    "auto_msgmni",
    "domainname",
    "hostname",
    "msg_next_id",
    "msgmax",
    "msgmnb",
    "msgmni",
    "ns_last_pid",
    "pid_max",
    "sem",
    "sem_next_id",
    "shm_next_id",
    "shm_rmid_forced",
    "shmall",
    "shmmax",
    "shmmni",
];

/// Whether a file, `/proc/sys/kernel/msgmax`, belongs to a namespace that a container has of its own. Those of the network do not: a container
/// has this host's network.
pub(crate) fn is_namespaced_file(path: &Path) -> bool {
    let name = path.strip_prefix("/proc/sys").ok().and_then(Path::to_str);
    match name.and_then(|name| name.split_once('/')) {
        Some(("kernel", key)) => IN_KERNEL.contains(&key),
        Some(("fs", key)) => key.starts_with("mqueue/"),
        Some(("user", _)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_namespace_has_of_its_own_is_known() {
        let is_namespaced = |name: &str| is_namespaced_file(&Path::new("/proc/sys").join(name));
        let namespaced = [
            "kernel/msgmax",
            "kernel/shmmax",
            "kernel/pid_max",
            "fs/mqueue/msg_max",
            "user/max_pid_namespaces",
        ];
        assert!(namespaced.into_iter().all(is_namespaced));
        let shared = ["vm/swappiness", "kernel/sched_rt_runtime_us", "net/core/somaxconn", "fs/file-max"];
        assert!(!shared.into_iter().any(is_namespaced));
        assert!(!is_namespaced_file(Path::new("/sys/kernel/msgmax")));
    }
}
