//! Files of a crate import from one another in one direction: what two of them share stands in a third, below both.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Crates with circles that are still to be opened, and how many at most: a number here only goes down.
const STILL_OPEN: &[(&str, usize)] = &[];

/// Where a module stands in its crate: `["compare", "change"]`; the root is empty.
type ModulePath = Vec<String>;

/// The files of a crate, and what their imports lead to.
#[derive(Default)]
struct CrateModules {
    /// code without comments and tests
    code: BTreeMap<ModulePath, String>,
    /// what other files find in a file although it is defined elsewhere: name -> path
    re_exports: BTreeMap<ModulePath, BTreeMap<String, ModulePath>>,
    /// modules all of whose names a file passes on
    globs: BTreeMap<ModulePath, Vec<ModulePath>>,
    /// paths that a file uses for itself
    uses: BTreeMap<ModulePath, Vec<ModulePath>>,
}

impl CrateModules {
    fn read(src: &Path) -> Self {
        let mut modules = CrateModules::default();
        for file in rust_files(src) {
            let path = file.strip_prefix(src).unwrap().with_extension("");
            let mut module: ModulePath =
                path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if module.last().is_some_and(|last| last == "tests") {
                continue;
            }
            if module.last().is_some_and(|last| last == "mod")
                || matches!(&module[..], [one] if one == "lib" || one == "main")
            {
                module.pop();
            }
            modules.code.insert(module, without_tests(&std::fs::read_to_string(&file).unwrap()));
        }
        let files: Vec<(ModulePath, String)> =
            modules.code.iter().map(|(module, code)| (module.clone(), code.clone())).collect();
        for (module, code) in files {
            modules.add_imports(&module, &code);
        }
        modules
    }

    fn add_imports(&mut self, module: &ModulePath, code: &str) {
        let mut rest = String::new();
        let mut lines = code.lines();
        while let Some(line) = lines.next() {
            let trimmed = line.trim_start();
            let is_public = trimmed.starts_with("pub");
            let after = match trimmed.split_once("use ") {
                Some((before, after)) if ["", "pub ", "pub(crate) ", "pub(super) "].contains(&before) => {
                    after
                }
                _ => {
                    rest.push_str(line);
                    rest.push('\n');
                    continue;
                }
            };
            let mut tree = after.to_owned();
            while !tree.contains(';') {
                let Some(next) = lines.next() else { break };
                tree.push_str(next);
            }
            for (path, name) in expand_use(tree.split(';').next().unwrap()) {
                let Some(target) = self.absolute(module, &path) else { continue };
                if !is_public {
                    self.uses.entry(module.clone()).or_default().push(target);
                } else if name == "*" {
                    self.globs.entry(module.clone()).or_default().push(target);
                } else {
                    self.re_exports.entry(module.clone()).or_default().insert(name, target);
                }
            }
        }
        let is_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
        for chain in rest.split(|letter| !is_name(letter)).filter(|chain| chain.contains("::")) {
            let path: Vec<String> =
                chain.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
            if let Some(target) = self.absolute(module, &path) {
                self.uses.entry(module.clone()).or_default().push(target);
            }
        }
    }

