//! The lock on a machine: one study at a time works on it, for as long as an agent there holds it.
//!
//! It is a socket with a name in the kernel's abstract name space, which is in no file system: it needs no permission, is the same for
//! all users of a network name space, and ends with the process that holds it, however that ends. Who connects to it is told who that is.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::thread::JoinHandle;
use std::time::Duration;

use perflab_model::remove_control_characters;
use rustix::net::{Shutdown, shutdown};
use serde::{Deserialize, Serialize};

/// The name of the lock.
const NAME: &str = "perflab-host";

/// How long a holder may take to say who it is.
const ANSWER: Duration = Duration::from_secs(1);

/// Bytes of what it says.
const LONGEST: u64 = 4 << 10;

/// How often a lock is tried whose holder has just gone.
const TRIES: u32 = 5;

/// Who holds a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostHolder {
    /// The id of the run.
    pub run: String,
    /// The title of its study.
    pub study: String,
    /// The user and the machine that perflab runs on: `joe@desk`.
    pub who: String,
    /// Since when, by the clock of the machine that is held: seconds since 1970.
    pub since: i64,
    /// What the run calls the machine.
    #[serde(default)]
    pub host: Option<String>,
}

impl HostHolder {
    /// A run of this user's on this machine, from now on.
    pub(crate) fn of_run(run: &str, study: &str) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|user| !user.is_empty());
        let user = variable("USER").or_else(|| variable("LOGNAME"));
        let own = rustix::process::geteuid();
        let number = || if own.is_root() { "root".to_owned() } else { format!("user {}", own.as_raw()) };
        let user = user.unwrap_or_else(number);
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        HostHolder {
            run: run.into(),
            study: study.into(),
            who: format!("{user}@{machine}"),
            since: 0,
            host: None,
        }
    }
}

impl fmt::Display for HostHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = jiff::Timestamp::from_second(self.since)
            .map(|at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
            .unwrap_or_default();
        let HostHolder { run, study, who, .. } = self;
        // What another machine says is shown, and obeyed by no terminal.
        let text = format!("run {run} of {who} ({study}), since {since}");
        f.write_str(&remove_control_characters(&text))
    }
}

/// The lock, held until it is dropped.
#[derive(Debug)]
pub(crate) struct HostLock {
    listener: UnixListener,
    teller: Option<JoinHandle<()>>,
}

/// What came of asking for the lock.
#[derive(Debug)]
pub(crate) enum LockAttempt {
    /// it is ours
    Taken(HostLock),
    /// it is another's, who may not have said who it is
    Held(Option<HostHolder>),
}

impl HostLock {
    /// Takes the lock for `holder`, unless somebody has it.
    ///
    /// # Errors
    /// There are no such sockets.
    pub(crate) fn take(holder: &HostHolder) -> io::Result<LockAttempt> {
        HostLock::take_named(NAME, holder)
    }

    fn take_named(name: &str, holder: &HostHolder) -> io::Result<LockAttempt> {
        let address = SocketAddr::from_abstract_name(name)?;
        let mut last = None;
        for _ in 0..TRIES {
            match UnixListener::bind_addr(&address) {
                Ok(listener) => return HostLock::hold(listener, holder).map(LockAttempt::Taken),
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(error),
                Err(_) => {}
            }
            match ask_holder(&address) {
                // It went while it was asked.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                found => {
                    last = found.ok();
                    break;
                }
            }
        }
        Ok(LockAttempt::Held(last))
    }

    fn hold(listener: UnixListener, holder: &HostHolder) -> io::Result<Self> {
        let text = serde_json::to_vec(holder).map_err(io::Error::other)?;
        let asked = listener.try_clone()?;
        let teller = std::thread::Builder::new().name("host-lock".into()).spawn(move || {
            while let Ok((mut stream, _)) = asked.accept() {
                // So little fits the socket: nobody is waited for.
                let _ = stream.set_nonblocking(true).and_then(|()| stream.write_all(&text));
            }
        })?;
        Ok(HostLock { listener, teller: Some(teller) })
    }

    /// Who holds the machine, if anybody does: one who says nothing is unknown.
    pub(crate) fn find_holder() -> Option<Option<HostHolder>> {
        let address = SocketAddr::from_abstract_name(NAME).ok()?;
        match ask_holder(&address) {
            Ok(holder) => Some(Some(holder)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => None,
            Err(_) => Some(None),
        }
    }
}

impl Drop for HostLock {
    fn drop(&mut self) {
        // What waits for who asks has the socket as well, and ends with this.
        let _ = shutdown(&self.listener, Shutdown::Both);
        self.teller.take().map(JoinHandle::join);
    }
}

fn ask_holder(address: &SocketAddr) -> io::Result<HostHolder> {
    let stream = UnixStream::connect_addr(address)?;
    stream.set_read_timeout(Some(ANSWER))?;
    let mut text = Vec::new();
    stream.take(LONGEST).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(run: &str) -> HostHolder {
        HostHolder { run: run.into(), study: "t".into(), who: "joe@desk".into(), since: 1, host: None }
    }

    #[test]
    fn one_holds_it_and_says_who_that_is_until_it_is_dropped() {
        let name = format!("perflab-host-lock-test-{}", std::process::id());
        let LockAttempt::Taken(lock) = HostLock::take_named(&name, &holder("a")).unwrap() else { panic!() };
        for _ in 0..2 {
            let LockAttempt::Held(found) = HostLock::take_named(&name, &holder("b")).unwrap() else {
                panic!()
            };
            assert_eq!(found, Some(holder("a")));
        }
        drop(lock);
        assert!(matches!(HostLock::take_named(&name, &holder("b")).unwrap(), LockAttempt::Taken(_)));
    }
}
