//! An untrusted file line by line, unpacked and bounded.
//!
//! A hostile file costs no more than a long one: lines are cut at a length, and a file that grows beyond reason while
//! it is unpacked is refused. Among several files, one that the system does not let be read has no lines, and the
//! report says why.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::{fs, mem};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use memchr::memchr;
use perflab_formats::reading_parser::TextLine;
use zstd::stream::read::Decoder;

use crate::error::ImportError;
use perflab_files::{ENDLESS_KIND, open_finite_file};

/// The longest line that is held; the rest of a longer one is passed over.
const LONGEST: u64 = 64 * 1024;

/// How much of a longer one is passed over: what has no line end for so long is no text, and may go on for hours.
const LONGEST_PASSED: u64 = 256 << 20;

/// Bytes of a file that is not packed: a week of dumps of slabinfo, one a second, has some 12 GB.
const LARGEST: u64 = 64 << 30;

/// Unpacked bytes that any packed file may have.
const ALWAYS: u64 = 64 << 20;

/// Unpacked bytes a packed byte beyond that: idle logs reach about 200, deflate ends at 1032.
const RATIO: u64 = 400;

const GZIP: &[u8] = &[0x1f, 0x8b];

const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];

const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// What is read, unpacked.
type UnpackedReader = Box<dyn BufRead + Send>;

/// The lines of one file.
pub(crate) struct InputLines {
    path: PathBuf,
    reader: UnpackedReader,
    /// Bytes of the line that was given last and is still held by the reader.
    shown: usize,
    bytes: Vec<u8>,
    lossy: String,
    number: u64,
    unpacked: u64,
    limit: u64,
    broken: Option<String>,
    /// Whether it is unpacked on the way, so that its limit is one against traps.
    packed: bool,
    /// Whether it is one of several, so that what cannot be read of it costs itself only.
    among: bool,
    refused: Option<String>,
}

impl InputLines {
    pub(crate) fn open(path: &Path) -> Result<Self, ImportError> {
        let (reader, limit) = open_unpacked(path).map_err(ImportError::io("read", path))?;
        Ok(InputLines { packed: limit != LARGEST, ..InputLines::from_reader(path, reader, limit) })
    }

    /// The lines of a file that is one of several. One that the system does not let be read has none, and says
    /// [why](InputLines::unreadable_reason).
    pub(crate) fn open_optional(path: &Path) -> Self {
        let (reader, limit, refused) = match require_regular_file(path).and_then(|()| open_unpacked(path)) {
            Ok((reader, limit)) => (reader, limit, None),
            Err(error) => (Box::new(io::empty()) as UnpackedReader, 0, Some(error.to_string())),
        };
        InputLines {
            among: true,
            refused,
            packed: limit != LARGEST,
            ..InputLines::from_reader(path, reader, limit)
        }
    }

    /// Lines from anywhere; `path` is for messages, `limit` what it may come to in bytes.
    pub(crate) fn from_reader(path: &Path, reader: UnpackedReader, limit: u64) -> Self {
        let (bytes, lossy) = (Vec::new(), String::new());
        InputLines {
            path: path.into(),
            reader,
            shown: 0,
            bytes,
            lossy,
            number: 0,
            unpacked: 0,
            limit,
            broken: None,
            packed: true,
            among: false,
            refused: None,
        }
    }

