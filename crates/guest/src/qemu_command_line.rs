//! The machine as QEMU's arguments.

use std::path::Path;

use perflab_model::study::PortForward;

use crate::guest_network::{GuestNetwork, HOST_CARD, format_hardware_address, switch_hardware_address};
use crate::init_protocol::{AGENT_PORT, CONTROL_PORT};
use crate::initramfs::GUEST_HOME;
use crate::machine::{Accelerator, GuestDebug, GuestDisk, GuestMachine, GuestRootSource};

/// The files and sockets of a guest.
pub(crate) struct GuestPaths<'a> {
    /// The private folder, for sockets and the initramfs.
    pub(crate) private: &'a Path,
    /// The console's log.
    pub(crate) console: &'a Path,
    /// The guest's number, where it has a vsock device.
    pub(crate) cid: Option<u32>,
}

/// How the guest gets at a root of the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootShare {
    /// QEMU serves it.
    NineP,
    /// virtiofsd serves it, on the socket `share`.
    VirtioFs,
}

/// The name under which that is offered.
pub(crate) const ROOT_SHARE_TAG: &str = "hostroot";

/// Leaves the self-tests of the kernel's ciphers out.
const UNTRIED: &str = "cryptomgr.notests";

/// QEMU's program.
pub(crate) const QEMU_PROGRAM: &str = "qemu-system-x86_64";

/// All arguments.
pub(crate) fn qemu_arguments(
    machine: &GuestMachine,
    accelerator: Accelerator,
    sharing: Option<RootShare>,
    paths: &GuestPaths<'_>,
) -> Vec<String> {
    let mut line = QemuArguments::default();
    line.add_option("-name", format!("{},process=perflab-{},debug-threads=on", machine.name, machine.name));
    line.add_words("-nodefaults -no-user-config -display none -no-reboot");
    line.add_option("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny");
    add_processors(&mut line, machine, accelerator);
    add_memory(&mut line, machine, accelerator, sharing);
    line.add_option("-kernel", machine.kernel.image.display());
    line.add_option("-initrd", paths.private.join("initramfs").display());
    line.add_option("-append", kernel_command_line(machine, accelerator));
    add_ports(&mut line, machine, paths);
    if let Some(cid) = paths.cid {
        line.add_option("-device", format!("vhost-vsock-pci,guest-cid={cid}"));
    }
    add_share(&mut line, machine, sharing, paths);
    add_disks(&mut line, machine);
    add_network(&mut line, &machine.network);
    if let Some(debug) = &machine.debug {
        add_debugging(&mut line, debug);
    }
    line.0.extend(machine.qemu_options.iter().cloned());
    line.0
}

#[derive(Default)]
struct QemuArguments(Vec<String>);

impl QemuArguments {
    fn add_option(&mut self, option: &str, value: impl ToString) {
        self.0.extend([option.to_owned(), value.to_string()]);
    }

    fn add_words(&mut self, text: &str) {
        self.0.extend(text.split(' ').map(str::to_owned));
    }
}

fn add_processors(line: &mut QemuArguments, machine: &GuestMachine, accelerator: Accelerator) {
    let (name, model) = match accelerator {
        Accelerator::Kvm => ("kvm", "host"),
        // QEMU translates `rep movsb` byte by byte, and a kernel that believes it is fast (ERMS) clears and copies
        // every page with it: an eighth of a boot.
        Accelerator::Tcg => ("tcg,thread=multi", "max,-erms"),
    };
    line.add_option("-accel", name);
    line.add_option("-cpu", machine.model.as_deref().unwrap_or(model));
    line.add_option("-smp", machine.cpus);
}

