//! `perflab kernel build`: revisions, trees, patches, archives; what a build compiles, and what it leaves when it fails.
//!
//! The tree is the smallest that is laid out as Linux is and builds with the same commands; real kernels are built by
//! `cargo xtask long kernels` and by whoever runs the study `allocators`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::interrupted::wait_for_condition;
use crate::laboratory::{CommandOutput, Sandbox, to_command_output};
use crate::vm::GuestSandbox;

/// Takes the same arguments as Linux's, and compiles two files out of tree.
const MAKEFILE: &str = r#"
FILES := mm/slub fs/file
tinyconfig:
	@echo CONFIG_LOCALVERSION_AUTO=y > $(O)/.config
olddefconfig:
	@grep -h -v GONE $(O)/.config > $(O)/.config.new; mv $(O)/.config.new $(O)/.config
bzImage: $(FILES:%=$(O)/%.o)
	@mkdir -p $(O)/arch/x86/boot
	@{ head -c 514 /dev/zero; printf HdrS; head -c 8 /dev/zero; printf '\000\006'; head -c 1520 /dev/zero; printf '6.1.0%s (' "$(LOCALVERSION)"; cat $^; } > $(O)/arch/x86/boot/bzImage
	@cat $^ > $(O)/vmlinux; echo > $(O)/System.map
$(O)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC      $*.o"
	@test ! -e $(O)/../../slow || sleep 5
	@gcc $(CFLAGS_$(notdir $@)) -c -o $@ $<
"#;

const MERGE: &str =
    "#!/bin/sh\ncat \"$4\" \"$5\" > \"$3/.config.merged\"; mv \"$3/.config.merged\" \"$3/.config\"\n";

/// What a recipe needs besides for a guest with a distribution's kernel.
const BOOTABLE: &str = "options = [\"CONFIG_VIRTIO_CONSOLE=m\"]";

/// A study with a guest that boots soon.
const GUEST_STUDY: &str = "run = { iterations = 1, warmup = 0 }\n[workload.memory-bandwidth]\nparameters = { size = \"1MiB\" }\n\
     [target.guest]\nkind = \"vm\"\nkernel = \"debian-cloud\"\nroot = \"bare\"\nmemory = \"512MiB\"\n";

/// A folder with a tree, a recipe for it and a cache.
struct Trees {
    laboratory: Sandbox,
}

impl Trees {
    fn new() -> Trees {
        let trees = Trees { laboratory: Sandbox::new() };
        for folder in ["tree/mm", "tree/fs", "tree/scripts/kconfig"] {
            fs::create_dir_all(trees.path(folder)).unwrap();
        }
        trees.write("tree/Makefile", MAKEFILE);
        trees.write("tree/Kbuild", "");
        // As Debian's sources have it: what is tracked is built all the same.
        trees.write("tree/.gitignore", "/*\n");
        trees.write("tree/mm/Makefile", "");
        trees.write("tree/mm/slub.c", "int slub(void)\n{\n\treturn 1;\n}\n");
        trees.write("tree/fs/file.c", "int file(void)\n{\n\treturn 1;\n}\n");
        trees.write("tree/scripts/kconfig/merge_config.sh", MERGE);
        let script = trees.path("tree/scripts/kconfig/merge_config.sh");
        fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        trees
    }

