//! What an agent says of itself.

use perflab_observe::Root;

use crate::protocol::AgentHello;

/// The first report.
pub(super) fn own_hello(root: &Root) -> AgentHello {
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    AgentHello {
        program: format!("perflab {}", env!("CARGO_PKG_VERSION")),
        kernel,
        boot_id: perflab_observe::read_boot_id(root),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
    }
}
