//! Many small files: created and written, read, and removed, each phase on its own clock.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;

use super::LoadError;
use super::options::{Options, wrong};

struct Plan {
    paths: Vec<PathBuf>,
    size: usize,
    fsync: bool,
}

pub(super) fn measure(options: &mut Options) -> Result<serde_json::Value, LoadError> {
    let directory: String = options.take("directory", String::new())?;
    let files = options.count("files", 2000, 1)?;
    let folders = options.count("folders", 10, 1)?;
    let size = options.size("size", 4096)?;
    let fsync = options.take("fsync", false)?;
    options.done()?;
    if directory.is_empty() {
        return Err(wrong("directory", "name a directory to write in"));
    }
    // A folder of our own: what stood there before is not ours to remove.
    let root = Path::new(&directory).join(format!("small-files-{}", std::process::id()));
    let plan = Plan { paths: paths(&root, files, folders)?, size, fsync };
    let measured = phases(&plan);
    let removed = fs::remove_dir_all(&root).map_err(LoadError::refused(format!("remove {}", root.display())));
    let result = measured?;
    removed.map(|()| result)
}

fn paths(root: &Path, files: usize, folders: usize) -> Result<Vec<PathBuf>, LoadError> {
    for folder in 0..folders {
        let folder = root.join(folder.to_string());
        fs::create_dir_all(&folder).map_err(LoadError::refused(format!("make {}", folder.display())))?;
    }
    Ok((0..files).map(|file| root.join((file % folders).to_string()).join(file.to_string())).collect())
}

fn phases(plan: &Plan) -> Result<serde_json::Value, LoadError> {
    let content = vec![0xA5; plan.size];
    let mut read = Vec::with_capacity(plan.size);
    let create = per_second(plan, "write", |path| {
        let mut file = File::create_new(path)?;
        file.write_all(&content)?;
        if plan.fsync { file.sync_all() } else { Ok(()) }
    })?;
    let read_back = per_second(plan, "read", |path| {
        read.clear();
        File::open(path)?.read_to_end(&mut read)?;
        // A file system that loses bytes is not fast.
        if read == content { Ok(()) } else { Err(std::io::ErrorKind::InvalidData.into()) }
    })?;
    let remove = per_second(plan, "remove", |path| fs::remove_file(path))?;
    let total = 1.0 / (1.0 / create + 1.0 / read_back + 1.0 / remove);
    Ok(
        json!({ "create": create, "read": read_back, "remove": remove, "total": total, "files": plan.paths.len() }),
    )
}

/// Files per second of one phase.
fn per_second(
    plan: &Plan,
    action: &str,
    mut step: impl FnMut(&Path) -> std::io::Result<()>,
) -> Result<f64, LoadError> {
    let start = Instant::now();
    for path in &plan.paths {
        step(path).map_err(|source| LoadError::Refused {
            action: format!("{action} {}", path.display()),
            source,
        })?;
    }
    Ok(plan.paths.len() as f64 / start.elapsed().as_secs_f64())
}
