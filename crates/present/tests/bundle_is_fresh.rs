//! The committed bundle was built from the sources beside it: checked by hash, so that it needs no node.
//!
//! `npm run build` in `web/` writes the hash (`web/tools/sources.mjs` computes the same); `npm run check-fresh`
//! is the stronger check that builds anew.
#![expect(clippy::unwrap_used, reason = "a test may stop at what it does not expect")]

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

fn hash_file(hash: &mut Sha256, name: &str, path: &Path) {
    hash.update(name);
    hash.update([0]);
    hash.update(fs::read(path).unwrap());
    hash.update([0]);
}

#[test]
fn the_bundle_belongs_to_these_sources() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (web, assets) = (here.join("../../web"), here.join("assets"));
    let mut sources: Vec<String> = files_below(&web.join("src"))
        .iter()
        .map(|path| path.strip_prefix(&web).unwrap().to_str().unwrap().replace('\\', "/"))
        .chain(["package-lock.json", "vite.config.ts", "vite.laboratory.config.ts"].map(String::from))
        .collect();
    sources.sort();
    let mut hash = Sha256::new();
    sources.iter().for_each(|name| hash_file(&mut hash, name, &web.join(name)));
    let built = ["report.css", "report.js", "../../serve/assets/laboratory.js"].map(|name| assets.join(name));
    for path in built {
        hash_file(&mut hash, path.file_name().unwrap().to_str().unwrap(), &path);
    }
    let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let stamped = fs::read_to_string(assets.join("sources.sha256")).unwrap();
    assert_eq!(
        found,
        stamped.trim(),
        "the bundle is stale: run `npm ci && npm run build` in web/ and commit"
    );
}
