//! Where a kernel's code and data lie: another layout of the same object files, by what is linked between them.
//!
//! A change of any function moves those behind it, and moved code has another speed (Mytkowicz, Diwan, Hauswirth and Sweeney,
//! ASPLOS 2009; for kernels: Feng Tang, "x86, kconfig: expose FUNCTION_ALIGNMENT", commit 09c60546). To tell a change from that
//! luck, a kernel is linked under several layouts. Order must stay: initialisation calls run in the order of linking. So a small
//! object without a symbol goes between any two object files, and moves what follows by a number of bytes that the layout's number
//! draws: nothing is compiled anew.
//!
//! The kernel's makefiles link through `LD`: a script stands in for it that hands everything on to the linker, and rewrites the
//! archives of the links that make `vmlinux`. Works for GNU ld and LLD, with `vmlinux.a` (since 5.19) and the list of
//! `built-in.a` of older kernels.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest as _, Sha256};

use crate::kernel::KernelError;
use crate::kernel_package::format_hash;
use crate::kernel_recipe::KernelBuild;

/// How many sizes of padding there are: 16 bytes of code each, and 8 of data.
const SIZES: u32 = 16;

/// Stands in for the linker. `@...@` are filled in.
const LINKER: &str = r#"#!/bin/sh
# Made by perflab: the linker of a kernel under a layout. All links but those of vmlinux are handed on as they are.
linker='@LINKER@' archiver='@ARCHIVER@' folder='@FOLDER@' layout=@LAYOUT@
output= previous=
for argument; do
    [ "$previous" = -o ] && output=$argument
    previous=$argument
done
case ${output##*/} in
    vmlinux | vmlinux.o | vmlinux.unstripped | .tmp_vmlinux*) ;;
    *) exec "$linker" "$@" ;;
esac
list=$folder/link.$$
within=no
for argument; do
    case $argument in
        --whole-archive) within=yes ;;
        --no-whole-archive) within=no ;;
    esac
    case $within,$argument in
        yes,*.a) "$archiver" t "$argument" | sed 's/^/member /' ;;
        *) printf 'argument %s\n' "$argument" ;;
    esac
done | awk -v draw="$layout" -v folder="$folder" '
    # Park and Miller, "Random number generators: good ones are hard to find", CACM 31 (1988).
    function next_draw() { return draw = (draw * 16807) % 2147483647 }
    BEGIN { for (round = 0; round < 8; round++) next_draw() }
    {
        is_member = $1 == "member"
        sub(/^[a-z]* /, "")
        gsub(/[\\"]/, "\\\\&")
        print "\"" $0 "\""
    }
    is_member {
        printf "\"%s/pad-%d.o\"\n", folder, int(next_draw() / 2147483647 * @SIZES@)
        padded += 1
    }
    END { if (padded) print padded > (folder "/padded") }
' > "$list" || exit 1
"$linker" "@$list"
status=$?
rm -f "$list"
exit $status
"#;

/// A layout of a kernel: 0 is as built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KernelLayout(pub(crate) u32);

/// What stands in for the linker, in the folder of a kernel's objects.
#[derive(Debug)]
pub(crate) struct LayoutLinker {
    folder: PathBuf,
}

impl KernelLayout {
    /// The key of a recipe under this layout, of which `as_built` is the key without one.
    pub(crate) fn recipe_key(self, as_built: &str) -> String {
        match self.0 {
            0 => as_built.to_owned(),
            layout => format_hash(&Sha256::digest(format!("{as_built} layout {layout}"))),
        }
    }

    /// Makes the linker of this layout, and removes what was linked under another one. None for a kernel as built.
    ///
    /// # Errors
    /// The padding cannot be assembled or written.
    pub(crate) fn prepare(
        self,
        build: &KernelBuild,
        objects: &Path,
    ) -> Result<Option<LayoutLinker>, KernelError> {
        let note = objects.join("perflab.layout");
        let last = fs::read_to_string(&note).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        if last != self.0 {
            for name in ["vmlinux", "vmlinux.o", "vmlinux.unstripped"] {
                remove_if_there(&objects.join(name))?;
            }
            fs::write(&note, self.0.to_string()).map_err(KernelError::file_error(&note))?;
        }
        if self.0 == 0 {
            return Ok(None);
        }
        let folder = objects.join("perflab.link");
        fs::create_dir_all(&folder).map_err(KernelError::file_error(&folder))?;
        for size in 0..SIZES {
            let pad = folder.join(format!("pad-{size}.o"));
            if !pad.is_file() {
                assemble_padding(build, size, &pad)?;
            }
        }
        let script = folder.join("ld");
        let text = LINKER
            .replace("@LINKER@", &tool_name(build, "LD", "ld", "ld.lld"))
            .replace("@ARCHIVER@", &tool_name(build, "AR", "ar", "llvm-ar"))
            .replace("@FOLDER@", &folder.display().to_string())
            .replace("@LAYOUT@", &self.0.to_string())
            .replace("@SIZES@", &SIZES.to_string());
        fs::write(&script, text).map_err(KernelError::file_error(&script))?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))
            .map_err(KernelError::file_error(&script))?;
        remove_if_there(&folder.join("padded"))?;
        Ok(Some(LayoutLinker { folder }))
    }
}

