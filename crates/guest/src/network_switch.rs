//! An Ethernet switch between the guests of a run: frames over a socket to each, addresses learnt.
//!
//! Nothing of it needs root: each QEMU calls the switch's socket (`-netdev stream`), and each frame comes as its length (four bytes,
//! big-endian) and its bytes. A frame goes to the port that its destination was last heard at, else to all others. Every port has a
//! queue of its own, from which frames are dropped when it is full, as a switch does: a guest that stands still holds up nobody.

use std::collections::HashMap;
use std::fs::{File, Permissions};
use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tempfile::TempDir;

use crate::error::GuestError;
use crate::running_guest;

/// Frames that wait for a guest.
const QUEUE: usize = 1024;

/// Bytes that are handed over at once.
const BURST: usize = 256 << 10;

/// The largest frame, in bytes: more than QEMU sends (its own limit is 68 KiB).
const LARGEST_FRAME: usize = 72 << 10;

/// The smallest: two hardware addresses.
const SMALLEST_FRAME: usize = 12;

/// Addresses that are remembered: a guest may make up as many as it likes.
const MOST_ADDRESSES: usize = 4096;

type HardwareAddress = [u8; 6];

/// A switch that runs until it is dropped.
#[derive(Debug)]
pub struct NetworkSwitch {
    folder: TempDir,
    #[expect(dead_code, reason = "held, not read: an abandoned folder is one whose lock is free")]
    lock: File,
    shared: Arc<SwitchPorts>,
    accepting: Option<JoinHandle<()>>,
}

/// What all threads of a switch know.
#[derive(Debug, Default)]
struct SwitchPorts {
    table: Mutex<SwitchTable>,
    ended: AtomicBool,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct SwitchTable {
    /// Every port that is connected.
    ports: HashMap<u64, ConnectedPort>,
    /// Where each address was heard last.
    places: HashMap<HardwareAddress, u64>,
    next: u64,
}

/// A port with a card behind it.
#[derive(Debug)]
struct ConnectedPort {
    /// Frames that wait for the card.
    queue: SyncSender<Arc<[u8]>>,
    /// To end it.
    stream: UnixStream,
}

impl NetworkSwitch {
    /// Begins to listen, in a private folder beside those of guests.
    ///
    /// # Errors
    /// The folder or its socket cannot be made.
    pub fn start() -> Result<Self, GuestError> {
        let home = running_guest::guests_folder()?;
        let private = Permissions::from_mode(0o700);
        let folder =
            tempfile::Builder::new().prefix("switch-").rand_bytes(6).permissions(private).tempdir_in(&home);
        let folder = folder.map_err(GuestError::file_error(&home))?;
        let lock =
            running_guest::lock_guest_folder(folder.path()).map_err(GuestError::file_error(folder.path()))?;
        let socket = socket_in(folder.path());
        let listener = UnixListener::bind(&socket).map_err(GuestError::file_error(&socket))?;
        let shared = Arc::new(SwitchPorts::default());
        let ports = Arc::clone(&shared);
        let accept = move || accept_ports(&listener, &ports);
        let accepting = std::thread::Builder::new().name("network-switch".into()).spawn(accept);
        let accepting = Some(accepting.map_err(GuestError::file_error(&socket))?);
        Ok(NetworkSwitch { folder, lock, shared, accepting })
    }

    /// What QEMU calls.
    pub fn socket(&self) -> PathBuf {
        socket_in(self.folder.path())
    }

