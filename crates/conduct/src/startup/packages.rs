//! What belongs to installed packages of Debian and its like, as dpkg tells. Owns the way from names of packages to files;
//! refuses to install.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

/// What programs read at no start: documentation, and words of other languages.
const UNREAD: [&str; 5] =
    ["/usr/share/doc/", "/usr/share/man/", "/usr/share/info/", "/usr/share/locale/", "/usr/share/lintian/"];
/// One line a package: name, whether everybody needs it, what it needs, what it stands for.
const FORMAT: &str = "${Package}\t${Essential}\t${Pre-Depends}, ${Depends}\t${Provides}\n";

/// Why the files of packages are not known.
#[derive(Debug, thiserror::Error)]
pub enum PackagesError {
    /// Not a system of dpkg's, or dpkg failed.
    #[error("`dpkg-query` tells no files of packages: {0}; --package works on Debian and its like")]
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
pub fn files(names: &[String]) -> Result<Vec<PathBuf>, PackagesError> {
    let told = ask(&["-W", "-f", FORMAT])?;
    let all: Vec<String> = Installed::read(&told).closure(names)?.into_iter().collect();
    let listed = ask(&[&["-L".to_owned()], &all[..]].concat())?;
    let wanted = |line: &&str| line.starts_with('/') && !UNREAD.iter().any(|place| line.starts_with(place));
    let files: BTreeSet<PathBuf> =
        listed.lines().filter(wanted).filter(|line| *line != "/.").map(PathBuf::from).collect();
    Ok(files.into_iter().collect())
}

fn ask<T: AsRef<std::ffi::OsStr>>(arguments: &[T]) -> Result<String, PackagesError> {
    let output = Command::new("dpkg-query").args(arguments).env("LC_ALL", "C").output();
    let output = output.map_err(|error| PackagesError::Dpkg(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(PackagesError::Dpkg(said.lines().next().unwrap_or("it failed").into()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What is installed, by name.
struct Installed<'a> {
    /// the alternatives of each need
    needs: BTreeMap<&'a str, Vec<Vec<&'a str>>>,
    essential: Vec<&'a str>,
    /// who stands for a name that no package has
    stands: BTreeMap<&'a str, &'a str>,
}

impl<'a> Installed<'a> {
    fn read(text: &'a str) -> Self {
        let mut all = Installed { needs: BTreeMap::new(), essential: Vec::new(), stands: BTreeMap::new() };
        for line in text.lines() {
            let mut fields = line.split('\t');
            let [Some(name), Some(essential), Some(needs), Some(stands)] = [(); 4].map(|()| fields.next())
            else {
                continue;
            };
            all.needs.insert(name, needs.split(',').map(alternatives).collect());
            if essential == "yes" {
                all.essential.push(name);
            }
            all.stands.extend(stands.split(',').flat_map(alternatives).map(|stands| (stands, name)));
        }
        all
    }

    fn package(&self, name: &str) -> Option<&'a str> {
        let own = self.needs.get_key_value(name).map(|(name, _)| *name);
        own.or_else(|| self.stands.get(name).copied())
    }

    fn closure(&self, names: &[String]) -> Result<BTreeSet<String>, PackagesError> {
        let mut found: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = self.essential.clone();
        for name in names {
            open.push(self.package(name).ok_or_else(|| PackagesError::Missing(name.clone()))?);
        }
        while let Some(name) = open.pop() {
            if found.insert(name) {
                let needs = self.needs.get(name).into_iter().flatten();
                open.extend(needs.filter_map(|need| need.iter().find_map(|one| self.package(one))));
            }
        }
        Ok(found.into_iter().map(String::from).collect())
    }
}

/// `libblas3 (>= 3) | libblas.so.3` without versions and architectures.
fn alternatives(need: &str) -> Vec<&str> {
    let name = |one: &'_ str| one.trim().len();
    let bare = need.split('|').filter(|one| name(one) > 0);
    bare.filter_map(|one| one.trim().split([' ', '(', ':']).next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_of_needs_are_there_by_whatever_name_they_have() {
        let text = "app\tno\t, lib (>= 2), blas3 | blas.so.3, gone | sh:any\t\nlib\tno\t\t\n\
                    openblas\tno\t, lib\tblas.so.3 (= 1), other\ndash\tyes\t\tsh\nalien\tno\t\t\n";
        let all = Installed::read(text);
        let found = all.closure(&["app".into()]).unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["app", "dash", "lib", "openblas"]);
        let error = all.closure(&["no-such".into()]).unwrap_err();
        assert!(error.to_string().contains("`apt install no-such`"), "{error}");
    }
}