/// Memory in a backend of its own where it must be shared, huge, or on a node.
fn add_memory(
    line: &mut QemuArguments,
    machine: &GuestMachine,
    _accelerator: Accelerator,
    sharing: Option<RootShare>,
) {
    let mib = |bytes: u64| bytes >> 20;
    line.add_option("-m", mib(machine.memory.0));
    let shared = sharing == Some(RootShare::VirtioFs);
    let plain = !shared && machine.huge_pages.is_none() && machine.nodes.is_empty();
    let huge = machine.huge_pages.map_or(String::new(), |size| format!(",hugetlb=on,hugetlbsize={}", size.0));
    let backend = |id: &str, bytes: u64| {
        let share = if shared { "on" } else { "off" };
        format!("memory-backend-memfd,id={id},size={}M,share={share}{huge}", mib(bytes))
    };
    if machine.nodes.is_empty() {
        if !plain {
            line.add_option("-object", backend("memory0", machine.memory.0));
        }
        let name = if plain { "" } else { ",memory-backend=memory0" };
        line.add_option("-machine", format!("{}{name}", machine.board));
        return;
    }
    line.add_option("-machine", &machine.board);
    let mut first = 0;
    for (index, node) in machine.nodes.iter().enumerate() {
        let id = format!("memory{index}");
        let bound = node.host.map_or(String::new(), |host| format!(",host-nodes={host},policy=bind"));
        line.add_option("-object", format!("{}{bound}", backend(&id, node.memory.0)));
        let cpus = match node.cpus {
            0 => String::new(),
            count => format!(",cpus={first}-{}", first + count - 1),
        };
        line.add_option("-numa", format!("node,nodeid={index}{cpus},memdev={id}"));
        first += node.cpus;
    }
}

/// The kernel's command line: where its console is, that perflab is its first process, to end when it panics, and not to
/// try all its ciphers before it begins, which is a quarter of a boot's CPU time under TCG (`--append cryptomgr.notests=0`
/// brings that back: what comes later counts).
fn kernel_command_line(machine: &GuestMachine, accelerator: Accelerator) -> String {
    let mut arguments =
        vec!["console=ttyS0".to_owned(), "panic=-1".into(), format!("rdinit={GUEST_HOME}/perflab")];
    arguments.push(UNTRIED.into());
    if accelerator == Accelerator::Tcg {
        // A starved virtual processor misses the timer's interrupts, and the kernel gives up on it.
        arguments.push("no_timer_check".into());
    }
    if machine.debug.is_some() {
        arguments.push("nokaslr".into());
    }
    arguments.extend(machine.append.iter().cloned());
    arguments.join(" ")
}

fn add_ports(line: &mut QemuArguments, machine: &GuestMachine, paths: &GuestPaths<'_>) {
    let socket = |name: &str| escape_comma(&paths.private.join(name).display().to_string());
    line.add_option(
        "-chardev",
        format!("file,id=console,path={}", escape_comma(&paths.console.display().to_string())),
    );
    line.add_option("-serial", "chardev:console");
    line.add_option("-qmp", format!("unix:{},server=on,wait=off", socket("qmp")));
    if machine.debug.is_some() {
        // A monitor speaks to one at a time, and this one is held until the end.
        line.add_option("-qmp", format!("unix:{},server=on,wait=off", socket("watch")));
    }
    line.add_option("-device", "virtio-serial-pci,id=ports");
    for (id, device) in [("control", "virtserialport"), ("agent", "virtserialport"), ("shell", "virtconsole")]
    {
        line.add_option("-chardev", format!("socket,id={id},path={},server=on,wait=off", socket(id)));
        let name = match id {
            "control" => format!(",name={CONTROL_PORT}"),
            "agent" => format!(",name={AGENT_PORT}"),
            _ => String::new(),
        };
        line.add_option("-device", format!("{device},chardev={id}{name}"));
    }
}

fn add_share(
    line: &mut QemuArguments,
    machine: &GuestMachine,
    sharing: Option<RootShare>,
    paths: &GuestPaths<'_>,
) {
    let shared = machine.root.shared_folder().unwrap_or(Path::new("/"));
    match sharing {
        None => {}
        Some(RootShare::NineP) => line.add_option(
            "-virtfs",
            format!(
                "local,path={},mount_tag={ROOT_SHARE_TAG},security_model=none,readonly=on,multidevs=remap",
                escape_comma(&shared.display().to_string())
            ),
        ),
        Some(RootShare::VirtioFs) => {
            line.add_option(
                "-chardev",
                format!("socket,id=share,path={}", paths.private.join("share").display()),
            );
            line.add_option("-device", format!("vhost-user-fs-pci,chardev=share,tag={ROOT_SHARE_TAG}"));
        }
    }
}

