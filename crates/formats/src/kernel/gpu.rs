//! What processes use of graphics processors, from the `fdinfo` of their open devices
//! (Documentation/gpu/drm-usage-stats.rst).

use perflab_model::{CellRow, DeclaredColumn, RowSchema, TableCell};

use crate::column::parse_integer_cell;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};

/// The processes.
pub const GPU: KernelFile = KernelFile {
    name: GpuRow::NAME,
    source: "/proc",
    about: "graphics processors by process: time of each engine, memory of each kind",
    needs: "root for processes of others",
    without: "",
    provided_by: "CONFIG_DRM, with a driver that counts (amdgpu, i915, xe, msm, panfrost, …)",
    columns: GpuRow::COLUMNS,
    layout: KernelFileLayout::Tree,
};

/// A row a process, device and part of it.
#[derive(Debug, Clone, Copy)]
pub struct GpuRow;

impl RowSchema for GpuRow {
    const NAME: &'static str = "gpu";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("pid"),
        DeclaredColumn::key("comm"),
        DeclaredColumn::key("device"),
        DeclaredColumn::key("part"),
        DeclaredColumn::counter("busy_ns", "ns"),
        DeclaredColumn::counter("cycles", "cycles"),
        DeclaredColumn::gauge("memory", "bytes"),
    ];
}

/// What one `fdinfo` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrmClient<'t> {
    /// `0000:03:00.0`, else the driver
    pub device: &'t str,
    /// which client of the device; several descriptors may be of one
    pub client: &'t str,
}

/// The client of an `fdinfo`; nothing of a descriptor that is not of a graphics device, or that counts nothing.
pub fn parse_drm_client(text: &str) -> Option<DrmClient<'_>> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let device = field("drm-pdev:").or_else(|| field("drm-driver:"))?;
    Some(DrmClient { device, client: field("drm-client-id:")? })
}

/// Appends a row for each engine and each kind of memory.
pub fn push_drm_rows(pid: u32, comm: &str, client: &DrmClient<'_>, text: &str, rows: &mut Vec<CellRow>) {
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let mut words = rest.split_ascii_whitespace();
        let (Some(number), unit) = (words.next(), words.next()) else { continue };
        let (part, column) = if let Some(engine) = name.strip_prefix("drm-engine-") {
            // `drm-engine-capacity-…` says how many there are.
            if engine.starts_with("capacity-") {
                continue;
            }
            (format!("engine-{engine}"), 4)
        } else if let Some(engine) = name.strip_prefix("drm-cycles-") {
            (format!("engine-{engine}"), 5)
        } else if let Some(region) =
            name.strip_prefix("drm-resident-").or_else(|| name.strip_prefix("drm-memory-"))
        {
            (format!("memory-{region}"), 6)
        } else {
            continue;
        };
        let scale = match unit {
            Some("KiB") => 1 << 10,
            Some("MiB") => 1 << 20,
            _ => 1,
        };
        let Some(cell) = parse_integer_cell(number, scale) else { continue };
        let keys = [pid.to_string(), comm.to_owned(), client.device.to_owned(), part];
        let keys: Vec<TableCell> = keys.into_iter().map(TableCell::Text).collect();
        let known = rows.iter_mut().find(|row| row.starts_with(&keys));
        match known {
            Some(row) => {
                if let Some(found) = row.get_mut(column) {
                    *found = match (&*found, cell) {
                        (TableCell::Int(sum), TableCell::Int(more)) => {
                            sum.checked_add(more).map_or(TableCell::Missing, TableCell::Int)
                        }
                        (_, cell) => cell,
                    };
                }
            }
            None => {
                let mut row = GpuRow::missing_row();
                row.iter_mut().zip(keys).for_each(|(cell, key)| *cell = key);
                row.iter_mut().skip(column).take(1).for_each(|found| *found = cell.clone());
                rows.push(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_and_memory_have_rows() {
        let text = "pos: 0\ndrm-driver: i915\ndrm-pdev: 0000:00:02.0\ndrm-client-id: 7\ndrm-engine-render: 9288864723 ns\n\
                    drm-engine-capacity-video: 2\ndrm-resident-system0: 16 KiB\ndrm-cycles-render: 5\n";
        let client = parse_drm_client(text).unwrap();
        assert_eq!(client, DrmClient { device: "0000:00:02.0", client: "7" });
        let mut rows = Vec::new();
        push_drm_rows(12, "glxgears", &client, text, &mut rows);
        push_drm_rows(12, "glxgears", &client, text, &mut rows);
        assert_eq!(rows.len(), 2);
        assert_eq!(
            rows[0][3..6],
            [TableCell::Text("engine-render".into()), TableCell::Int(18_577_729_446), TableCell::Int(10)]
        );
        assert_eq!(rows[1][6], TableCell::Int(32 << 10));
        assert_eq!(parse_drm_client("pos: 0\nflags: 02\n"), None);
    }
}
