//! Package managers: which one is here, and how it is asked.

use std::env;
use std::fmt;

use crate::definition::Install;
use crate::ready::find;

/// A distribution's package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// Debian, Ubuntu
    Apt,
    /// Fedora, RHEL
    Dnf,
    /// SUSE
    Zypper,
    /// Arch Linux
    Pacman,
}

const ALL: [Manager; 4] = [Manager::Apt, Manager::Dnf, Manager::Zypper, Manager::Pacman];

impl Manager {
    /// The one of this system, by what is on PATH.
    pub fn here() -> Option<Manager> {
        let path = env::var("PATH").unwrap_or_default();
        ALL.into_iter()
            .find(|manager| find(manager.base().first().copied().unwrap_or_default(), &path).is_some())
    }

    /// argv that installs `packages`, without asking.
    pub fn command(self, packages: &[String]) -> Vec<String> {
        self.base().iter().map(|word| (*word).to_owned()).chain(packages.iter().cloned()).collect()
    }

    pub(super) fn packages(self, install: &Install) -> &[String] {
        match self {
            Manager::Apt => &install.apt,
            Manager::Dnf => &install.dnf,
            Manager::Zypper => &install.zypper,
            Manager::Pacman => &install.pacman,
        }
    }

    fn base(self) -> &'static [&'static str] {
        match self {
            Manager::Apt => &["apt-get", "install", "--yes", "--no-install-recommends"],
            Manager::Dnf => &["dnf", "install", "--assumeyes"],
            Manager::Zypper => &["zypper", "--non-interactive", "install"],
            Manager::Pacman => &["pacman", "--sync", "--needed", "--noconfirm"],
        }
    }
}

impl fmt::Display for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Manager::Apt => "apt",
            Manager::Dnf => "dnf",
            Manager::Zypper => "zypper",
            Manager::Pacman => "pacman",
        })
    }
}
