//! `/proc/PID/mountinfo`: mounted file systems with device, root and mount point (proc_pid_mountinfo(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use perflab_model::io_trace::DeviceNumber;

/// A file system where it can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountEntry {
    /// the kernel's number of the mount
    pub id: u64,
    /// its device: the disk's, or one of the kernel's invention
    pub device: DeviceNumber,
    /// the folder of the file system that is mounted here; `/` is all of it
    pub root: PathBuf,
    /// where it is seen
    pub mount_point: PathBuf,
    /// `ext4`
    pub kind: String,
    /// `/dev/vda`
    pub source: String,
    /// the user who mounted it, as the kernel says of FUSE file systems
    pub maker: Option<u32>,
}

/// The mounts of a text; lines that are none are left out. Bytes: one path that is not UTF-8 hides no other.
pub fn parse_mountinfo(text: &[u8]) -> impl Iterator<Item = MountEntry> {
    text.split(|byte| *byte == b'\n').filter_map(parse_mountinfo_line)
}

/// `36 35 98:0 /root /place rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn parse_mountinfo_line(line: &[u8]) -> Option<MountEntry> {
    let middle = line.windows(3).position(|three| three == b" - ")?;
    let words =
        |part: &[u8]| -> Vec<Vec<u8>> { part.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect() };
    let (first, second) = (words(line.get(..middle)?), words(line.get(middle + 3..)?));
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    let options = text(second.get(2).map_or(&[][..], Vec::as_slice));
    let maker = options.split(',').find_map(|option| option.strip_prefix("user_id=")?.parse().ok());
    Some(MountEntry {
        id: text(first.first()?).parse().ok()?,
        device: DeviceNumber::parse(&text(first.get(2)?))?,
        root: unescape_mount_path(first.get(3)?),
        mount_point: unescape_mount_path(first.get(4)?),
        kind: text(second.first()?),
        source: unescape_mount_path(second.get(1)?).to_string_lossy().into_owned(),
        maker,
    })
}

/// A path as the kernel's tables (`mountinfo`, `mounts`, `swaps`) write it: blanks, tabs, line ends and backslashes are written in
/// eights, a blank as `\040`.
pub fn unescape_mount_path(text: impl AsRef<[u8]>) -> PathBuf {
    let (mut rest, mut plain) = (text.as_ref(), Vec::new());
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| *first == b'\\');
        let code = code.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        plain.push(code.unwrap_or(*first));
        rest = after.get(if code.is_some() { 3 } else { 0 }..).unwrap_or_default();
    }
    OsString::from_vec(plain).into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn names_are_read_as_they_are_whatever_they_hold() {
        let strange = b"1 0 254:0 / /a\\040b\\011c\\012d\\134e - ext4 /dev/vda rw\n2 0 0:9 / /no\xfftext - fuse some\\040disk rw\n";
        let all: Vec<MountEntry> = parse_mountinfo(strange).collect();
        assert_eq!(all[0].mount_point, Path::new("/a b\tc\nd\\e"));
        assert_eq!(all[1].mount_point.as_os_str().as_encoded_bytes(), b"/no\xfftext");
        assert_eq!(all[1].source, "some disk");
        assert_eq!(unescape_mount_path("/a\\04"), Path::new("/a\\04"));
    }

    #[test]
    fn who_made_a_mount_says_the_kernel_and_not_its_name() {
        let maker = |line: &str| parse_mountinfo(line.as_bytes()).next().unwrap().maker;
        let line =
            |options: &str| format!("36 35 0:98 / /a rw,relatime - fuse perflab-emulated-disk {options}");
        assert_eq!(maker(&line("rw,user_id=0,group_id=0")), Some(0));
        assert_eq!(maker(&line("rw,user_id=65534,group_id=0,allow_other")), Some(65534));
        assert_eq!(maker(&line("rw")), None);
        assert_eq!(maker("36 35 0:98 / /user_id=0 rw,user_id=0 - tmpfs t rw"), None);
    }
}
