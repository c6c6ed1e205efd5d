//! Which CPUs are online, from reading to reading.

use perflab_formats::kernel::small_values::parse_cpu_list;

use crate::error::ObserveError;
use crate::monitor::folder::SmallFile;
use crate::root::Root;

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// Bytes of the list.
const LONGEST: usize = 4096;

/// The CPUs that are online, as they were when they were last read.
pub(crate) struct OnlineCpus {
    file: SmallFile,
    buffer: Vec<u8>,
    list: String,
    cpus: Vec<u32>,
}

impl OnlineCpus {
    /// Reads them for the first time.
    ///
    /// # Errors
    /// The list cannot be read.
    pub(crate) fn open(root: &Root) -> Result<Self, ObserveError> {
        let file = SmallFile::new(root.path(ONLINE));
        let mut online = OnlineCpus { file, buffer: vec![0; LONGEST], list: String::new(), cpus: Vec::new() };
        online.read_changes()?;
        Ok(online)
    }

    /// In ascending order.
    pub(crate) fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// Reads them again; where others are online, gives those that were before.
    ///
    /// # Errors
    /// The list cannot be read.
    pub(crate) fn read_changes(&mut self) -> Result<Option<Vec<u32>>, ObserveError> {
        let read = self.file.read(&mut self.buffer);
        let list = read.map_err(|source| ObserveError::read_failed(ONLINE, source))?.trim();
        if list == self.list {
            return Ok(None);
        }
        list.clone_into(&mut self.list);
        Ok(Some(std::mem::replace(&mut self.cpus, parse_cpu_list(list))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_online_before_is_known_where_it_changed() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root(tree.path().into());
        assert!(OnlineCpus::open(&root).is_err());
        let path = root.path(ONLINE);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "0-2\n").unwrap();
        let mut online = OnlineCpus::open(&root).unwrap();
        assert_eq!((online.read_changes().unwrap(), online.cpus()), (None, &[0, 1, 2][..]));
        std::fs::write(&path, "0,2\n").unwrap();
        assert_eq!(online.read_changes().unwrap(), Some(vec![0, 1, 2]));
        assert_eq!(online.cpus(), [0, 2]);
    }
}
