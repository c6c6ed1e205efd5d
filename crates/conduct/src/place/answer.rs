//! What another program answers (ssh, virsh), for which whoever wishes to stop does not wait.

use std::io::{self, Read};
use std::process::{Command, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::Stop;

/// How often a wish to stop is looked for.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes kept of what it says.
const MOST: u64 = 16 << 20;

/// Runs the program to its end, as [`Command::output`] does; at a wish to stop it is killed.
pub(super) fn output(command: &mut Command, stop: &Stop) -> io::Result<Output> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdout, stderr) = (listen(child.stdout.take()), listen(child.stderr.take()));
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if stop.asked() {
            // That it is gone already is fine.
            let _ = child.kill();
            child.wait()?;
            return Err(io::Error::other("stopped before it had answered"));
        }
        thread::sleep(LOOK);
    };
    let text = |thread: JoinHandle<Vec<u8>>| thread.join().unwrap_or_default();
    Ok(Output { status, stdout: text(stdout), stderr: text(stderr) })
}

/// Reads a stream to its end, and keeps the beginning.
fn listen(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut stream) = stream {
            // A stream that breaks has ended.
            let _ = stream.by_ref().take(MOST).read_to_end(&mut kept);
            let _ = io::copy(&mut stream, &mut io::sink());
        }
        kept
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_kept_and_a_wish_to_stop_ends_what_is_silent() {
        let stop = Stop::new();
        let said = output(Command::new("sh").args(["-c", "echo yes; echo no >&2; exit 3"]), &stop).unwrap();
        assert_eq!(
            (said.status.code(), &said.stdout[..], &said.stderr[..]),
            (Some(3), &b"yes\n"[..], &b"no\n"[..])
        );
        let other = stop.clone();
        let asker = thread::spawn(move || other.ask());
        assert!(output(Command::new("sleep").arg("1000"), &stop).is_err());
        asker.join().unwrap();
    }
}
