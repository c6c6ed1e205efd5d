use std::path::Path;

use perflab_model::Bytes;
use perflab_observe::KvmSpeed;

use super::command_line::{GuestPaths, RootShare, qemu_arguments};
use super::*;
use crate::kernel::KernelImage;

fn example_machine() -> GuestMachine {
    let kernel =
        KernelImage { name: "k".into(), image: "/k/bzImage".into(), release: "6.1.0".into(), modules: None };
    GuestMachine::new("guest1", kernel)
}

fn command_line_text(machine: &GuestMachine, accelerator: Accelerator, sharing: Option<RootShare>) -> String {
    let places = GuestPaths {
        private: Path::new("/p"),
        console: Path::new("/logs/a,b.console.log"),
        cid: machine.vsock.then_some(77),
    };
    let words = qemu_arguments(machine, accelerator, sharing, &places);
    words.join(" ").replace(" -", "\n-")
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
    let with = command_line_text(&GuestMachine { vsock: true, ..example_machine() }, Accelerator::Kvm, None);
    assert!(with.contains("vhost-vsock-pci,guest-cid=77"), "{with}");
}

#[test]
fn kvm_is_taken_where_it_runs_code_and_refused_where_it_pretends() {
    let (fast, slow) = (KvmSpeed::Fast { nanos: 0.7 }, KvmSpeed::Slow { nanos: 1900.0 });
    assert_eq!(AcceleratorRequest::Best.choose_by_speed(&fast).unwrap().accelerator, Accelerator::Kvm);
    let tcg = AcceleratorRequest::Best.choose_by_speed(&slow).unwrap();
    assert_eq!(tcg.accelerator, Accelerator::Tcg);
    assert!(tcg.because.contains("1900 ns"), "{}", tcg.because);
    let refused = AcceleratorRequest::Kvm.choose_by_speed(&slow).unwrap_err().to_string();
    assert!(refused.contains("interprets guests"), "{refused}");
    assert_eq!(AcceleratorRequest::Tcg.choose().unwrap().because, "it was asked for");
}

#[test]
fn a_loaded_host_is_given_more_time_but_not_for_ever() {
    use super::boot::boot_time_limit;
    let seconds = |load| boot_time_limit(Accelerator::Tcg, load).as_secs();
    assert_eq!((seconds(0.0), seconds(1.0), seconds(500.0)), (60, 120, 600));
    assert!(boot_time_limit(Accelerator::Kvm, 0.0) < boot_time_limit(Accelerator::Tcg, 0.0));
}

#[test]
fn a_consoles_last_words_cannot_steer_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("console");
    std::fs::write(&log, "one\ntwo \x1b]0;evil\x07\x1b[31mred\r\nthree\n").unwrap();
    let words = super::boot::log_tail(&log, 2);
    assert!(
        words.starts_with("  two ") && words.ends_with("  three") && !words.contains('\x1b'),
        "{words:?}"
    );
    assert_eq!(super::boot::log_tail(Path::new("/no/such/log"), 2), "  (nothing)");
}
