//! The `hosts.toml` that a study or a verb takes: beside the study, else the user's own.

use std::path::{Path, PathBuf};

use perflab_model::HostInventory;
use perflab_model::study::{Study, TomlSource};
use perflab_observe::own_directories;

use crate::app::read_text_file;
use crate::failure::{Failure, UsageError};

/// The hosts that a study's targets may be; none of a study that names none.
///
/// # Errors
/// The file cannot be read, or what is wrong in it.
pub fn find_inventory_of(source: &TomlSource, study: &Study) -> Result<HostInventory, Failure> {
    if !study.has_hosts() {
        return Ok(HostInventory::default());
    }
    find_inventory(Path::new(&source.file).parent().unwrap_or(Path::new("")))
}

/// The inventory in a folder, else the user's own.
///
/// # Errors
/// The file cannot be read, or what is wrong in it.
pub fn find_inventory(folder: &Path) -> Result<HostInventory, Failure> {
    let places = [folder.join(HostInventory::FILE), user_inventory()];
    match places.iter().find(|path| path.exists()) {
        Some(path) => read_inventory(path),
        None => Ok(HostInventory::missing(places.iter().map(|path| path.display().to_string()).collect())),
    }
}

/// Where the user's own lies.
pub fn user_inventory() -> PathBuf {
    own_directories::configuration_directory().join(HostInventory::FILE)
}

/// Reads one that is named.
///
/// # Errors
/// The file cannot be read, or what is wrong in it.
pub fn read_inventory(path: &Path) -> Result<HostInventory, Failure> {
    let text = read_text_file(path).map_err(|error| {
        let message = format!("cannot read the inventory {}: {error}", path.display());
        UsageError::new(message, "it must be a file of TOML, in UTF-8")
    })?;
    Ok(HostInventory::parse(&TomlSource::new(path.display().to_string(), text))?)
}
