//! Where perflab looks for its libraries before anywhere else: the folder in which a guest has them
//! (`perflab_conduct::initramfs::HOME`). A guest's root may be of another system, with other libraries. A static perflab
//! (`-C target-feature=+crt-static`) has none, and glibc's start of such a program does not bear the path.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    if !features.split(',').any(|feature| feature == "crt-static") {
        println!("cargo::rustc-link-arg-bins=-Wl,-rpath,/run/perflab/lib");
    }
}
