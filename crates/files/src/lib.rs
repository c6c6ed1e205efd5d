//! Files of somebody else, opened with care: nothing is waited for, read for ever, or unpacked without end.
//!
//! | module | content |
//! |---|---|
//! | [`finite_file`] | opens and reads files that end; bounds what is unpacked |
//! | [`checksum`] | the SHA-256 of what is read |

pub mod checksum;
pub mod finite_file;

pub use checksum::sha256_hex;
pub use finite_file::{
    BoundedUnpacker, ENDLESS_KIND, is_live_kernel_folder, open_finite_file, read_finite_file, refuse_endless,
};
