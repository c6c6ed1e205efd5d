//! A token that stays the same from start to start, in a file of this user's alone: for programs that are configured once.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use crate::access::AccessToken;
use crate::error::ServeError;

/// The token in `path`, which is made where it is not there.
///
/// # Errors
/// A file that others can read or that is of somebody else, which has no token, or that cannot be read.
pub(crate) fn read_token_file(path: &Path) -> Result<AccessToken, ServeError> {
    let refuse = |reason: String| ServeError::TokenFile { path: path.into(), reason };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    match opened {
        Ok(file) => read_token(file).map_err(refuse),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = AccessToken::random()?;
            // Whoever makes it at the same time wins, and is told of here.
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            let written = made.and_then(|mut file| writeln!(file, "{}", token.as_str()));
            written.map(|()| token).map_err(|error| refuse(error.to_string()))
        }
        Err(error) => Err(refuse(error.to_string())),
    }
}

fn read_token(file: File) -> Result<AccessToken, String> {
    let about = file.metadata().map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is no regular file".into());
    }
    if about.mode() & 0o077 != 0 {
        return Err("others can read or write it: `chmod 600` takes that away".into());
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err("it is of another user".into());
    }
    let mut text = String::new();
    let read = file.take(1 << 10).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    AccessToken::parse(text.trim()).ok_or_else(|| {
        "it has no token, which is 64 digits of base 16: remove it, and it is made anew".into()
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_token_is_made_once_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let made = read_token_file(&path).unwrap();
        assert!(read_token_file(&path).unwrap() == made);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let refused = |path: &Path| {
            assert!(matches!(read_token_file(path), Err(ServeError::TokenFile { .. })), "{}", path.display());
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        refused(&path);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        refused(&link);
        refused(folder.path());
        refused(&folder.path().join("nothing/token"));
        for text in ["", "secret", &"x".repeat(64), &"a".repeat(63), &"a".repeat(2000)] {
            fs::write(&path, text).unwrap();
            refused(&path);
        }
        fs::write(&path, "0".repeat(64)).unwrap();
        assert!(read_token_file(&path).is_ok());
    }
}