/// The root comes first: it is `/dev/vda`.
fn add_disks(line: &mut QemuArguments, machine: &GuestMachine) {
    let root = match &machine.root {
        GuestRootSource::Image { disk, .. } => Some(disk),
        _ => None,
    };
    for thread in 0..machine.iothreads {
        line.add_option("-object", format!("iothread,id=iothread{thread}"));
    }
    for (index, disk) in root.into_iter().chain(&machine.disks).enumerate() {
        line.add_option("-drive", drive_option(index, disk));
        let queues = machine.disk_queues.map_or(String::new(), |queues| format!(",num-queues={queues}"));
        let thread = u32::try_from(index).unwrap_or_default().checked_rem(machine.iothreads);
        let thread = thread.map_or(String::new(), |thread| format!(",iothread=iothread{thread}"));
        line.add_option("-device", format!("virtio-blk-pci,drive=disk{index}{queues}{thread}"));
    }
}

/// A card on the switch, which QEMU calls itself, and one to the user network. They boot nothing (`romfile=`).
fn add_network(line: &mut QemuArguments, network: &GuestNetwork) {
    let switch = network.switch.as_ref().map(|port| {
        let path = escape_comma(&port.socket.display().to_string());
        let backend = format!("stream,id=guests,server=off,addr.type=unix,addr.path={path}");
        ("guests", backend, switch_hardware_address(port.address))
    });
    let host = network.host.then(|| {
        let lead =
            |forward: &PortForward| format!(",hostfwd=tcp:127.0.0.1:{}-:{}", forward.host, forward.guest);
        let forwards: String = network.forward.iter().map(lead).collect();
        ("host", format!("user,id=host{forwards}"), HOST_CARD)
    });
    for (name, backend, address) in switch.into_iter().chain(host) {
        line.add_option("-netdev", backend);
        let mac = format_hardware_address(address);
        line.add_option("-device", format!("virtio-net-pci,netdev={name},mac={mac},romfile="));
    }
}

/// A stub for gdb, and a guest that stays as it is when its kernel gives up: what it says of its kernel's place in memory goes into a
/// dump of it (`vmcoreinfo`).
fn add_debugging(line: &mut QemuArguments, debug: &GuestDebug) {
    let path = escape_comma(&debug.stub.display().to_string());
    line.add_option("-chardev", format!("socket,id=gdb,path={path},server=on,wait=off"));
    line.add_option("-gdb", "chardev:gdb");
    line.add_option("-action", "reboot=shutdown,shutdown=pause");
    line.add_option("-device", "vmcoreinfo");
}

fn drive_option(index: usize, disk: &GuestDisk) -> String {
    let snapshot = if disk.snapshot { ",snapshot=on" } else { "" };
    let path = escape_comma(&disk.path.display().to_string());
    format!("if=none,id=disk{index},file={path},format={},cache={}{snapshot}", disk.format, disk.cache)
}

