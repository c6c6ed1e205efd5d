//! Many small files: created and written, read, and removed, each phase timed by itself.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;

use crate::load::args::{BuiltinLoadArgs, LoadError, invalid_value_error};

struct SmallFilesPlan {
    paths: Vec<PathBuf>,
    size: usize,
    fsync: bool,
}

pub(crate) fn measure_small_files(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    let directory: String = options.value("directory", String::new())?;
    let files = options.count("files", 2000, 1)?;
    let folders = options.count("folders", 10, 1)?;
    let size = options.size("size", 4096)?;
    let fsync = options.value("fsync", false)?;
    options.require_all_used()?;
    if directory.is_empty() {
        return Err(invalid_value_error("directory", "name a directory to write in"));
    }
    // A folder of our own: what was there before is not ours to remove.
    let root = Path::new(&directory).join(format!("small-files-{}", std::process::id()));
    let plan = SmallFilesPlan { paths: create_folders(&root, files, folders)?, size, fsync };
    let measured = time_phases(&plan);
    let removed =
        fs::remove_dir_all(&root).map_err(LoadError::system_error(format!("remove {}", root.display())));
    let result = measured?;
    removed.map(|()| result)
}

fn create_folders(root: &Path, files: usize, folders: usize) -> Result<Vec<PathBuf>, LoadError> {
    for folder in 0..folders {
        let folder = root.join(folder.to_string());
        fs::create_dir_all(&folder).map_err(LoadError::system_error(format!("make {}", folder.display())))?;
    }
    Ok((0..files).map(|file| root.join((file % folders).to_string()).join(file.to_string())).collect())
}

fn time_phases(plan: &SmallFilesPlan) -> Result<serde_json::Value, LoadError> {
    let content = vec![0xA5; plan.size];
    let mut read = Vec::with_capacity(plan.size);
    let create = files_per_second(plan, "write", |path| {
        let mut file = File::create_new(path)?;
        file.write_all(&content)?;
        if plan.fsync { file.sync_all() } else { Ok(()) }
    })?;
    let read_back = files_per_second(plan, "read", |path| {
        read.clear();
        File::open(path)?.read_to_end(&mut read)?;
        // A file system that loses bytes is not fast.
        if read == content { Ok(()) } else { Err(std::io::ErrorKind::InvalidData.into()) }
    })?;
    let remove = files_per_second(plan, "remove", |path| fs::remove_file(path))?;
    let total = 1.0 / (1.0 / create + 1.0 / read_back + 1.0 / remove);
    Ok(
        json!({ "create": create, "read": read_back, "remove": remove, "total": total, "files": plan.paths.len() }),
    )
}

/// Files per second of one phase.
fn files_per_second(
    plan: &SmallFilesPlan,
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
