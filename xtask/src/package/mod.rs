//! `cargo xtask package`: perflab as a Debian package, an RPM package and an archive that is unpacked anywhere, with what every
//! package has: manual pages, completions, units of systemd, the licences of all that is inside, and a bill of materials; and as a
//! wheel, the Python package with the program.
//!
//! The same program gives the same bytes: no time but that of the commit, no name of this machine, everything in one order. `dpkg-deb`,
//! `rpmbuild` and `wheel` write their own formats, which nobody else knows as well.

mod bill_of_materials;
mod checksums;
mod contents;
mod debian_package;
mod linked_libraries;
mod package_version;
mod python_package;
mod python_wheel;
pub mod release_packages;
mod rpm_package;
mod shipped_crates;
mod tarball;
mod third_party;
pub mod trial;
