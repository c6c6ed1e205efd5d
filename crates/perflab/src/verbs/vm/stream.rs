//! A guest's command as if it ran here: its output, its input, its end.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::bail;
use perflab_conduct::Stop;
use perflab_conduct::init::{Control, Said, Told};
use perflab_conduct::machine::boot::words;
use perflab_conduct::machine::console::find_panic_in;
use perflab_conduct::machine::{Guest, MachineError};

/// Passes everything through until the command has ended.
pub fn pass_through(guest: &Guest, stop: &Stop) -> anyhow::Result<ExitCode> {
    let mut control = guest.control()?;
    let input = guest.control()?;
    // Not waited for: it hangs in reading our own input.
    thread::spawn(move || feed(input));
    let hung_up = guest.control()?;
    let asked = stop.clone();
    thread::spawn(move || until_stopped(&asked, &hung_up));
    loop {
        match Said::read(&mut control)? {
            Some(Said::Output(bytes)) => shown(&mut io::stdout(), &bytes)?,
            Some(Said::Errors(bytes)) => shown(&mut io::stderr(), &bytes)?,
            Some(Said::Exited(code)) => {
                return Ok(ExitCode::from(u8::try_from(code & 0xff).unwrap_or(u8::MAX)));
            }
            Some(Said::Killed(signal)) => return Ok(ExitCode::from(128_u8.wrapping_add(signal as u8))),
            Some(Said::Failed(reason)) => bail!("guest {}: {reason}", guest.name()),
            Some(Said::Ready) => {}
            None if stop.asked() => return Err(MachineError::Stopped { name: guest.name().into() }.into()),
            None => {
                let how = find_panic_in(guest.console())
                    .map_or_else(String::new, |line| format!(": its kernel panicked: {line}"));
                bail!(
                    "guest {} ended before its command{how}; the last lines of its console, {}:\n{}",
                    guest.name(),
                    guest.console().display(),
                    words(guest.console(), 12)
                )
            }
        }
    }
}

fn shown(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

/// Our input becomes the command's.
fn feed(mut guest: UnixStream) {
    let mut buffer = [0; 16 << 10];
    while let Ok(length @ 1..) = io::stdin().read(&mut buffer) {
        if Told::Input(buffer.get(..length).unwrap_or_default().to_vec()).write(&mut guest).is_err() {
            return;
        }
    }
    // A guest that is gone needs no end.
    let _ = Told::EndOfInput.write(&mut guest);
}

/// ^C hangs up, which ends the conversation, and the guest with it.
fn until_stopped(stop: &Stop, guest: &UnixStream) {
    while !stop.asked() {
        thread::sleep(Duration::from_millis(20));
    }
    let _ = guest.shutdown(std::net::Shutdown::Both);
}
