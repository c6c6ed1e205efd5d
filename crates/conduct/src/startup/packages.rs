//! What belongs to installed packages of Debian and its like, as dpkg tells. Owns the way from names of packages to files;
//! refuses to install.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

/// What programs read at no start: documentation, and words of other languages.
const UNREAD: [&str; 5] =
    ["/usr/share/doc/", "/usr/share/man/", "/usr/share/info/", "/usr/share/locale/", "/usr/share/lintian/"];
/// One line a package, also for those that were removed and left settings, and for those of other architectures: whether it
/// is there, for what, its name, the name that no other architecture's has, whether everybody needs it, what it needs, what
/// it stands for.
const FORMAT: &str = "${db:Status-Status}\t${Architecture}\t${Package}\t${binary:Package}\t${Essential}\t${Pre-Depends}, \
                      ${Depends}\t${Provides}\n";

/// Why the files of packages are not known.
#[derive(Debug, thiserror::Error)]
pub enum PackageListError {
    /// Not a system of dpkg's, or dpkg failed.
    #[error("dpkg tells no files of packages: {0}; --package works on Debian and its like")]
    Dpkg(String),
    /// Not installed.
    #[error("the package `{0}` is not installed; `apt install {0}` does it")]
    Missing(String),
}

/// The files of packages, of everything that they need, and of what every system needs: names of files, links and
/// directories, each directory before what is in it.
///
/// # Errors
/// No dpkg, or a package that is not installed.
pub fn package_files(names: &[String]) -> Result<Vec<PathBuf>, PackageListError> {
    let (told, own) = (
        query_packages("dpkg-query", &["-W", "-f", FORMAT])?,
        query_packages("dpkg", &["--print-architecture"])?,
    );
    let all = InstalledPackages::parse(&told, own.trim()).dependency_closure(names)?;
    let listed = query_packages("dpkg-query", &[&["-L"], &all[..]].concat())?;
    let wanted = |line: &&str| line.starts_with('/') && !UNREAD.iter().any(|place| line.starts_with(place));
    let files: BTreeSet<PathBuf> =
        listed.lines().filter(wanted).filter(|line| *line != "/.").map(PathBuf::from).collect();
    Ok(files.into_iter().collect())
}

fn query_packages<T: AsRef<std::ffi::OsStr>>(
    program: &str,
    arguments: &[T],
) -> Result<String, PackageListError> {
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").output();
    let failed = |why: &str| PackageListError::Dpkg(format!("{program}: {why}"));
    let output = output.map_err(|error| failed(&error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(said.lines().next().unwrap_or("it failed")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What is installed, by name.
struct InstalledPackages<'a> {
    packages: BTreeMap<&'a str, InstalledPackage<'a>>,
    essential: Vec<&'a str>,
    /// who stands for a name that no package has
    stands: BTreeMap<&'a str, &'a str>,
}

struct InstalledPackage<'a> {
    /// with its architecture, where there may be several
    full_name: &'a str,
    /// the alternatives of each need
    needs: Vec<Vec<&'a str>>,
}

impl<'a> InstalledPackages<'a> {
    /// Those of one architecture, and of all.
    fn parse(text: &'a str, own: &str) -> Self {
        let mut all =
            InstalledPackages { packages: BTreeMap::new(), essential: Vec::new(), stands: BTreeMap::new() };
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let ["installed", architecture, name, full_name, essential, needs, stands] = fields[..] else {
                continue;
            };
            if ![own, "all"].contains(&architecture) {
                continue;
            }
            let needs = needs.split(',').map(parse_alternatives).collect();
            all.packages.insert(name, InstalledPackage { full_name, needs });
            all.essential.extend((essential == "yes").then_some(name));
            all.stands.extend(stands.split(',').flat_map(parse_alternatives).map(|stands| (stands, name)));
        }
        all
    }

    fn find_provider(&self, name: &str) -> Option<&'a str> {
        let own = self.packages.get_key_value(name).map(|(name, _)| *name);
        own.or_else(|| self.stands.get(name).copied())
    }

    /// The full names of packages, of what they need, and of what everybody does.
    fn dependency_closure(&self, names: &[String]) -> Result<Vec<&'a str>, PackageListError> {
        let mut found: BTreeMap<&str, &'a str> = BTreeMap::new();
        let mut open: Vec<&str> = self.essential.clone();
        for name in names {
            open.push(self.find_provider(name).ok_or_else(|| PackageListError::Missing(name.clone()))?);
        }
        while let Some((name, package)) = open.pop().and_then(|name| self.packages.get_key_value(name)) {
            if found.insert(name, package.full_name).is_none() {
                open.extend(
                    package
                        .needs
                        .iter()
                        .filter_map(|need| need.iter().find_map(|one| self.find_provider(one))),
                );
            }
        }
        Ok(found.into_values().collect())
    }
}

/// `libblas3 (>= 3) | libblas.so.3` without versions and architectures.
fn parse_alternatives(need: &str) -> Vec<&str> {
    let bare = need.split('|').map(str::trim).filter(|one| !one.is_empty());
    bare.filter_map(|one| one.split([' ', '(', ':']).next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_of_needs_are_there_by_whatever_name_they_have() {
        let text = "installed\tall\tapp\tapp\tno\t, lib (>= 2), blas3 | blas.so.3, gone | sh:any\t\n\
                    installed\tamd64\tlib\tlib:amd64\tno\t\t\ninstalled\ti386\tlib\tlib:i386\tno\talien\t\n\
                    config-files\tamd64\tblas3\tblas3\tno\t\t\nconfig-files\tamd64\tremoved\tremoved\tno\t\t\n\
                    installed\tamd64\topenblas\topenblas\tno\t, lib\tblas.so.3 (= 1), other\n\
                    installed\tamd64\tdash\tdash\tyes\t\tsh\ninstalled\tamd64\talien\talien\tno\t\t\n";
        let all = InstalledPackages::parse(text, "amd64");
        let found = all.dependency_closure(&["app".into()]).unwrap();
        assert_eq!(found, ["app", "dash", "lib:amd64", "openblas"]);
        for missing in ["no-such", "removed"] {
            let error = all.dependency_closure(&[missing.into()]).unwrap_err();
            assert!(error.to_string().contains(&format!("`apt install {missing}`")), "{error}");
        }
    }
}
