//! Tables of what stands here for what another suite has, which are part of perflab.

use serde::de::DeserializeOwned;

/// The table that is embedded under this name.
pub(super) fn parse_shipped_table<T: DeserializeOwned>(name: &str, text: &str) -> T {
    match toml::from_str(text) {
        Ok(table) => table,
        Err(error) => unreachable!("{name} is part of perflab: {error}"),
    }
}
