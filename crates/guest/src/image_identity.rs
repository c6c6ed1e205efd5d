//! What a kernel image is known by: the build id of the kernel inside, its release and its version.
//!
//! The header of a bzImage says where the packed kernel lies (Documentation/arch/x86/boot.rst, `payload_offset`), and what release
//! and version it will call itself. The kernel's notes, which it shows as /sys/kernel/notes, are a segment of its ELF file.

use std::io::Read;

use elf::ElfBytes;
use elf::abi::PT_NOTE;
use elf::endian::AnyEndian;
use lzma_rust2::XzReader;
use perflab_stacks::parse_build_id;

/// A kernel image, or one that runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelIdentity {
    /// The GNU build id; empty where it is not known.
    pub build_id: Vec<u8>,
    /// `6.1.0-56-cloud-amd64`
    pub release: String,
    /// `#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-10-02)`
    pub version: String,
}

/// Sectors of setup where the header says 0.
const SETUP_SECTORS: u8 = 4;

const SECTOR: usize = 512;

/// `setup_sects`
const SETUP: usize = 0x1f1;

/// `HdrS`
const MAGIC: usize = 0x202;

/// `kernel_version`, from 0x200 on
const VERSION: usize = 0x20e;

/// `payload_offset`, from the end of the setup on
const PAYLOAD: usize = 0x248;

const PAYLOAD_LENGTH: usize = 0x24c;

/// No kernel is larger unpacked, in bytes.
const LARGEST_KERNEL: u64 = 512 << 20;

