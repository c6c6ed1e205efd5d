//! What stands in QEMU's place and speaks as no honest guest would: `xtask fake-guest KIND QEMU'S ARGUMENTS`.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::{sleep, spawn};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// What it says on the port of the guest's first process, and what its agent says.
struct FakeGuestKind {
    name: &'static str,
    first: &'static [u8],
    agent: &'static [u8],
    /// Whether the last port that is spoken on, and the console, get bytes without end.
    is_endless: bool,
}

const READY: &[u8] = &[0, 0, 0, 0, 0];
const NOTHING: &[u8] = &[];

const KINDS: &[FakeGuestKind] = &[
    declare_fake_guest("silence", NOTHING, NOTHING, false),
    declare_fake_guest("half a head", &[0, 5], NOTHING, false),
    declare_fake_guest("half a message", &[5, 100, 0, 0, 0, b'x'], NOTHING, false),
    declare_fake_guest("a message of 4 GiB", &[5, 255, 255, 255, 255], NOTHING, false),
    declare_fake_guest("bytes without end", NOTHING, NOTHING, true),
    declare_fake_guest("half a greeting", READY, b"\nperflab-ag", false),
    declare_fake_guest("a greeting, half a head", READY, b"\nperflab-agent/2\n\x05\x00", false),
    declare_fake_guest(
        "a greeting, half a frame",
        READY,
        b"\nperflab-agent/2\n\xa0\x0f\x00\x00{\"hel",
        false,
    ),
    declare_fake_guest("a greeting, bytes without end", READY, b"\nperflab-agent/2\n", true),
    declare_fake_guest("another version", READY, b"\nperflab-agent/99\n", false),
    declare_fake_guest("no greeting, bytes without end", READY, NOTHING, true),
];

const fn declare_fake_guest(
    name: &'static str,
    first: &'static [u8],
    agent: &'static [u8],
    is_endless: bool,
) -> FakeGuestKind {
    FakeGuestKind { name, first, agent, is_endless }
}

/// The names of all kinds.
pub fn fake_guest_kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

/// Speaks until it is killed.
pub fn run_fake_guest(arguments: &[String]) -> Result<bool> {
    let (name, qemu) = arguments.split_first().context("fake-guest needs a kind")?;
    let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else { bail!("no kind `{name}`") };
    let path = |start: &str| {
        let found = qemu.iter().find_map(|word| word.strip_prefix(start));
        found.map(|rest| rest.split(',').next().unwrap_or_default().to_owned()).context(start.to_owned())
    };
    let socket = |id: &str| path(&format!("socket,id={id},path="));
    // The first process's port comes last: who finds it finds all of them.
    let others = [path("unix:")?, socket("shell")?];
    let others = others.iter().map(UnixListener::bind).collect::<Result<Vec<_>, _>>()?;
    let agent = UnixListener::bind(socket("agent")?)?;
    let first = UnixListener::bind(socket("control")?)?;
    for other in others {
        spawn(move || other.incoming().for_each(|stream| drop(stream.map(drain_stream))));
    }
    let console = path("file,id=console,path=")?;
    let to_agent = kind.first == READY;
    let (mut first, _) = first.accept()?;
    first.write_all(kind.first)?;
    let mut last = if to_agent { agent.accept()?.0 } else { first };
    last.write_all(kind.agent)?;
    if kind.is_endless {
        spawn(move || write_endlessly(OpenOptions::new().append(true).create(true).open(console)));
        write_endlessly(Ok(last));
    }
    loop {
        sleep(Duration::from_secs(60));
    }
}

/// Reads what comes, to its end.
fn drain_stream(mut stream: UnixStream) {
    spawn(move || stream.read_to_end(&mut Vec::new()));
}

/// Writes for as long as somebody takes it.
fn write_endlessly(to: std::io::Result<impl Write>) {
    let block = [0xff; 1 << 16];
    if let Ok(mut to) = to {
        while to.write_all(&block).is_ok() {}
    }
}
