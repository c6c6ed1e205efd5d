//! The smallest program: an ELF header, one segment, its code. No loader, no library, nothing to read.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// `exit(0)`: `xor edi, edi; mov eax, 60; syscall`
const EXIT: &[u8] = &[0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05];

/// Makes one that ends well.
pub fn write_tiny_elf(path: &Path) -> io::Result<()> {
    fs::write(path, tiny_elf_bytes(EXIT))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// The file of one, for x86-64.
pub fn tiny_elf_bytes(code: &[u8]) -> Vec<u8> {
    let size = 120 + code.len() as u64;
    let mut elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    elf.extend([2_u16, 62].map(u16::to_le_bytes).concat());
    elf.extend(1_u32.to_le_bytes());
    elf.extend([0x40_0078_u64, 64, 0].map(u64::to_le_bytes).concat());
    elf.extend(0_u32.to_le_bytes());
    elf.extend([64_u16, 56, 1, 0, 0, 0].map(u16::to_le_bytes).concat());
    elf.extend([1_u32, 5].map(u32::to_le_bytes).concat());
    elf.extend([0_u64, 0x40_0000, 0x40_0000, size, size, 0x1000].map(u64::to_le_bytes).concat());
    elf.extend(code);
    elf
}