impl KernelIdentity {
    /// Of an image; none where it is none that a PC boots. How it is packed decides whether its build id is known: gzip, xz, zstd and
    /// LZ4 are.
    pub fn of_image(image: &[u8]) -> Option<Self> {
        if image.get(MAGIC..MAGIC + 4)? != b"HdrS" {
            return None;
        }
        let at = usize::from(u16::from_le_bytes(image.get(VERSION..VERSION + 2)?.try_into().ok()?));
        let text = image.get(at + 0x200..)?;
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let text = String::from_utf8_lossy(text.get(..text.len().min(1024)).unwrap_or_default()).into_owned();
        // `RELEASE (WHO@WHERE) VERSION`
        let (release, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let version = rest.split_once(") ").map_or("", |(_, version)| version);
        Some(KernelIdentity {
            build_id: packed_kernel(image)
                .and_then(|packed| read_build_id(&unpack_kernel(packed)?))
                .unwrap_or_default(),
            release: release.into(),
            version: version.trim().into(),
        })
    }

    /// Whether both are one kernel: by build id, and by release and version where one has none.
    pub fn is_same(&self, other: &Self) -> bool {
        if !self.build_id.is_empty() && !other.build_id.is_empty() {
            return self.build_id == other.build_id;
        }
        !self.release.is_empty() && (&self.release, &self.version) == (&other.release, &other.version)
    }
}

fn packed_kernel(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    let sectors = image.get(SETUP).map(|count| if *count == 0 { SETUP_SECTORS } else { *count })?;
    let begin = (usize::from(sectors) + 1) * SECTOR + word(PAYLOAD)?;
    image.get(begin..begin.checked_add(word(PAYLOAD_LENGTH)?)?)
}

/// The kernel's ELF file; none where it is packed in another way.
fn unpack_kernel(packed: &[u8]) -> Option<Vec<u8>> {
    let mut kernel = Vec::new();
    // Behind what is packed stands its unpacked size, which no decoder expects.
    let unpacked = match packed.get(..4)? {
        [0x1f, 0x8b, ..] => {
            flate2::read::GzDecoder::new(packed).take(LARGEST_KERNEL).read_to_end(&mut kernel)
        }
        [0xfd, b'7', b'z', b'X'] => {
            XzReader::new(packed, false).take(LARGEST_KERNEL).read_to_end(&mut kernel)
        }
        [0x28, 0xb5, 0x2f, 0xfd] => {
            let decoder = zstd::Decoder::with_buffer(packed).ok()?;
            decoder.single_frame().take(LARGEST_KERNEL).read_to_end(&mut kernel)
        }
        [0x02, 0x21, 0x4c, 0x18] => return unpack_lz4(packed.get(4..)?),
        _ => return None,
    };
    unpacked.ok().map(|_| kernel)
}

/// Blocks of LZ4's legacy frame, as kernels are packed: each with its packed size in front; the size of the whole is what is left.
fn unpack_lz4(mut packed: &[u8]) -> Option<Vec<u8>> {
    let mut kernel = Vec::new();
    while let Some((size, rest)) = packed.split_first_chunk::<4>() {
        let Some((block, rest)) = rest.split_at_checked(u32::from_le_bytes(*size) as usize) else { break };
        unpack_lz4_block(block, &mut kernel)?;
        packed = rest;
    }
    Some(kernel)
}

/// A block: literal bytes and copies of what came before, in turn
/// (<https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md>). None where it is damaged.
fn unpack_lz4_block(block: &[u8], kernel: &mut Vec<u8>) -> Option<()> {
    let mut bytes = block;
    let take = |bytes: &mut &[u8]| {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        Some(usize::from(*first))
    };
    // Four bits, and as many bytes more as are 255, and one.
    let read_length = |bytes: &mut &[u8], bits: usize| {
        let mut length = bits;
        let mut more = bits == 15;
        while more {
            let byte = take(bytes)?;
            length += byte;
            more = byte == 255;
        }
        Some(length)
    };
    while !bytes.is_empty() {
        let token = take(&mut bytes)?;
        let literals = read_length(&mut bytes, token >> 4)?;
        let (copied, rest) = bytes.split_at_checked(literals)?;
        kernel.extend_from_slice(copied);
        bytes = rest;
        if bytes.is_empty() {
            return Some(());
        }
        let distance = take(&mut bytes)? | take(&mut bytes)? << 8;
        let length = read_length(&mut bytes, token & 15)? + 4;
        let from = kernel.len().checked_sub(distance).filter(|_| distance > 0)?;
        if (kernel.len() + length) as u64 > LARGEST_KERNEL {
            return None;
        }
        if distance >= length {
            kernel.extend_from_within(from..from + length);
            continue;
        }
        // What is copied reaches into what it makes.
        for at in from..from + length {
            kernel.push(*kernel.get(at)?);
        }
    }
    Some(())
}

fn read_build_id(kernel: &[u8]) -> Option<Vec<u8>> {
    let file = ElfBytes::<AnyEndian>::minimal_parse(kernel).ok()?;
    let notes = file.segments()?.into_iter().filter(|segment| segment.p_type == PT_NOTE);
    let ids = notes.filter_map(|segment| file.segment_data(&segment).ok()).map(parse_build_id);
    ids.into_iter().find(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_told_apart_by_build_id_else_by_what_they_call_themselves() {
        let kernel = |id: &[u8], version: &str| KernelIdentity {
            build_id: id.into(),
            release: "6.1.0".into(),
            version: version.into(),
        };
        assert!(kernel(b"a", "#1").is_same(&kernel(b"a", "#2")));
        assert!(!kernel(b"a", "#1").is_same(&kernel(b"b", "#1")));
        assert!(kernel(b"", "#1").is_same(&kernel(b"b", "#1")));
        assert!(!kernel(b"", "#1").is_same(&kernel(b"b", "#2")));
        assert!(!KernelIdentity::default().is_same(&KernelIdentity::default()));
    }

    #[test]
    fn blocks_of_lz4_are_unpacked_and_damaged_ones_are_not() {
        // Three literals, a copy of six bytes from three back, four literals; then the size of the whole.
        let block = [0x32, b'a', b'b', b'c', 3, 0, 0x40, b'e', b'n', b'd', b'.'];
        let packed = [&(block.len() as u32).to_le_bytes()[..], &block, &13_u32.to_le_bytes()].concat();
        assert_eq!(unpack_lz4(&packed).unwrap(), b"abcabcabcend.");
        assert_eq!(unpack_lz4_block(&[0x10, b'a', 9, 0], &mut Vec::new()), None);
        assert_eq!(unpack_lz4_block(&[0xf0, 255], &mut Vec::new()), None);
    }

    #[test]
    fn what_is_no_image_has_no_identity_and_a_packing_that_is_not_known_no_build_id() {
        assert_eq!(KernelIdentity::of_image(b"no kernel"), None);
        let mut image = vec![0; 0x800];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x300_u16.to_le_bytes());
        let text = b"6.1.0-x (me@here) #7 SMP 2026\0";
        image[0x500..0x500 + text.len()].copy_from_slice(text);
        let found = KernelIdentity::of_image(&image).unwrap();
        assert_eq!((found.release.as_str(), found.version.as_str()), ("6.1.0-x", "#7 SMP 2026"));
        assert!(found.build_id.is_empty());
        // A payload beyond the end of the file, too.
        image[0x24c..0x250].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(KernelIdentity::of_image(&image).unwrap().build_id.is_empty());
    }
}