    fn path(&self, name: &str) -> PathBuf {
        self.laboratory.path(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// A makefile that puts a distribution's kernel where it would link one.
    fn write_bootable_makefile(&self) {
        let makefile = MAKEFILE.split("\t@mkdir -p $(O)/arch").next().unwrap().to_owned()
            + "\t@mkdir -p $(O)/arch/x86/boot; cp $(CLOUD_IMAGE) $(O)/arch/x86/boot/bzImage; cat $^ > $(O)/vmlinux; echo > $(O)/System.map\n"
            + "modules:\nmodules_install:\n\t@mkdir -p $(INSTALL_MOD_PATH)/lib/modules; cp -r $(CLOUD_MODULES) $(INSTALL_MOD_PATH)/lib/modules\n"
            + &MAKEFILE[MAKEFILE.find("$(O)/%.o:").unwrap()..];
        self.write("tree/Makefile", &makefile);
    }

    /// perflab, which finds that kernel, with guests of this sandbox.
    fn command_with_guests(&self, guests: &GuestSandbox, words: &[&str]) -> Command {
        let cloud = perflab_guest::find_kernel("debian-cloud", None).unwrap();
        let mut command = self.command(words);
        command.env("XDG_RUNTIME_DIR", guests.home()).env("CLOUD_IMAGE", &cloud.image);
        command.env("CLOUD_MODULES", cloud.modules.as_ref().unwrap());
        command
    }

    /// A recipe of that name for these sources, with `more` in its `[build]`.
    fn write_recipe(&self, name: &str, more: &str) -> String {
        let text = format!(
            "title = \"{name}\"\n[build]\nbase = \"tinyconfig\"\nfragments = [\"guest.config\"]\n{more}\n"
        );
        self.write(&format!("{name}.toml"), &text);
        self.path(&format!("{name}.toml")).display().to_string()
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.path("tree")).args(["-c", "user.name=t", "-c", "user.email=t@localhost"]);
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Commits the tree as it is, under a tag.
    fn commit(&self, tag: &str) {
        self.git(&["add", "-A", "-f"]);
        self.git(&["commit", "-qm", &format!("as {tag} has it")]);
        self.git(&["tag", tag]);
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.laboratory.command(arguments);
        command.env("PERFLAB_CACHE", self.path("cache"));
        command
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        to_command_output(self.command(arguments).output().unwrap())
    }

    /// Builds a kernel, and says how it was built.
    fn build(&self, name: &str) -> Value {
        let built = self.run(&["kernel", "build", name]);
        assert_eq!(built.code, Some(0), "{}", built.err);
        let shown = self.run(&["kernel", "show", name, "--format", "json"]);
        serde_json::from_str::<Value>(&shown.out).unwrap()["build"].take()
    }

    /// What is said of a build that fails, with stable paths.
    fn refuse(&self, name: &str, code: i32) -> String {
        let refused = self.run(&["kernel", "build", name]);
        assert_eq!(refused.code, Some(code), "{}", refused.err);
        let home = self.laboratory.home.path().display().to_string();
        let line = refused.err.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        // Folders of objects are named by a hash of the place of the sources.
        let hash = |word: &str| word.len() == 12 && word.bytes().all(|c| c.is_ascii_hexdigit());
        let words = line.replace(&home, "HOME");
        words
            .split_inclusive(['-', '/'])
            .map(|word| match hash(word.trim_end_matches(['-', '/'])) {
                true => "HASH/",
                false => word,
            })
            .collect()
    }

    /// Every file of the user's repository, with its content.
    fn repository_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        list_files(&self.path("tree"), &mut files);
        files.sort();
        files
    }
}

fn list_files(folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => list_files(&entry.path(), files),
            false => files.push((entry.path(), fs::read(entry.path()).unwrap())),
        }
    }
}

