//! The crates that are compiled into the program: what `cargo metadata` says of perflab's dependencies, without what only builds and
//! tests need.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// A crate of the program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShippedCrate {
    /// its name
    pub name: String,
    /// its version
    pub version: String,
    /// an SPDX expression, as the crate says it
    pub licence: String,
    /// where its sources are
    pub repository: String,
    /// who wrote it, as far as it says so
    pub authors: Vec<String>,
    /// whether it is of this repository
    pub is_own: bool,
    /// SHA-256 of its package at the registry, from `Cargo.lock`
    pub checksum: Option<String>,
    /// the folder of its sources here
    pub folder: PathBuf,
    /// places of the crates that it uses itself
    pub uses: BTreeSet<usize>,
}

/// All of them, sorted by name and version.
#[derive(Debug)]
pub struct ShippedCrates {
    /// own ones, too
    pub list: Vec<ShippedCrate>,
}

/// The crate whose program is packaged.
const ROOT: &str = "perflab";

impl ShippedCrates {
    /// Asks cargo about these sources, for the machine that this runs on.
    pub fn read(sources: &Path) -> Result<Self> {
        let mut cargo = Command::new("cargo");
        cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &host_platform()?]);
        cargo.current_dir(sources);
        let output = cargo.output().context("cannot run cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        let lock = std::fs::read_to_string(sources.join("Cargo.lock")).context("cannot read Cargo.lock")?;
        ShippedCrates::select(&metadata, &lock)
    }

    fn select(metadata: &Value, lock: &str) -> Result<Self> {
        let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let id = |value: &Value| value["id"].as_str().unwrap_or_default().to_owned();
        let packages: BTreeMap<String, Value> =
            array(&metadata["packages"]).into_iter().map(|package| (id(&package), package)).collect();
        let nodes: BTreeMap<String, Value> =
            array(&metadata["resolve"]["nodes"]).into_iter().map(|node| (id(&node), node)).collect();
        let is_macro = |package: &Value| {
            array(&package["targets"])
                .iter()
                .any(|target| array(&target["kind"]).contains(&"proc-macro".into()))
        };
        let root =
            packages.iter().find(|(_, package)| package["name"] == ROOT && package["source"].is_null());
        let root = root.map(|(id, _)| id.clone()).with_context(|| format!("there is no crate {ROOT}"))?;
        // What runs in the compiler is not in the program, nor is what that alone needs.
        let used = |of: &str| -> Vec<String> {
            let dependencies = nodes.get(of).map(|node| array(&node["deps"])).unwrap_or_default();
            let is_linked = |dependency: &Value| {
                array(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
            };
            let ids = dependencies.iter().filter(|one| is_linked(one)).filter_map(|one| one["pkg"].as_str());
            ids.filter(|id| packages.get(*id).is_some_and(|package| !is_macro(package)))
                .map(str::to_owned)
                .collect()
        };
        let (mut reached, mut next) = (BTreeSet::from([root.clone()]), vec![root]);
        while let Some(one) = next.pop() {
            next.extend(used(&one).into_iter().filter(|id| reached.insert(id.clone())));
        }
        let sums = read_checksums(lock);
        let mut list: Vec<(String, ShippedCrate)> = Vec::new();
        for id in &reached {
            let package =
                packages.get(id).with_context(|| format!("cargo metadata does not describe {id}"))?;
            list.push((id.clone(), describe_crate(package, &sums)));
        }
        list.sort_by(|(_, a), (_, b)| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        let places: BTreeMap<String, usize> =
            list.iter().enumerate().map(|(place, (id, _))| (id.clone(), place)).collect();
        for (id, one) in &mut list {
            one.uses = used(id).iter().filter_map(|used| places.get(used).copied()).collect();
        }
        Ok(ShippedCrates { list: list.into_iter().map(|(_, one)| one).collect() })
    }

    /// The version of a crate of this name.
    pub fn version_of(&self, name: &str) -> Result<String> {
        let found = self.list.iter().find(|one| one.name == name);
        found.map(|one| one.version.clone()).with_context(|| format!("there is no crate {name}"))
    }
}

fn describe_crate(package: &Value, sums: &BTreeMap<(String, String), String>) -> ShippedCrate {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let (name, version) = (text("name"), text("version"));
    let manifest = PathBuf::from(text("manifest_path"));
    ShippedCrate {
        checksum: sums.get(&(name.clone(), version.clone())).cloned(),
        licence: text("license").replace('/', " OR ").replace("  ", " "),
        repository: text("repository"),
        authors: package["authors"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        is_own: package["source"].is_null(),
        folder: manifest.parent().map(PathBuf::from).unwrap_or_default(),
        uses: BTreeSet::new(),
        name,
        version,
    }
}

/// Name and version -> the sum in `Cargo.lock`.
fn read_checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let read =
        |block: &str| Some(((value(block, "name")?, value(block, "version")?), value(block, "checksum")?));
    lock.split("[[package]]").filter_map(read).collect()
}

/// The platform of this toolchain.
fn host_platform() -> Result<String> {
    let about = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let about = String::from_utf8_lossy(&about.stdout).into_owned();
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_linked_is_shipped_and_what_builds_and_tests_is_not() {
        let package = |name: &str, kind: &str, source: Option<&str>| {
            json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "source": source,
                "manifest_path": format!("/{name}/Cargo.toml"), "targets": [{ "kind": [kind] }] })
        };
        let uses = |name: &str, kind: Option<&str>| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let registry = Some("registry");
        let metadata = json!({
            "packages": [
                package("perflab", "bin", None), package("used", "lib", registry), package("below", "lib", registry),
                package("derive", "proc-macro", registry), package("of-derive", "lib", registry),
                package("tested", "lib", registry), package("builds", "lib", registry),
            ],
            "resolve": { "nodes": [
                { "id": "perflab", "deps": [uses("used", None), uses("derive", None), uses("tested", Some("dev")), uses("builds", Some("build"))] },
                { "id": "used", "deps": [uses("below", None)] },
                { "id": "derive", "deps": [uses("of-derive", None)] },
            ] },
        });
        let lock = "[[package]]\nname = \"used\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n";
        let shipped = ShippedCrates::select(&metadata, lock).unwrap().list;
        let names: Vec<&str> = shipped.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["below", "perflab", "used"]);
        assert_eq!(shipped[1].uses, BTreeSet::from([2]));
        assert_eq!(
            (shipped[2].checksum.as_deref(), shipped[2].licence.as_str()),
            (Some("abc"), "MIT OR Apache-2.0")
        );
        assert!(shipped[1].is_own && !shipped[0].is_own);
    }
}
