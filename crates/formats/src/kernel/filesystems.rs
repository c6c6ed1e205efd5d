//! Room of mounted file systems (statvfs).

use perflab_model::{DeclaredColumn, RowSchema};

use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};

/// The file systems of disks, tmpfs and overlays.
pub const FILESYSTEMS: KernelFile = KernelFile {
    name: FilesystemRow::NAME,
    source: "/proc/self/mounts",
    about: "room of mounted file systems: bytes and inodes, free and in all",
    needs: "",
    without: "",
    provided_by: "",
    columns: FilesystemRow::COLUMNS,
    layout: KernelFileLayout::Tree,
};

/// A row a mount point.
#[derive(Debug, Clone, Copy)]
pub struct FilesystemRow;

impl RowSchema for FilesystemRow {
    const NAME: &'static str = "filesystems";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("mount"),
        DeclaredColumn::key("type"),
        DeclaredColumn::gauge("size", "bytes"),
        DeclaredColumn::gauge("free", "bytes"),
        DeclaredColumn::gauge("available", "bytes"),
        DeclaredColumn::gauge("inodes", "1"),
        DeclaredColumn::gauge("inodes_free", "1"),
    ];
}

/// Types without room of their own: the kernel's, and those of another machine, which may not answer.
const WITHOUT_ROOM: &[&str] = &[
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "efivarfs",
    "fusectl",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "ramfs",
    "rootfs",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tracefs",
    "cifs",
    "smb3",
    "nfs",
    "nfs4",
    "ceph",
    "9p",
    "afs",
];

/// Whether a type has room that is this machine's to fill; those behind FUSE may belong to a process that does not answer.
pub fn has_room(kind: &str) -> bool {
    !WITHOUT_ROOM.contains(&kind) && !kind.starts_with("fuse.")
}
