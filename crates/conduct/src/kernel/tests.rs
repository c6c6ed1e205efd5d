use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[test]
fn every_recipe_reads_and_its_fragments_are_there() {
    let recipes = KernelRecipes::shipped().unwrap();
    let names: BTreeSet<&str> = recipes.iter().map(|recipe| recipe.name.as_str()).collect();
    assert!(names.contains("debian-cloud") && names.contains("linux-6.1-slob"), "{names:?}");
    for recipe in recipes.iter() {
        if let KernelSource::Build(build) = &recipe.source {
            for fragment in &build.fragments {
                assert!(
                    recipe::config_fragment(fragment)
                        .is_some_and(|text| text.contains("CONFIG_VIRTIO_CONSOLE=y"))
                );
            }
        }
    }
}

#[test]
fn the_allocators_recipes_differ_in_the_allocator_alone() {
    let recipes = KernelRecipes::shipped().unwrap();
    let build = |name: &str| match &recipes.get(name).unwrap().source {
        KernelSource::Build(build) => build.clone(),
        KernelSource::Package(_) => panic!("{name} is built"),
    };
    let slub = build("linux-6.1-slub");
    for other in ["slab", "slob"] {
        let other = build(&format!("linux-6.1-{other}"));
        assert_ne!(other.options, slub.options);
        assert_eq!(KernelBuild { options: slub.options.clone(), ..other }, slub);
    }
}

#[test]
fn an_unknown_kernel_has_a_hint() {
    let error = KernelRecipes::shipped().unwrap().get("debian-clod").unwrap_err().to_string();
    assert!(error.contains("did you mean `debian-cloud`?"), "{error}");
}

#[test]
fn a_recipe_has_one_source() {
    let text = perflab_model::study::TomlSource::new("kernels/x.toml", "title = \"x\"\nabout = \"x\"\n");
    let error = KernelRecipe::read(&text).unwrap_err().to_string();
    assert!(error.contains("either [package] or [build]"), "{error}");
}

#[test]
fn what_is_no_kernel_is_refused() {
    let error = KernelImage::open(&std::env::current_exe().unwrap(), None).unwrap_err().to_string();
    assert!(error.contains("it has no boot header"), "{error}");
}

/// An image with its modules, as a package unpacks them; the image.
fn unpack_example_kernel(folder: &Path) -> PathBuf {
    let image = folder.join("boot/vmlinuz");
    std::fs::create_dir(folder.join("boot")).unwrap();
    let mut head = vec![0_u8; 0x1000];
    head[0x202..0x206].copy_from_slice(b"HdrS");
    head[0x20e..0x210].copy_from_slice(&0x600_u16.to_le_bytes());
    head[0x800..0x80c].copy_from_slice(b"6.1.0-test (");
    std::fs::write(&image, &head).unwrap();
    std::fs::create_dir_all(folder.join("lib/modules/6.1.0-test/kernel")).unwrap();
    image
}

#[test]
fn the_release_is_read_from_the_boot_header() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = KernelImage::open(&unpack_example_kernel(folder.path()), None).unwrap();
    let modules = folder.path().join("lib/modules/6.1.0-test");
    assert_eq!((kernel.release.as_str(), kernel.modules), ("6.1.0-test", Some(modules)));
}

#[test]
fn a_kernel_that_is_fetched_again_is_there_all_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("kernels/own");
    let put = || cache::replace_kernel_in(&home, "own", |new| Ok(unpack_example_kernel(new))).unwrap();
    let first = put();
    assert_eq!(first.image, home.join("boot/vmlinuz"));
    assert_eq!(first.modules, Some(home.join("lib/modules/6.1.0-test")));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..300).for_each(|_| assert_eq!(put(), first));
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            assert_eq!(cache::cached_kernel_in(&home).as_ref(), Some(&first));
        }
    });
    let left: Vec<_> = std::fs::read_dir(folder.path().join("kernels")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn options_that_were_not_taken_are_named() {
    let error = build::check_options_taken("CONFIG_A=y\n# why\nCONFIG_B=y\n", "CONFIG_A=y\n")
        .unwrap_err()
        .to_string();
    assert!(error.contains("CONFIG_B=y") && !error.contains("CONFIG_A"), "{error}");
    build::check_options_taken("CONFIG_A=y\n", "CONFIG_A=y\nCONFIG_C=m\n").unwrap();
}
