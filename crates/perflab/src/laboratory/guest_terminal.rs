//! The user's terminal connected to a guest's, and a guest's command as if it ran here: its output, its input, its end.

use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use perflab_guest::find_panic_in;
use perflab_guest::log_tail;
use perflab_guest::{ControlFrame, GuestMessage, HostMessage};
use perflab_guest::{Guest, GuestError};
use perflab_model::StopRequest;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::failure::{Exit, Failure, UnexpectedError};

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

/// Passes everything through until the command has ended.
pub fn pass_through_streams(guest: &Guest, stop: &StopRequest) -> Result<Exit, Failure> {
    let mut control = guest.control_stream()?;
    let input = guest.control_stream()?;
    // Not waited for: it hangs in reading our own input.
    thread::spawn(move || forward_stdin(input));
    let hung_up = guest.control_stream()?;
    let asked = stop.clone();
    thread::spawn(move || hang_up_when_stopped(&asked, &hung_up));
    loop {
        match GuestMessage::read(&mut control)? {
            Some(GuestMessage::Output(bytes)) => {
                write_and_flush(&mut io::stdout(), &bytes).map_err(Failure::of_stdout)?;
            }
            Some(GuestMessage::Errors(bytes)) => {
                write_and_flush(&mut io::stderr(), &bytes).map_err(Failure::of_stdout)?;
            }
            Some(GuestMessage::Exited(code)) => {
                return Ok(Exit::Program(u8::try_from(code & 0xff).unwrap_or(u8::MAX)));
            }
            Some(GuestMessage::Killed(signal)) => {
                return Ok(Exit::Program(128_u8.wrapping_add(signal as u8)));
            }
            Some(GuestMessage::Failed(reason)) => {
                return Err(UnexpectedError(format!("guest {}: {reason}", guest.name())).into());
            }
            Some(GuestMessage::Ready) => {}
            None if stop.is_requested() => {
                return Err(GuestError::Stopped { name: guest.name().into() }.into());
            }
            None => {
                let how = find_panic_in(guest.console_log())
                    .map_or_else(String::new, |line| format!(": its kernel panicked: {line}"));
                return Err(UnexpectedError(format!(
                    "guest {} ended before its command{how}; the last lines of its console, {}:\n{}",
                    guest.name(),
                    guest.console_log().display(),
                    log_tail(guest.console_log(), 12)
                ))
                .into());
            }
        }
    }
}

fn write_and_flush(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

/// Our input becomes the command's.
fn forward_stdin(mut guest: UnixStream) {
    let mut buffer = [0; 16 << 10];
    while let Ok(length @ 1..) = io::stdin().read(&mut buffer) {
        if HostMessage::Input(buffer.get(..length).unwrap_or_default().to_vec()).write(&mut guest).is_err() {
            return;
        }
    }
    // A guest that is gone needs no end.
    let _ = HostMessage::EndOfInput.write(&mut guest);
}

/// ^C hangs up, which ends the conversation, and the guest with it.
fn hang_up_when_stopped(stop: &StopRequest, guest: &UnixStream) {
    while !stop.is_requested() {
        thread::sleep(Duration::from_millis(20));
    }
    let _ = guest.shutdown(std::net::Shutdown::Both);
}