#[test]
fn a_revision_compiles_what_differs_and_is_built_once() {
    let trees = Trees::new();
    trees.git(&["init", "-q"]);
    trees.commit("v1");
    trees.write("tree/mm/slub.c", "int slub(void)\n{\n\treturn 2;\n}\n");
    trees.commit("v2");
    trees.write("tree/fs/file.c", "int file(void)\n{\n\treturn 3;\n}\n");
    let before = trees.repository_files();
    let tree = trees.path("tree").display().to_string();
    let recipe = trees.write_recipe("mine", &format!("git = \"{tree}\""));

    let [first, second, again] = ["v1", "v2", "v1"].map(|tag| trees.build(&format!("{recipe}@{tag}")));
    assert_eq!(
        [&first, &second, &again].map(|build| build["compiled"].as_u64()),
        [Some(2), Some(1), Some(2)]
    );
    assert_eq!(first["sources"]["commit"].as_str(), Some(trees.git(&["rev-parse", "v1"]).as_str()));
    assert_eq!(first["sources"]["subject"], "as v1 has it");
    assert_ne!(first["key"], second["key"]);

    // Both are listed, as what they were built from.
    let listed: Value =
        serde_json::from_str(&trees.run(&["kernel", "list", "--format", "json"]).out).unwrap();
    let subjects = |kernel: &Value| {
        let what = kernel["what"].as_str().unwrap();
        ["v1", "v2"].into_iter().find(|tag| what.ends_with(&format!("(as {tag} has it)")))
    };
    let mut found: Vec<&str> = listed.as_array().unwrap().iter().filter_map(subjects).collect();
    found.sort_unstable();
    assert_eq!(found, ["v1", "v2"], "{listed}");

    // What was not committed is a kernel of its own, from a recipe that takes any tree as well.
    let as_it_is = trees.write_recipe("as-it-is", &format!("tree = \"{tree}\""));
    let changed = trees.build(&as_it_is);
    assert_eq!(changed["sources"]["changed"], true);
    assert_ne!(changed["sources"]["id"], second["sources"]["id"]);
    assert_eq!(trees.repository_files(), before, "the user's repository is only read");
    // Edited again, and put back.
    let edit = |returned: u32| {
        trees.write("tree/fs/file.c", &format!("int file(void)\n{{\n\treturn {returned};\n}}\n"));
        trees.build(&as_it_is)["sources"]["id"].as_str().unwrap().to_owned()
    };
    let ids = [edit(4), edit(5), edit(1)];
    assert_eq!(ids[2], second["sources"]["id"].as_str().unwrap());
    assert_ne!(ids[0], ids[1]);

    let all = trees.run(&["kernel", "build", &format!("{recipe}@v1..v2")]);
    assert_eq!((all.code, all.out.lines().count()), (Some(0), 1), "{}", all.err);
    let said = [
        trees.refuse(&format!("{recipe}@v3"), 2),
        trees.refuse(&format!("{as_it_is}@v2..v1"), 2),
        trees.refuse("linux-guest", 2),
        trees.refuse("debian-cloud@v1", 2),
        trees.refuse(&format!("linux-guest:{tree}/mm@v1"), 2),
        trees.refuse(&format!("linux-guest:{}", trees.laboratory.home.path().display()), 2),
    ];
    insta::assert_snapshot!(said.join("\n"));
    let shown = trees.run(&["kernel", "show", &format!("{recipe}@v1..v2")]);
    assert_eq!(shown.code, Some(2), "{}", shown.err);
    let differing =
        trees.run(&["kernel", "diff", &format!("{recipe}@v1"), &format!("{recipe}@v2"), "--format", "json"]);
    let differing: Value = serde_json::from_str(&differing.out).unwrap();
    let what: Vec<&str> =
        differing.as_array().unwrap().iter().map(|row| row["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["release", "commit", "content"]);
}

#[test]
fn patches_are_laid_over_an_archive_and_taken_out_again() {
    let trees = Trees::new();
    let archive = trees.path("linux.tar");
    let packed =
        Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(trees.path("")).arg("tree").status();
    assert!(packed.unwrap().success());
    let place = format!("tarball = \"{}\"", archive.display());
    let patch = |line: &str, to: &str| {
        format!(
            "--- a/mm/slub.c\n+++ b/mm/slub.c\n@@ -1,4 +1,4 @@\n int slub(void)\n {{\n-\treturn {line};\n+\treturn {to};\n }}\n"
        )
    };
    trees.write("seven.patch", &patch("1", "7"));
    trees.write("late.patch", &patch("4", "8"));
    trees.write("eight.patch", &patch("1", "8"));
    let plain = trees.write_recipe("mine", &place);
    assert_eq!(trees.build(&plain)["compiled"], 2);
    trees.write_recipe("mine", &format!("{place}\npatches = [\"seven.patch\"]"));
    let seven = trees.build(&plain);
    assert_eq!(seven["patches"], serde_json::json!(["seven.patch"]));
    trees.write_recipe("mine", &format!("{place}\npatches = [\"seven.patch\", \"late.patch\"]"));
    insta::assert_snapshot!(trees.refuse(&plain, 3), @"error: the patch HOME/late.patch does not apply: mm/slub.c: hunk 1 (line 1)");
    trees.write("repository.patch", "--- /dev/null\n+++ b/.git/HEAD\n@@ -0,0 +1 @@\n+nonsense\n");
    trees.write_recipe("mine", "tree = \"tree\"\npatches = [\"repository.patch\"]");
    assert!(trees.build(&plain).is_object());
    trees.write_recipe("mine", "tree = \"tree\"\npatches = [\"seven.patch\"]");
    assert!(trees.build(&plain).is_object(), "perflab's own repository is out of a patch's reach");
    trees.write("empty.patch", "");
    trees.write_recipe("mine", &format!("{place}\npatches = [\"empty.patch\"]"));
    insta::assert_snapshot!(trees.refuse(&plain, 3), @"error: the patch HOME/empty.patch does not apply: it changes no file of the tree");
    // Neither that nor the patch before is left in the sources.
    trees.write_recipe("mine", &format!("{place}\npatches = [\"eight.patch\"]"));
    let eight = trees.build(&plain);
    assert_eq!(eight["compiled"], 1);
    assert_ne!(eight["key"], seven["key"]);
    trees.write_recipe("mine", &format!("{place}\nsha256 = \"{}\"", "0".repeat(64)));
    insta::assert_snapshot!(trees.refuse(&plain, 3).split(" instead of ").last().unwrap(), @"0000000000000000000000000000000000000000000000000000000000000000, as the recipe says");
}

#[test]
fn what_does_not_compile_or_could_not_be_spoken_to_is_refused_and_nothing_of_it_is_kept() {
    let trees = Trees::new();
    let recipe = trees.write_recipe("mine", "tree = \"tree\"");
    trees.write("tree/mm/slub.c", "int slub(void)\n{\n\treturn 1\n}\n");
    let compile = trees.refuse(&recipe, 3);
    trees.write_recipe("mine", "tree = \"tree\"\noptions = [\"CONFIG_GONE=y\"]");
    let gone = trees.refuse(&recipe, 3);
    trees.write_recipe("mine", "tree = \"tree\"\noptions = [\"CONFIG_VIRTIO_CONSOLE=n\"]");
    let mute = trees.refuse(&recipe, 3);
    trees.write_recipe("mine", "tree = \"tree\"\nflags = { \"mm/slub.o\" = \"-O1\" }");
    trees.write("tree/mm/Makefile", "CFLAGS_slub.o += -O2\n");
    let replaced = trees.refuse(&recipe, 3);
    insta::assert_snapshot!([compile, gone, mute, replaced].join("\n"), @r#"
error: the kernel does not compile: mm/slub.c:3:17: error: expected ';' before '}' token: `return 1`; the whole output is in HOME/cache/kernels/objects/mine-HASH/perflab-build.log
error: `make olddefconfig` failed: these sources do not take CONFIG_GONE=y; the recipe asks for an option that this version does not have, whose needs are not met, or that another one selects
error: a guest with the kernel `mine` could not be spoken to: its configuration lacks CONFIG_VIRTIO_CONSOLE; add `fragments = ["guest.config"]`, or these as `options`
error: `make` failed: the flags of mm/slub.o would replace those of the tree's mm/Makefile: `CFLAGS_slub.o += -O2`; add these to the recipe's own flags of the file in a patch of the makefile
"#);
    let kernels = fs::read_dir(trees.path("cache/kernels")).unwrap().map(|entry| entry.unwrap().file_name());
    let kept: Vec<_> = kernels.filter(|name| name.to_string_lossy().contains('@')).collect();
    assert!(kept.is_empty(), "{kept:?}");
    trees.write("tree/mm/Makefile", "");
    trees.write("tree/mm/slub.c", "int slub(void)\n{\n\treturn 1;\n}\n");
    assert_eq!(trees.build(&recipe)["flags"], serde_json::json!({ "mm/slub.o": "-O1" }));
}

#[test]
fn two_builds_at_once_compile_once_and_a_killed_one_is_gone_on_with() {
    let trees = Trees::new();
    let recipe = trees.write_recipe("mine", "tree = \"tree\"");
    fs::create_dir_all(trees.path("cache/kernels")).unwrap();
    trees.write("cache/kernels/slow", "");
    let start = || trees.command(&["kernel", "build", &recipe]).stdout(Stdio::null()).spawn().unwrap();
    let mut killed = start();
    let objects = trees.path("cache/kernels/objects");
    let compiles = || {
        fs::read_dir(&objects)
            .is_ok_and(|mut found| found.any(|one| one.unwrap().path().join("perflab-build.log").is_file()))
    };
    wait_for_condition(compiles);
    killed.kill().unwrap();
    killed.wait().unwrap();
    fs::remove_file(trees.path("cache/kernels/slow")).unwrap();
    let mut both = [start(), start()];
    for one in &mut both {
        assert!(one.wait().unwrap().success());
    }
    let shown = trees.run(&["kernel", "show", &recipe, "--format", "json"]);
    let kernel: Value = serde_json::from_str(&shown.out).unwrap();
    assert!(kernel["build"]["compiled"].as_u64() <= Some(2), "{kernel}");
    let kernels = fs::read_dir(trees.path("cache/kernels")).unwrap().map(|entry| entry.unwrap().file_name());
    let kept: Vec<_> = kernels.filter(|name| name.to_string_lossy().contains('@')).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

/// The tree's makefile puts a distribution's kernel where it would compile one: what is tried is the way from two revisions to
/// guests that boot them, and to a text.
#[test]
fn a_patch_is_measured_from_its_tree_to_a_text_for_the_list() {
    let test = "a_patch_is_measured_from_its_tree_to_a_text_for_the_list";
    let Some(guests) = GuestSandbox::new(test) else { return };
    let trees = Trees::new();
    trees.write_bootable_makefile();
    trees.git(&["init", "-q"]);
    trees.commit("v1");
    let recipe = trees.write_recipe("mine", BOOTABLE);
    let tree = trees.path("tree").display().to_string();
    let study = trees.laboratory.write_study("s.toml", GUEST_STUDY);
    let patch_command = |more: &[&str]| {
        let words = ["patch", &tree, "--study", &study, "--recipe", &recipe, "--no-report"];
        trees.command_with_guests(&guests, &[&words[..], more].concat())
    };
    let patch = |more: &[&str]| to_command_output(patch_command(more).output().unwrap());
    // One commit, and nothing changed.
    let refused = patch(&[]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    let refused = patch(&["--base", "HEAD"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    trees.write("tree/mm/slub.c", "int slub(void)\n{\n\treturn 2;\n}\n");
    let mail = trees.path("mail.txt");
    fs::create_dir_all(trees.path("cache/kernels")).unwrap();
    trees.write("cache/kernels/slow", "");
    let mut command =
        patch_command(&["--boots", "2", "--format", "json", "--mail", &mail.display().to_string()]);
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Edited again while the changed tree is compiled: what is measured is what was there.
    let is_compiled = || {
        let sources = fs::read_dir(trees.path("cache/kernels/sources")).into_iter().flatten();
        let mut trees = sources.map(|one| one.unwrap().path().join("tree/mm/slub.c"));
        trees.any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains("return 2")))
    };
    wait_for_condition(is_compiled);
    trees.write("tree/mm/slub.c", "int slub(void)\n{\n\treturn 9;\n}\n");
    let measured = to_command_output(running.wait_with_output().unwrap());
    assert_eq!(measured.code, Some(0), "{}", measured.err);
    let compared: Value = serde_json::from_str(&measured.out).unwrap();
    let compared = compared.as_array().map_or(&compared, |all| &all[0]);
    assert_eq!((&compared["by"], &compared["baseline"]), (&"kernel".into(), &"base".into()));
    assert!(!compared["rows"].as_array().unwrap().is_empty());
    // The text names the commit that both stand on, and fits into a mail.
    let text = fs::read_to_string(mail).unwrap();
    let head = trees.git(&["rev-parse", "--short=12", "HEAD"]);
    assert_eq!(text.matches(&head).count(), 2, "{text}");
    let longest = text.lines().map(|line| line.chars().count()).max();
    // But for a path that is longer than a line.
    assert!(
        text.lines()
            .all(|line| line.chars().count() <= 72 || line.contains(&study) || line.contains(&recipe)),
        "{longest:?}\n{text}"
    );
    let run: Value =
        serde_json::from_slice(&fs::read(trees.laboratory.only_run().join("run.json")).unwrap()).unwrap();
    let facts = |variant: usize| &run["variants"][variant]["targets"][0]["facts"];
    let commits: std::collections::BTreeSet<&str> =
        (0..2).map(|variant| facts(variant)["kernel.commit"]["value"].as_str().unwrap()).collect();
    let commit = trees.git(&["rev-parse", "HEAD"]);
    assert_eq!(commits.into_iter().collect::<Vec<_>>(), [commit.as_str(), &format!("{commit}+")]);
    guests.assert_nothing_is_left();
}

/// Kernels of a bisection are those of the recipe at each commit; whichever end does not build, nothing is concluded.
#[test]
fn a_bisection_builds_the_kernels_of_its_ends_first() {
    let trees = Trees::new();
    trees.git(&["init", "-q"]);
    trees.commit("v1");
    trees.write("tree/mm/slub.c", "int slub(void)\n{\n\treturn 1\n}\n");
    trees.commit("v2");
    let recipe = trees.write_recipe("mine", "tree = \"tree\"");
    let bisect = |good: &str, bad: &str| {
        let typed =
            ["bisect", "--tree", "tree", "--good", good, "--bad", bad, "--kernel", &recipe, "--", "true"];
        trees.run(&typed).code
    };
    assert_eq!(bisect("v1", "v2"), Some(2));
    let built = trees.run(&["kernel", "show", &format!("{recipe}:tree@v1"), "--format", "json"]);
    let shown = serde_json::from_str::<Value>(&built.out).unwrap();
    assert!(shown["image"].is_string(), "{}", built.out);
    // Recipes with sources of their own have no commits.
    let packaged =
        ["bisect", "--tree", "tree", "--good", "v1", "--bad", "v2", "--kernel", "debian-cloud", "--", "true"];
    assert_eq!(trees.run(&packaged).code, Some(2));
}

/// The study's guest boots the kernel of the newest commit; one that does not compile is told once.
#[test]
fn a_watched_tree_of_kernels_is_compiled_and_booted() {
    let Some(guests) = GuestSandbox::new("a_watched_tree_of_kernels_is_compiled_and_booted") else { return };
    let trees = Trees::new();
    trees.write_bootable_makefile();
    trees.git(&["init", "-q", "-b", "main"]);
    trees.write("tree/mm/slub.c", "int slub(void)\n{\n\treturn 1\n}\n");
    trees.commit("v1");
    let recipe = trees.write_recipe("mine", BOOTABLE);
    let study = trees.laboratory.write_study("s.toml", GUEST_STUDY);
    let look = || {
        let words =
            ["--format", "json", "queue", "watch", "tree", "--study", &study, "--kernel", &recipe, "--once"];
        let said = to_command_output(trees.command_with_guests(&guests, &words).output().unwrap());
        let told: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}", said.err));
        (said.code, told)
    };
    let (code, told) = look();
    assert_eq!((code, &told["outcome"]), (Some(4), &"unbuildable".into()), "{told}");
    assert_eq!(look().0, Some(0));
    trees.write("tree/mm/slub.c", "int slub(void)\n{\n\treturn 2;\n}\n");
    trees.commit("v2");
    let (code, told) = look();
    assert_eq!((code, &told["outcome"]), (Some(0), &"unjudged".into()), "{told}");
    let run: Value =
        serde_json::from_slice(&fs::read(trees.laboratory.only_run().join("run.json")).unwrap()).unwrap();
    let commit = trees.git(&["rev-parse", "v2"]);
    let built = &run["targets"][0]["facts"]["kernel.commit"]["value"];
    assert_eq!((built, &run["facts"]["tree.commit"]["value"]), (&commit.clone().into(), &commit.into()));
    guests.assert_nothing_is_left();
}
