//! Package managers: which one is here, and how it is asked.

use std::env;
use std::fmt;

use crate::definition::InstallSpec;
use crate::ready::find_program;

/// A distribution's package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageManager {
    /// Debian, Ubuntu
    Apt,
    /// Fedora, RHEL
    Dnf,
    /// SUSE
    Zypper,
    /// Arch Linux
    Pacman,
}

const ALL: [PackageManager; 4] =
    [PackageManager::Apt, PackageManager::Dnf, PackageManager::Zypper, PackageManager::Pacman];

impl PackageManager {
    /// The one of this system, by what is on PATH.
    pub fn detect() -> Option<PackageManager> {
        let path = env::var("PATH").unwrap_or_default();
        ALL.into_iter().find(|manager| {
            find_program(manager.command_prefix().first().copied().unwrap_or_default(), &path).is_some()
        })
    }

    /// argv that installs `packages`, without asking.
    pub fn install_command(self, packages: &[String]) -> Vec<String> {
        self.command_prefix().iter().map(|word| (*word).to_owned()).chain(packages.iter().cloned()).collect()
    }

    pub(super) fn packages_of(self, install: &InstallSpec) -> &[String] {
        match self {
            PackageManager::Apt => &install.apt,
            PackageManager::Dnf => &install.dnf,
            PackageManager::Zypper => &install.zypper,
            PackageManager::Pacman => &install.pacman,
        }
    }

    fn command_prefix(self) -> &'static [&'static str] {
        match self {
            PackageManager::Apt => &["apt-get", "install", "--yes", "--no-install-recommends"],
            PackageManager::Dnf => &["dnf", "install", "--assumeyes"],
            PackageManager::Zypper => &["zypper", "--non-interactive", "install"],
            PackageManager::Pacman => &["pacman", "--sync", "--needed", "--noconfirm"],
        }
    }
}

impl fmt::Display for PackageManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PackageManager::Apt => "apt",
            PackageManager::Dnf => "dnf",
            PackageManager::Zypper => "zypper",
            PackageManager::Pacman => "pacman",
        })
    }
}
