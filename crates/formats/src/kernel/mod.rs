//! Texts of the kernel, one file each: its columns with unit and kind, its parser, and when its rows cannot be true.

pub mod buddyinfo;
pub mod diskstats;
pub mod file_system_counters;
pub mod kernel_file;
pub mod kernel_folder;
pub mod kernel_log;
pub mod kvm_stats;
pub mod loadavg;
pub mod meminfo;
pub mod memory_features;
pub mod mountinfo;
pub mod net_dev;
pub mod net_statistics;
pub mod node;
pub mod pagetypeinfo;
pub mod pressure;
pub mod process;
pub mod registry;
pub mod schedstat;
pub mod sensors;
pub mod slab_counts;
pub mod slabinfo;
pub mod small_values;
pub mod softnet;
pub mod stat;
pub mod swaps;
pub mod sysfs_slab;
pub mod vmstat;
pub mod zoneinfo;
pub mod zram;

pub use kernel_file::{KernelFile, KernelFileLayout, KernelFileParser};
pub use registry::{KERNEL_FILES, find_kernel_file, open_log_parser, recognise_kernel_file};