/// In QEMU's lists a comma within a value is written twice.
fn escape_comma(text: &str) -> String {
    text.replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use perflab_model::Bytes;
    use perflab_observe::KvmSpeed;

    use super::{GuestPaths, RootShare, qemu_arguments};
    use crate::kernel::KernelImage;
    use crate::*;

    fn example_machine() -> GuestMachine {
        let kernel = KernelImage {
            name: "k".into(),
            image: "/k/bzImage".into(),
            release: "6.1.0".into(),
            modules: None,
            build: None,
        };
        GuestMachine::new("guest1", kernel)
    }

    fn command_line_text(
        machine: &GuestMachine,
        accelerator: Accelerator,
        sharing: Option<RootShare>,
    ) -> String {
        let paths = GuestPaths {
            private: Path::new("/p"),
            console: Path::new("/logs/a,b.console.log"),
            cid: machine.vsock.then_some(77),
        };
        let arguments = qemu_arguments(machine, accelerator, sharing, &paths);
        arguments.join(" ").replace(" -", "\n-")
    }

    #[test]
    fn a_plain_guest_in_qemus_words() {
        insta::assert_snapshot!(command_line_text(&example_machine(), Accelerator::Tcg, None));
    }

    #[test]
    fn everything_that_can_be_said_in_qemus_words() {
        let node = |cpus, host| GuestNumaNode { cpus, memory: Bytes(1 << 30), host };
        let described = GuestMachine {
            cpus: 3,
            memory: Bytes(2 << 30),
            nodes: vec![node(2, Some(0)), node(1, None)],
            huge_pages: Some(Bytes(2 << 20)),
            model: Some("EPYC".into()),
            append: vec!["mitigations=off".into()],
            root: GuestRootSource::Image {
                disk: GuestDisk::discarding_changes("/images/debian.qcow2"),
                partition: 1,
            },
            disks: vec![GuestDisk {
                cache: "none".into(),
                snapshot: false,
                ..GuestDisk::discarding_changes("/images/data.img")
            }],
            disk_queues: Some(4),
            iothreads: 1,
            network: GuestNetwork {
                switch: Some(SwitchPort {
                    socket: "/n/switch".into(),
                    address: std::net::Ipv4Addr::new(10, 77, 0, 1),
                }),
                host: true,
                forward: vec![perflab_model::study::PortForward { host: 2222, guest: 22 }],
                names: Vec::new(),
            },
            debug: Some(GuestDebug { stub: "/l/gdb".into(), dump: "/l/dump".into() }),
            ..example_machine()
        };
        insta::assert_snapshot!(command_line_text(&described, Accelerator::Kvm, None));
    }

    #[test]
    fn a_shared_root_by_either_way() {
        let nine = command_line_text(&example_machine(), Accelerator::Kvm, Some(RootShare::NineP));
        assert!(nine.contains("readonly=on") && !nine.contains("memory-backend"), "{nine}");
        let fs = command_line_text(&example_machine(), Accelerator::Kvm, Some(RootShare::VirtioFs));
        assert!(fs.contains("share=on") && fs.contains("vhost-user-fs-pci"), "{fs}");
    }

    #[test]
    fn a_vsock_device_with_the_guests_number() {
        let with =
            command_line_text(&GuestMachine { vsock: true, ..example_machine() }, Accelerator::Kvm, None);
        assert!(with.contains("vhost-vsock-pci,guest-cid=77"), "{with}");
    }

    #[test]
    fn kvm_is_taken_where_it_runs_code_and_refused_where_it_pretends() {
        let (fast, slow) = (KvmSpeed::Fast { nanos: 0.7 }, KvmSpeed::Slow { nanos: 1900.0 });
        assert_eq!(AcceleratorRequest::Best.choose_by_speed(&fast).unwrap().accelerator, Accelerator::Kvm);
        let tcg = AcceleratorRequest::Best.choose_by_speed(&slow).unwrap();
        assert_eq!(tcg.accelerator, Accelerator::Tcg);
        insta::assert_snapshot!(tcg.because, @"/dev/kvm opens, but interprets guests: a loop takes 1900 ns an iteration, where a processor needs about 1 ns");
        insta::assert_snapshot!(AcceleratorRequest::Kvm.choose_by_speed(&slow).unwrap_err(), @"KVM was requested, but /dev/kvm opens, but interprets guests: a loop takes 1900 ns an iteration, where a processor needs about 1 ns; choose tcg, or leave the choice to perflab");
        assert_eq!(AcceleratorRequest::Tcg.choose().unwrap().because, "it was requested");
    }

    #[test]
    fn a_loaded_host_is_given_more_time_but_not_for_ever() {
        use crate::boot::boot_time_limit;
        let seconds = |load| boot_time_limit(Accelerator::Tcg, load).as_secs();
        assert_eq!((seconds(0.0), seconds(1.0), seconds(500.0)), (60, 120, 600));
        assert!(boot_time_limit(Accelerator::Kvm, 0.0) < boot_time_limit(Accelerator::Tcg, 0.0));
    }

    #[test]
    fn a_consoles_last_words_cannot_steer_the_terminal() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("console");
        std::fs::write(&log, "one\ntwo \x1b]0;evil\x07\x1b[31mred\r\nthree\n").unwrap();
        let text = crate::boot::log_tail(&log, 2);
        assert!(
            text.starts_with("  two ") && text.ends_with("  three") && !text.contains('\x1b'),
            "{text:?}"
        );
        assert_eq!(crate::boot::log_tail(Path::new("/no/such/log"), 2), "  (nothing)");
    }
}
