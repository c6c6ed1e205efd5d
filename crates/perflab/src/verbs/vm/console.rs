//! The user's terminal and a guest's, connected.

use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// ^], as telnet(1) has it.
const LEAVE: u8 = 0x1d;

/// Connects until the guest hangs up, or the user leaves.
pub fn attach_console(guest: UnixStream) -> io::Result<()> {
    let _raw = RawTerminal::enter()?;
    let typed = guest.try_clone()?;
    thread::spawn(move || forward_keys(typed));
    let mut guest = guest;
    let mut buffer = [0; 4096];
    loop {
        match guest.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                io::stdout().write_all(buffer.get(..length).unwrap_or_default())?;
                io::stdout().flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// What is typed goes to the guest; the end of it, or ^], hangs up.
fn forward_keys(mut guest: UnixStream) {
    let mut buffer = [0; 1024];
    // A prompt that was printed before anybody looked is asked for again.
    let _ = guest.write_all(b"\r");
    while let Ok(length @ 1..) = io::stdin().read(&mut buffer) {
        let typed = buffer.get(..length).unwrap_or_default();
        if typed.contains(&LEAVE) || guest.write_all(typed).is_err() {
            break;
        }
    }
    if io::stdin().is_terminal() {
        let _ = guest.shutdown(std::net::Shutdown::Both);
    }
}

/// The terminal in raw mode, until dropped: every key is the guest's.
struct RawTerminal(Option<Termios>);

impl RawTerminal {
    fn enter() -> io::Result<RawTerminal> {
        if !io::stdin().is_terminal() {
            return Ok(RawTerminal(None));
        }
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(RawTerminal(Some(before)))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // A terminal that is gone needs nothing.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
