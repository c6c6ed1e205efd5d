//! A guest's command as if it ran here: its output, its input, its end.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::bail;
use perflab_conduct::StopRequest;
use perflab_conduct::guest::boot::log_tail;
use perflab_conduct::guest::init_protocol::{ControlFrame, GuestMessage, HostMessage};
use perflab_conduct::guest::running_guest::find_panic_in;
use perflab_conduct::guest::{Guest, GuestError};

/// Passes everything through until the command has ended.
pub fn pass_through_streams(guest: &Guest, stop: &StopRequest) -> anyhow::Result<ExitCode> {
    let mut control = guest.control_stream()?;
    let input = guest.control_stream()?;
    // Not waited for: it hangs in reading our own input.
    thread::spawn(move || forward_stdin(input));
    let hung_up = guest.control_stream()?;
    let asked = stop.clone();
    thread::spawn(move || hang_up_when_stopped(&asked, &hung_up));
    loop {
        match GuestMessage::read(&mut control)? {
            Some(GuestMessage::Output(bytes)) => write_and_flush(&mut io::stdout(), &bytes)?,
            Some(GuestMessage::Errors(bytes)) => write_and_flush(&mut io::stderr(), &bytes)?,
            Some(GuestMessage::Exited(code)) => {
                return Ok(ExitCode::from(u8::try_from(code & 0xff).unwrap_or(u8::MAX)));
            }
            Some(GuestMessage::Killed(signal)) => {
                return Ok(ExitCode::from(128_u8.wrapping_add(signal as u8)));
            }
            Some(GuestMessage::Failed(reason)) => bail!("guest {}: {reason}", guest.name()),
            Some(GuestMessage::Ready) => {}
            None if stop.is_requested() => {
                return Err(GuestError::Stopped { name: guest.name().into() }.into());
            }
            None => {
                let how = find_panic_in(guest.console_log())
                    .map_or_else(String::new, |line| format!(": its kernel panicked: {line}"));
                bail!(
                    "guest {} ended before its command{how}; the last lines of its console, {}:\n{}",
                    guest.name(),
                    guest.console_log().display(),
                    log_tail(guest.console_log(), 12)
                )
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