impl LayoutLinker {
    /// The variable of make that has it used.
    pub(crate) fn make_variable(&self) -> String {
        format!("LD={}", self.folder.join("ld").display())
    }

    /// Checks that the kernel was linked with it.
    ///
    /// # Errors
    /// Its makefiles link in another way.
    pub(crate) fn check(&self) -> Result<(), KernelError> {
        let padded = fs::read_to_string(self.folder.join("padded")).ok();
        let padded = padded.and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(0);
        if padded > 1 {
            return Ok(());
        }
        Err(KernelError::Command {
            command: "make vmlinux".into(),
            reason: "these sources do not link their object files in a way that has layouts".into(),
            hint: Some("leave the layout out: `#LAYOUT` behind a kernel, `kernel-layout` in a study"),
        })
    }
}

fn remove_if_there(path: &Path) -> Result<(), KernelError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(KernelError::file_error(path)(error))
        }
        _ => Ok(()),
    }
}

/// What make would call: as the recipe says, by its cross compiler's prefix, of LLVM.
fn tool_name(build: &KernelBuild, variable: &str, gnu: &str, llvm: &str) -> String {
    if let Some(own) = build.make.get(variable) {
        return own.clone();
    }
    match build.make.get("LLVM") {
        Some(_) => llvm.into(),
        None => format!("{}{gnu}", build.make.get("CROSS_COMPILE").map_or("", String::as_str)),
    }
}

/// An object of so many steps of padding in every section that is to move.
fn assemble_padding(build: &KernelBuild, size: u32, pad: &Path) -> Result<(), KernelError> {
    let (code, data) = (size * 16, size * 8);
    let sections = [
        format!(".section .text,\"ax\"\n.balign 16\n.skip {code}, 0xcc"),
        format!(".section .data,\"aw\"\n.balign 8\n.skip {data}"),
        format!(".section .rodata,\"a\"\n.balign 8\n.skip {data}"),
        format!(".section .bss,\"aw\",%nobits\n.balign 8\n.skip {data}"),
        ".section .note.GNU-stack,\"\",%progbits".to_owned(),
    ];
    let compiler = build.compiler.clone().unwrap_or_else(|| tool_name(build, "CC", "gcc", "clang"));
    let failed =
        |reason: String| KernelError::Command { command: format!("{compiler} -c"), reason, hint: None };
    let mut command = Command::new(&compiler);
    command.args(["-c", "-x", "assembler", "-", "-o"]).arg(pad);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        input
            .write_all((sections.join("\n") + "\n").as_bytes())
            .map_err(|error| failed(error.to_string()))?;
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Links three objects of an archive as a kernel's makefiles do; gives the addresses of their functions.
    fn link(layout: u32, folder: &Path) -> Vec<u64> {
        let run = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).current_dir(folder).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        if !folder.join("vmlinux.a").exists() {
            for name in ["first", "second", "third"] {
                fs::write(
                    folder.join(format!("{name}.c")),
                    format!("int {name}(int a) {{ return a * 3 + 1; }}\n"),
                )
                .unwrap();
                run("gcc", &["-c", "-O2", &format!("{name}.c")]);
            }
            run("ar", &["cDPrST", "vmlinux.a", "first.o", "second.o", "third.o"]);
        }
        let linker = KernelLayout(layout).prepare(&KernelBuild::default(), folder).unwrap();
        let own = linker.as_ref().map(|linker| linker.make_variable()[3..].to_owned());
        let program = own.as_deref().unwrap_or("ld");
        run(program, &["-e", "first", "-o", "vmlinux", "--whole-archive", "vmlinux.a", "--no-whole-archive"]);
        if let Some(linker) = linker {
            linker.check().unwrap();
        }
        let symbols = run("nm", &["vmlinux"]);
        let address = |name: &str| {
            let line = symbols.lines().find(|line| line.ends_with(&format!(" T {name}"))).unwrap();
            u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
        };
        ["first", "second", "third"].map(address).to_vec()
    }

    #[test]
    fn a_layout_moves_functions_and_keeps_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let mut seen = std::collections::BTreeSet::new();
        let built = link(0, folder.path());
        for layout in [1, 2, 3, 1] {
            let moved = link(layout, folder.path());
            assert!(moved.is_sorted() && moved != built, "{moved:x?} beside {built:x?}");
            assert!(moved.windows(2).all(|pair| pair[1] - pair[0] < 0x200), "{moved:x?}");
            seen.insert(moved);
        }
        assert_eq!(seen.len(), 3, "each layout is another, and the same each time: {seen:x?}");
        assert_eq!(link(0, folder.path()), built);
    }

    #[test]
    fn sources_that_link_otherwise_have_no_layout() {
        let folder = tempfile::tempdir().unwrap();
        let linker = KernelLayout(7).prepare(&KernelBuild::default(), folder.path()).unwrap().unwrap();
        let said = linker.check().unwrap_err().to_string();
        insta::assert_snapshot!(said, @"`make vmlinux` failed: these sources do not link their object files in a way that has layouts; leave the layout out: `#LAYOUT` behind a kernel, `kernel-layout` in a study");
    }
}