    /// The same, refused beyond so many bytes, as what comes of them is held in memory.
    pub(crate) fn with_size_limit(self, bytes: u64) -> Self {
        InputLines { limit: self.limit.min(bytes), ..self }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Why the file ended before its end, if it did.
    pub(crate) fn cut_reason(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Why the system did not let the file be read, if it did not.
    pub(crate) fn unreadable_reason(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// The next line; nothing at the end. A packed file that breaks off ends there, and so does one with a line that does not end; see
    /// [`InputLines::cut_reason`].
    pub(crate) fn next_line(&mut self) -> Result<Option<TextLine<'_>>, ImportError> {
        self.reader.consume(mem::take(&mut self.shown));
        self.bytes.clear();
        if !self.load_line()? {
            return Ok(None);
        }
        self.number += 1;
        if self.unpacked > self.limit {
            let reason = match self.limit {
                _ if !self.packed => {
                    format!("it is longer than the {} bytes that are read of such a file: cut it", self.limit)
                }
                _ => format!("it unpacks to more than {RATIO} times its size: refused as a trap"),
            };
            return Err(ImportError::not_importable(&self.path, Some(self.number), reason));
        }
        let bytes = match self.shown {
            0 => self.bytes.as_slice(),
            // Nothing is read for this: the reader holds the line already.
            shown => self.reader.fill_buf().map(|held| held.get(..shown).unwrap_or(held)).unwrap_or_default(),
        };
        let (bytes, whole) = bytes.strip_suffix(b"\n").map_or((bytes, false), |bytes| (bytes, true));
        let text = match str::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => {
                self.lossy = String::from_utf8_lossy(bytes).into_owned();
                &self.lossy
            }
        };
        let text = if text.ends_with('\r') { text.trim_end_matches('\r') } else { text };
        Ok(Some(TextLine { number: self.number, text, whole }))
    }

    /// The whole file as one text, lines of any length. One that is longer than `longest` bytes is refused, and so is a
    /// packed one that breaks off.
    pub(crate) fn read_all(mut self, longest: u64) -> Result<String, ImportError> {
        let most = longest.min(self.limit);
        let read = self.reader.by_ref().take(most.saturating_add(1)).read_to_end(&mut self.bytes);
        read.map_err(|error| match is_unpacking_error(&error) {
            true => ImportError::not_importable(&self.path, None, format!("it breaks off: {error}")),
            false => ImportError::io("read", &self.path)(error),
        })?;
        if self.bytes.len() as u64 > most {
            let reason = match longest <= self.limit || !self.packed {
                true => format!("it is longer than {most} bytes, so it is no report of a benchmark"),
                false => format!("it unpacks to more than {RATIO} times its size: refused as a trap"),
            };
            return Err(ImportError::not_importable(&self.path, None, reason));
        }
        Ok(String::from_utf8_lossy(&self.bytes).into_owned())
    }

    /// Goes on to the next line; whether there is one. It is `shown` where the reader holds all of it, else it is in `bytes`.
    fn load_line(&mut self) -> Result<bool, ImportError> {
        if self.broken.is_some() {
            return Ok(false);
        }
        match self
            .buffered_line_length()
            .and_then(|held| if held > 0 { Ok(held) } else { self.read_long_line() })
        {
            Ok(read) => {
                self.unpacked += read;
                Ok(read > 0)
            }
            Err(error) if is_unpacking_error(&error) => {
                self.broken = Some(format!("it breaks off after line {}: {error}", self.number));
                Ok(!self.bytes.is_empty())
            }
            Err(error) if self.among => {
                self.broken = Some(format!("it cannot be read after line {}: {error}", self.number));
                Ok(false)
            }
            Err(error) => Err(ImportError::io("read", &self.path)(error)),
        }
    }

    /// The length of the next line with its end, where the reader holds all of it.
    fn buffered_line_length(&mut self) -> io::Result<u64> {
        let held = self.reader.fill_buf()?;
        let held = held.get(..LONGEST as usize).unwrap_or(held);
        self.shown = memchr(b'\n', held).map_or(0, |end| end + 1);
        Ok(self.shown as u64)
    }

    /// Reads a line into `bytes`, and returns how long it is.
    fn read_long_line(&mut self) -> io::Result<u64> {
        let read = self.reader.by_ref().take(LONGEST).read_until(b'\n', &mut self.bytes)?;
        Ok(read as u64 + self.skip_line_rest()?)
    }

    /// The rest of a line that is too long, without holding it. Returns how long it was.
    fn skip_line_rest(&mut self) -> io::Result<u64> {
        let mut passed = 0;
        if (self.bytes.len() as u64) < LONGEST || self.bytes.ends_with(b"\n") {
            return Ok(passed);
        }
        while self.unpacked + passed <= self.limit {
            let buffer = self.reader.fill_buf()?;
            let end = memchr(b'\n', buffer);
            let length = end.map_or(buffer.len(), |end| end + 1);
            self.reader.consume(length);
            passed += length as u64;
            if end.is_some() || length == 0 {
                break;
            }
            if passed > LONGEST_PASSED {
                let line = self.number + 1;
                let most = LONGEST_PASSED >> 20;
                self.broken =
                    Some(format!("line {line} does not end within {most} MiB: what follows is not read"));
                break;
            }
        }
        Ok(passed)
    }
}

/// A file, unpacked on the way, and what it may come to in bytes.
pub(crate) fn open_unpacked(path: &Path) -> io::Result<(UnpackedReader, u64)> {
    let file = open_finite_file(path)?;
    let size = file.metadata().map_or(0, |found| found.len());
    let mut file = BufReader::with_capacity(64 * 1024, file);
    let head = file.fill_buf()?;
    let begins = |magic| head.starts_with(magic);
    let (gzip, xz, zstd) = (begins(GZIP), begins(XZ), begins(ZSTD));
    let unpacking: Box<dyn Read + Send> = match () {
        () if gzip => Box::new(MultiGzDecoder::new(file)),
        () if xz => Box::new(XzReader::new(file, true)),
        () if zstd => Box::new(Decoder::with_buffer(file)?),
        () => return Ok((Box::new(file), LARGEST)),
    };
    let unpacked = BufReader::with_capacity(64 * 1024, unpacking);
    Ok((Box::new(unpacked), ALWAYS.max(size.saturating_mul(RATIO))))
}

/// That it is a file: a pipe would be waited for, and a device need not end.
fn require_regular_file(path: &Path) -> io::Result<()> {
    let kind = fs::metadata(path).map_err(|error| name_link_target(path, error))?.file_type();
    match kind {
        _ if kind.is_file() => Ok(()),
        _ if kind.is_dir() => Err(io::Error::other("it is a folder")),
        _ => Err(io::Error::other(ENDLESS_KIND)),
    }
}

/// The first of these places where a file is; else the first that has the name and is none, so that the error says why.
pub(crate) fn first_existing_file(places: &[PathBuf]) -> Option<&PathBuf> {
    let file = places.iter().find(|place| place.is_file());
    file.or_else(|| places.iter().find(|place| place.symlink_metadata().is_ok()))
}

/// Where a link points that cannot be followed.
pub(crate) fn name_link_target(path: &Path, error: io::Error) -> io::Error {
    match fs::read_link(path) {
        Ok(place) => io::Error::new(error.kind(), format!("it is a link to {}: {error}", place.display())),
        Err(_) => error,
    }
}

/// Whether what unpacks says so, of whatever kind: errors of the system have its number.
fn is_unpacking_error(error: &io::Error) -> bool {
    error.raw_os_error().is_none()
}
