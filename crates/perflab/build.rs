//! Where perflab looks for its libraries before anywhere else: the folder in which a guest has them
//! (`perflab_conduct::initramfs::HOME`). A guest's root may be of another system, with other libraries.

fn main() {
    println!("cargo::rustc-link-arg-bins=-Wl,-rpath,/run/perflab/lib");
    println!("cargo::rerun-if-changed=build.rs");
}
