//! What the program needs of the system that it is installed on: read from the program itself.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use elf::ElfBytes;
use elf::abi::{DT_NEEDED, EM_AARCH64, EM_X86_64};
use elf::endian::AnyEndian;

/// The machine and the libraries of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedLibraries {
    /// as `uname -m` calls it
    pub machine: &'static str,
    /// library -> the versions of it that are asked for; none of a static program
    needed: BTreeMap<String, Vec<String>>,
}

/// The oldest glibc that a wheel's tag names: what asks for less runs there, too.
const OLDEST_GLIBC: &str = "2_17";

/// How libraries begin that every Linux with glibc has (PEP 600).
const EVERYWHERE: &[&str] = &["libc.", "libm.", "libdl.", "librt.", "libpthread.", "libgcc_s.", "ld-linux"];

impl LinkedLibraries {
    /// Reads the program's own table of what it is linked to.
    pub fn read(program: &[u8]) -> Result<Self> {
        let file = ElfBytes::<AnyEndian>::minimal_parse(program).context("the program is no ELF file")?;
        let machine = match file.ehdr.e_machine {
            EM_X86_64 => "x86_64",
            EM_AARCH64 => "aarch64",
            other => bail!("no package knows ELF machine {other}"),
        };
        let mut needed = BTreeMap::<String, Vec<String>>::new();
        if let (Some(versions), Some((symbols, _))) =
            (file.symbol_version_table()?, file.dynamic_symbol_table()?)
        {
            for index in 0..symbols.len() {
                if let Some(asked) = versions.get_requirement(index)? {
                    needed.entry(asked.file.to_owned()).or_default().push(asked.name.to_owned());
                }
            }
        }
        // A library without versions of its symbols stands here alone.
        if let (Some(entries), Some((_, names))) = (file.dynamic()?, file.dynamic_symbol_table()?) {
            for entry in entries.iter().filter(|entry| entry.d_tag == DT_NEEDED) {
                let name = names.get(usize::try_from(entry.d_val())?)?;
                needed.entry(name.to_owned()).or_default();
            }
        }
        needed.values_mut().for_each(|versions| {
            versions.sort();
            versions.dedup();
        });
        Ok(LinkedLibraries { machine, needed })
    }

    /// Whether it needs nothing but a kernel.
    pub fn is_static(&self) -> bool {
        self.needed.is_empty()
    }

    /// The newest glibc that any symbol asks for: `2.34`.
    fn newest_glibc(&self) -> Option<String> {
        let versions = self.needed.values().flatten().filter_map(|version| version.strip_prefix("GLIBC_"));
        let parts = |version: &str| version.split('.').map(str::parse).collect::<Result<Vec<u32>, _>>().ok();
        let newest = versions.filter_map(parts).max()?;
        Some(newest.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
    }

    /// The platforms that a wheel with this program may name (PEP 600, PEP 656): what needs nothing runs on any Linux of the
    /// processor; what needs only glibc runs where that is as new as the newest symbol; anything else only where it was built.
    pub fn wheel_platforms(&self) -> Vec<String> {
        let machine = self.machine;
        if self.is_static() {
            return vec![format!("manylinux_{OLDEST_GLIBC}_{machine}"), format!("musllinux_1_1_{machine}")];
        }
        let is_everywhere = |library: &String| {
            EVERYWHERE.iter().any(|start| library.starts_with(start))
                && (!library.starts_with("libgcc_s.") || !self.asks_for_new_gcc())
        };
        match self.newest_glibc().filter(|_| self.needed.keys().all(is_everywhere)) {
            Some(glibc) => {
                let parts = |version: &str| -> Vec<u32> {
                    version.split(['.', '_']).filter_map(|part| part.parse().ok()).collect()
                };
                let newest = std::cmp::max(parts(&glibc), parts(OLDEST_GLIBC));
                let newest: Vec<String> = newest.iter().take(2).map(u32::to_string).collect();
                vec![format!("manylinux_{}_{machine}", newest.join("_"))]
            }
            None => vec![format!("linux_{machine}")],
        }
    }

    /// Whether it needs a newer libgcc than that of the oldest manylinux has.
    fn asks_for_new_gcc(&self) -> bool {
        let versions = self.needed.values().flatten().filter_map(|version| version.strip_prefix("GCC_"));
        versions.filter_map(|version| version.split('.').next()?.parse::<u32>().ok()).any(|major| major > 4)
    }

    /// Debian's packages of them.
    pub fn debian_depends(&self) -> Result<Vec<String>> {
        let mut packages = Vec::new();
        for library in self.needed.keys() {
            let package = match library.as_str() {
                "libgcc_s.so.1" => "libgcc-s1".to_owned(),
                name if ["libc.", "libm.", "ld-linux"].iter().any(|start| name.starts_with(start)) => {
                    let glibc = self.newest_glibc().context("glibc is needed in no version")?;
                    format!("libc6 (>= {glibc})")
                }
                other => bail!("no Debian package is known here that has {other}"),
            };
            packages.push(package);
        }
        packages.sort();
        packages.dedup();
        Ok(packages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_needs_the_library_that_it_was_linked_to() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let libraries = LinkedLibraries::read(&own).unwrap();
        let depends = libraries.debian_depends().unwrap();
        assert_eq!(
            depends.iter().filter(|package| package.starts_with("libc6 (>= 2.")).count(),
            1,
            "{depends:?}"
        );
        assert!(!libraries.is_static() && LinkedLibraries::read(b"no program").is_err());
        let platforms = libraries.wheel_platforms();
        assert!(platforms.len() == 1 && platforms[0].starts_with("manylinux_2_"), "{platforms:?}");
    }

    #[test]
    fn a_wheel_names_no_platform_on_which_its_program_might_not_start() {
        let platforms = |needed: &[(&str, &[&str])]| {
            let owned = |(library, versions): &(&str, &[&str])| {
                ((*library).to_owned(), versions.iter().map(|one| (*one).to_owned()).collect())
            };
            LinkedLibraries { machine: "x86_64", needed: needed.iter().map(owned).collect() }
                .wheel_platforms()
                .join(" ")
        };
        assert_eq!(platforms(&[]), "manylinux_2_17_x86_64 musllinux_1_1_x86_64");
        let glibc: (&str, &[&str]) = ("libc.so.6", &["GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.9"]);
        assert_eq!(
            platforms(&[glibc, ("libgcc_s.so.1", &["GCC_3.0", "GCC_4.2.0"])]),
            "manylinux_2_34_x86_64"
        );
        assert_eq!(platforms(&[("libc.so.6", &["GLIBC_2.2.5"])]), "manylinux_2_17_x86_64");
        assert_eq!(platforms(&[glibc, ("libgcc_s.so.1", &["GCC_12.0.0"])]), "linux_x86_64");
        assert_eq!(platforms(&[glibc, ("libelf.so.1", &[])]), "linux_x86_64");
        assert_eq!(platforms(&[("libc.musl-x86_64.so.1", &[])]), "linux_x86_64");
    }
}
