//! What the program needs of the system that it is installed on: read from the program itself.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use elf::ElfBytes;
use elf::abi::{EM_AARCH64, EM_X86_64};
use elf::endian::AnyEndian;

/// The machine and the libraries of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedLibraries {
    /// as `uname -m` calls it
    pub machine: &'static str,
    /// library -> the versions of it that are asked for; none of a static program
    needed: BTreeMap<String, Vec<String>>,
}

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
    }
}
