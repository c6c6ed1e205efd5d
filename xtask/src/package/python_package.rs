//! The sources of the Python package, and what `python/pyproject.toml` says of it: the metadata of a wheel are made of that.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use toml::{Table, Value};

/// The Python package without its program.
pub struct PythonPackage {
    /// the table `project`
    project: Table,
    /// name and text of each module, sorted
    pub modules: Vec<(String, Vec<u8>)>,
    /// what the registry shows
    readme: String,
}

impl PythonPackage {
    /// Reads it, and refuses one of another version than the program's.
    pub fn read(folder: &Path, version: &str) -> Result<Self> {
        let path = folder.join("pyproject.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut whole: Table = text.parse().with_context(|| format!("{} is no TOML", path.display()))?;
        let Some(Value::Table(project)) = whole.remove("project") else {
            bail!("{} has no table `project`", path.display());
        };
        let readme = folder.join("README.md");
        let readme =
            fs::read_to_string(&readme).with_context(|| format!("cannot read {}", readme.display()))?;
        let package = PythonPackage { project, modules: list_modules(&folder.join("src/perflab"))?, readme };
        let own = package.text("version")?;
        if own != version {
            bail!("{} has version {own}, the workspace {version}: make them one", path.display());
        }
        let needle = format!("__version__ = \"{version}\"\n");
        if !package.modules.iter().any(|(_, text)| String::from_utf8_lossy(text).contains(&needle)) {
            bail!("no module of {} says {}", folder.display(), needle.trim_end());
        }
        Ok(package)
    }

    fn text(&self, key: &str) -> Result<&str> {
        let value = self.project.get(key).and_then(Value::as_str);
        value.with_context(|| format!("`project.{key}` of pyproject.toml is no text"))
    }

    fn texts(&self, key: &str) -> Vec<&str> {
        let list = self.project.get(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn entries(&self, key: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.project.get(key).and_then(Value::as_table).into_iter().flatten()
    }

    /// `METADATA` of a wheel (<https://packaging.python.org/en/latest/specifications/core-metadata/>), with the files of licences that are in it.
    pub fn render_metadata(&self, licences: &[&str]) -> Result<String> {
        let mut text = String::from("Metadata-Version: 2.4\n");
        let mut line = |key: &str, value: &str| -> Result<()> {
            if value.contains('\n') {
                bail!("{key} of pyproject.toml has several lines");
            }
            Ok(writeln!(text, "{key}: {value}")?)
        };
        line("Name", self.text("name")?)?;
        line("Version", self.text("version")?)?;
        line("Summary", self.text("description")?)?;
        line("License-Expression", self.text("license")?)?;
        for licence in licences {
            line("License-File", licence)?;
        }
        for classifier in self.texts("classifiers") {
            line("Classifier", classifier)?;
        }
        for (name, address) in self.entries("urls") {
            line("Project-URL", &format!("{name}, {}", address.as_str().unwrap_or_default()))?;
        }
        line("Requires-Python", self.text("requires-python")?)?;
        for needed in self.texts("dependencies") {
            line("Requires-Dist", needed)?;
        }
        for (extra, needed) in self.entries("optional-dependencies") {
            line("Provides-Extra", extra)?;
            for needed in needed.as_array().into_iter().flatten().filter_map(Value::as_str) {
                line("Requires-Dist", &format!("{needed}; extra == \"{extra}\""))?;
            }
        }
        line("Description-Content-Type", "text/markdown")?;
        Ok(format!("{text}\n{}", self.readme))
    }
}

/// The modules, and the mark that they have types; nothing that Python or an editor left there.
fn list_modules(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut modules = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_file() && (name.ends_with(".py") || name == "py.typed") {
            modules.push((name, fs::read(&path)?));
        }
    }
    modules.sort();
    Ok(modules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_the_sources_has_the_version_of_the_workspace_and_metadata() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python");
        let package = PythonPackage::read(&folder, env!("CARGO_PKG_VERSION")).unwrap();
        let metadata = package.render_metadata(&["LICENSE-MIT"]).unwrap();
        for line in [
            "Name: perflab\n",
            "License-File: LICENSE-MIT\n",
            "Requires-Dist: pyarrow>=",
            "Requires-Dist: pandas; extra == \"pandas\"\n",
        ] {
            assert!(metadata.contains(line), "{line}: {metadata}");
        }
        let other = PythonPackage::read(&folder, "9.9.9").map(|_| ()).unwrap_err().to_string();
        assert!(other.contains("9.9.9"), "{other}");
    }
}
