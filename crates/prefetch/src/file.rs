//! The trace on disk: a magic word, a version, a checksum, and what is known as compressed JSON. Written beside its place and
//! renamed, so that a full disk or a kill leaves the old one.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use crate::PrefetchError;
use crate::trace::ProgramTraces;

const MAGIC: &str = "PLPREFET";
const VERSION: u32 = 1;
const SUM: usize = 16;
const HEAD: usize = MAGIC.len() + 4 + SUM;
/// No trace is longer unpacked: 100,000 files are 30 MB.
const LONGEST: usize = 256 << 20;

/// Reads a trace.
///
/// # Errors
/// A file that is missing, foreign, damaged or newer, each named as such.
pub fn read_trace_file(path: &Path) -> Result<ProgramTraces, PrefetchError> {
    let bytes = read_regular_file(path).map_err(PrefetchError::io_error("read", path))?;
    let damaged = |reason: &str| PrefetchError::Damaged { path: path.into(), reason: reason.into() };
    if !bytes.starts_with(MAGIC.as_bytes()) {
        return Err(PrefetchError::Foreign { path: path.into(), magic: MAGIC });
    }
    let version = bytes.get(MAGIC.len()..MAGIC.len() + 4).and_then(|version| version.try_into().ok());
    let found = u32::from_le_bytes(version.ok_or_else(|| damaged("it ends within its head"))?);
    if found > VERSION {
        return Err(PrefetchError::Newer { path: path.into(), found, known: VERSION });
    }
    let sum = bytes.get(HEAD - SUM..HEAD).ok_or_else(|| damaged("it ends within its head"))?;
    let body = bytes.get(HEAD..).unwrap_or_default();
    if trace_checksum(body) != sum {
        return Err(damaged("its checksum is another one"));
    }
    let text = zstd::bulk::decompress(body, LONGEST).map_err(|error| damaged(&error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| damaged(&error.to_string()))
}

/// Reads a file whole; a pipe would be waited for, and a device read for ever.
pub(crate) fn read_regular_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is a folder, a pipe, a socket or a device"));
    }
    let mut bytes = Vec::new();
    file.take(LONGEST as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > LONGEST {
        return Err(io::Error::other(format!(
            "it is longer than the {LONGEST} bytes that are read of such a file"
        )));
    }
    Ok(bytes)
}

/// Writes a trace.
///
/// # Errors
/// A folder that cannot be written, a full disk; the old trace stands then.
pub fn write_trace_file(path: &Path, known: &ProgramTraces) -> Result<(), PrefetchError> {
    let failed = || PrefetchError::io_error("write", path);
    let text = serde_json::to_vec(known).map_err(|error| failed()(error.into()))?;
    let body = zstd::bulk::compress(&text, 9).map_err(failed())?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed())?;
    for part in [MAGIC.as_bytes(), &VERSION.to_le_bytes(), &trace_checksum(&body), &body] {
        file.write_all(part).map_err(failed())?;
    }
    file.as_file().sync_all().map_err(failed())?;
    file.persist(path).map(drop).map_err(|error| failed()(error.error))
}

fn trace_checksum(body: &[u8]) -> [u8; SUM] {
    let mut sum = [0; SUM];
    sum.iter_mut().zip(Sha256::digest(body)).for_each(|(to, from)| *to = from);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_long_is_refused_and_not_cut() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("long");
        std::fs::File::create(&path).unwrap().set_len(LONGEST as u64 + 1).unwrap();
        assert!(read_regular_file(&path).is_err());
    }
}