    /// Frames that found a full queue so far.
    pub fn dropped_frames(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("switch")
}

impl Drop for NetworkSwitch {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = UnixStream::connect(self.socket());
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        for port in self.shared.lock().ports.values() {
            let _ = port.stream.shutdown(Shutdown::Both);
        }
    }
}

fn accept_ports(listener: &UnixListener, shared: &Arc<SwitchPorts>) {
    for stream in listener.incoming() {
        if shared.ended.load(Ordering::SeqCst) {
            return;
        }
        // One that cannot be served is a card that nothing arrives at; the others are served.
        let _ = stream.and_then(|stream| SwitchPorts::connect(shared, stream));
    }
}

impl SwitchPorts {
    fn lock(&self) -> std::sync::MutexGuard<'_, SwitchTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a card, by a thread for each direction.
    fn connect(shared: &Arc<SwitchPorts>, stream: UnixStream) -> io::Result<()> {
        let (queue, waiting) = sync_channel(QUEUE);
        let (reading, writing) = (stream.try_clone()?, stream.try_clone()?);
        let port = {
            let mut table = shared.lock();
            table.next += 1;
            let port = table.next;
            table.ports.insert(port, ConnectedPort { queue, stream });
            port
        };
        std::thread::spawn(move || send_frames(writing, &waiting));
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // However it ends, the port is gone.
            let _ = receive_frames(&shared, port, reading);
            shared.disconnect(port);
        });
        Ok(())
    }

    fn disconnect(&self, port: u64) {
        let mut table = self.lock();
        if let Some(gone) = table.ports.remove(&port) {
            let _ = gone.stream.shutdown(Shutdown::Both);
        }
        table.places.retain(|_, place| *place != port);
    }

    fn forward(&self, from: u64, frame: Arc<[u8]>) {
        let address = |at: usize| frame.get(at..at + 6).and_then(|bytes| bytes.try_into().ok());
        let (Some(to), Some(source)) = (address(0), address(6)) else { return };
        let to: HardwareAddress = to;
        let source: HardwareAddress = source;
        let mut table = self.lock();
        if table.places.len() < MOST_ADDRESSES || table.places.contains_key(&source) {
            table.places.insert(source, from);
        }
        // The lowest bit of the first byte: a group, or everybody.
        let known = table.places.get(&to).copied().filter(|_| to[0] & 1 == 0);
        let is_meant = |port: u64| port != from && known.is_none_or(|known| known == port);
        for (_, connected) in table.ports.iter().filter(|(port, _)| is_meant(**port)) {
            if connected.queue.try_send(Arc::clone(&frame)).is_err() {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

fn receive_frames(shared: &SwitchPorts, port: u64, stream: UnixStream) -> io::Result<()> {
    let mut stream = BufReader::with_capacity(BURST, stream);
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > LARGEST_FRAME {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut frame = vec![0; length];
        stream.read_exact(&mut frame)?;
        if length >= SMALLEST_FRAME {
            shared.forward(port, frame.into());
        }
    }
}

/// Hands over what waits, many frames at a time; ends when the port is gone.
fn send_frames(mut stream: UnixStream, waiting: &Receiver<Arc<[u8]>>) {
    let mut burst = Vec::with_capacity(BURST);
    while let Ok(first) = waiting.recv() {
        burst.clear();
        let mut next = Some(first);
        while let Some(frame) = next {
            burst.extend_from_slice(&(frame.len() as u32).to_be_bytes());
            burst.extend_from_slice(&frame);
            next = if burst.len() < BURST { waiting.try_recv().ok() } else { None };
        }
        if stream.write_all(&burst).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn send(card: &mut UnixStream, to: u8, from: u8, content: &[u8]) {
        let mut frame = [[to; 6], [from; 6]].concat();
        frame.extend_from_slice(content);
        card.write_all(&(frame.len() as u32).to_be_bytes()).unwrap();
        card.write_all(&frame).unwrap();
    }

    fn receive(card: &mut UnixStream) -> Option<(u8, Vec<u8>)> {
        let mut length = [0; 4];
        card.read_exact(&mut length).ok()?;
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        card.read_exact(&mut frame).ok()?;
        Some((frame[6], frame[12..].to_vec()))
    }

    fn cards(switch: &NetworkSwitch, count: usize) -> Vec<UnixStream> {
        let connect = |_| {
            let card = UnixStream::connect(switch.socket()).unwrap();
            card.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            card
        };
        let cards = (0..count).map(connect).collect();
        while switch.shared.lock().ports.len() < count {
            std::thread::sleep(Duration::from_millis(1));
        }
        cards
    }

    #[test]
    fn frames_go_to_everybody_until_it_is_known_where_their_address_is() {
        let switch = NetworkSwitch::start().unwrap();
        let mut cards = cards(&switch, 3);
        send(&mut cards[0], 0xff, 2, b"who has it?");
        assert_eq!(receive(&mut cards[1]), Some((2, b"who has it?".to_vec())));
        assert_eq!(receive(&mut cards[2]), Some((2, b"who has it?".to_vec())));
        send(&mut cards[1], 2, 4, b"I have");
        assert_eq!(receive(&mut cards[0]), Some((4, b"I have".to_vec())));
        send(&mut cards[0], 4, 2, b"to you alone");
        send(&mut cards[0], 0xff, 2, b"to all");
        assert_eq!(receive(&mut cards[1]), Some((2, b"to you alone".to_vec())));
        assert_eq!(receive(&mut cards[2]), Some((2, b"to all".to_vec())));
        let socket = switch.socket();
        drop(switch);
        assert_eq!(receive(&mut cards[2]), None);
        assert!(!socket.exists());
    }

    #[test]
    fn who_sends_no_frames_is_hung_up_on_and_who_takes_none_holds_up_nobody() {
        let switch = NetworkSwitch::start().unwrap();
        let mut cards = cards(&switch, 3);
        cards[2].write_all(&u32::MAX.to_be_bytes()).unwrap();
        assert_eq!(receive(&mut cards[2]), None);
        send(&mut cards[1], 0xff, 4, b"here");
        assert_eq!(receive(&mut cards[0]).unwrap().0, 4);
        let mut silent = UnixStream::connect(switch.socket()).unwrap();
        send(&mut silent, 0xff, 6, b"I hear nothing");
        assert_eq!(receive(&mut cards[0]).unwrap().0, 6);
        assert_eq!(receive(&mut cards[1]).unwrap().0, 6);
        let content = vec![7; 1400];
        for _ in 0..4 * QUEUE {
            send(&mut cards[0], 6, 2, &content);
        }
        send(&mut cards[0], 4, 2, b"the last");
        assert_eq!(receive(&mut cards[1]), Some((2, b"the last".to_vec())));
        assert!(switch.dropped_frames() > 0);
    }
}