    /// A path from the root; none where it leads out of the crate.
    fn absolute(&self, module: &ModulePath, path: &[String]) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        let child = || [module.as_slice(), &path[..1]].concat();
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([module.as_slice(), rest].concat()),
            "super" => {
                let ups = path.iter().take_while(|part| *part == "super").count();
                let above = module.get(..module.len().checked_sub(ups)?)?;
                Some([above, &path[ups..]].concat())
            }
            _ if self.code.contains_key(&child()) => Some([module.as_slice(), path].concat()),
            _ => None,
        }
    }

    /// The file that defines what a path leads to.
    fn defining_file(&self, path: &[String], depth: usize) -> Option<ModulePath> {
        let length = (0..=path.len()).rev().find(|length| self.code.contains_key(&path[..*length]))?;
        let (module, rest) = (path[..length].to_vec(), &path[length..]);
        let Some(name) = rest.first().filter(|_| depth < 8) else { return Some(module) };
        if let Some(target) = self.re_exports.get(&module).and_then(|names| names.get(name)) {
            return self.defining_file(&[target.as_slice(), &rest[1..]].concat(), depth + 1);
        }
        let through = |glob: &ModulePath| {
            let target = [glob.as_slice(), rest].concat();
            let defined = self.code.get(glob).is_some_and(|code| code.contains(&format!(" {name}")));
            defined.then(|| self.defining_file(&target, depth + 1)).flatten()
        };
        let own = self.code.get(&module).is_some_and(|code| {
            ["fn", "struct", "enum", "trait", "const", "static", "type", "mod"]
                .iter()
                .any(|kind| code.contains(&format!("{kind} {name}")))
        });
        let globs = self.globs.get(&module).filter(|_| !own);
        Some(globs.into_iter().flatten().find_map(through).unwrap_or(module))
    }

    /// Groups of files each of which leads to all others of its group.
    fn circles(&self) -> Vec<Vec<String>> {
        let arrows: BTreeMap<&ModulePath, BTreeSet<ModulePath>> = self
            .code
            .keys()
            .map(|module| {
                let paths = self.uses.get(module).into_iter().flatten();
                let files = paths.filter_map(|path| self.defining_file(path, 0));
                (module, files.filter(|file| file != module).collect())
            })
            .collect();
        let reached = |from: &ModulePath| {
            let (mut found, mut next) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(module) = next.pop() {
                next.extend(arrows[&module].iter().filter(|file| found.insert((*file).clone())).cloned());
            }
            found
        };
        let all: BTreeMap<&ModulePath, BTreeSet<ModulePath>> =
            self.code.keys().map(|module| (module, reached(module))).collect();
        let circle = |module: &&ModulePath| -> BTreeSet<String> {
            let both = all[*module].iter().filter(|other| all[other].contains(*module));
            both.map(|file| file.join("/")).collect()
        };
        let circles: BTreeSet<BTreeSet<String>> = self.code.keys().map(|module| circle(&module)).collect();
        circles.into_iter().filter(|files| files.len() > 1).map(|files| files.into_iter().collect()).collect()
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    files
}

/// Code up to the unit tests, which may import from anywhere, without comments.
fn without_tests(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let opens = |next: &&str| next.contains("mod ") && next.ends_with('{');
        if line == "#[cfg(test)]" && lines.peek().is_some_and(opens) {
            break;
        }
        code.push_str(line.split("//").next().unwrap_or_default());
        code.push('\n');
    }
    code
}

/// Every path of a `use`, with the name that it has from then on.
fn expand_use(tree: &str) -> Vec<(Vec<String>, String)> {
    let parts = |text: &str| -> Vec<String> {
        text.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
    };
    let tree = tree.trim();
    let Some((before, inside)) = tree.split_once('{') else {
        let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, name)| (path, Some(name)));
        let path = parts(path);
        let last = path.last().cloned().unwrap_or_default();
        let name = alias.map_or(last.clone(), |name| name.trim().to_owned());
        let path = if last == "*" || last == "self" { path[..path.len() - 1].to_vec() } else { path };
        return vec![(path, name)];
    };
    let (mut depth, mut one, mut all) = (0, String::new(), Vec::new());
    for letter in inside.strip_suffix('}').unwrap_or(inside).chars().chain([',']) {
        match letter {
            ',' if depth == 0 => all.push(std::mem::take(&mut one)),
            _ => {
                depth += i32::from(letter == '{') - i32::from(letter == '}');
                one.push(letter);
            }
        }
    }
    let prefix = parts(before);
    let trees = all.iter().filter(|tree| !tree.trim().is_empty());
    let expanded = trees.flat_map(|tree| expand_use(tree));
    expanded.map(|(path, name)| ([prefix.as_slice(), &path].concat(), name)).collect()
}

#[test]
fn files_of_a_crate_import_in_one_direction() {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec().unwrap();
    let (mut files, mut circles) = (0, Vec::new());
    for package in metadata.packages {
        let src = package.manifest_path.parent().unwrap().join("src");
        let modules = CrateModules::read(src.as_std_path());
        files += modules.code.len();
        let found = modules.circles();
        let known = STILL_OPEN.iter().find(|(name, _)| *name == package.name.as_str());
        if found.len() > known.map_or(0, |(_, circles)| *circles) {
            circles.extend(found.into_iter().map(|files| format!("{}: {}", package.name, files.join(", "))));
        }
    }
    assert!(files > 300, "{files} files were found");
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn a_circle_is_found_through_a_face() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod one;\nmod three;\nmod two;\npub use one::One;\n");
    write(
        "one.rs",
        "use crate::two::{\n    inner::{Inner, Other},\n    Two as Second,\n};\npub struct One;\n",
    );
    write("two/mod.rs", "mod inner;\npub use inner::*;\npub struct Two;\n");
    write("two/inner.rs", "// crate::three::Three\nuse crate::One;\npub struct Inner;\npub struct Other;\n");
    write(
        "three.rs",
        "pub struct Three(crate::One);\n#[cfg(test)]\nmod tests {\n    use crate::two::Two;\n}\n",
    );
    assert_eq!(CrateModules::read(folder.path()).circles(), [["one", "two/inner"]]);
}
