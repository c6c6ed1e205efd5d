//! The rows of `docs/peers.md`: what perflab and a peer both do. A new one is a row here, and nothing else.
//!
//! Commands run in a folder of the row, with the programs of the workshop in front of the search path; `$REPOSITORY` is the
//! sources of perflab. Those without a shell's characters are started without one.

use crate::peers::peer_source::PeerSource;

/// Pairs of what takes less than ten seconds.
const MANY: u32 = 20;
/// Pairs of what takes longer.
const SOME: u32 = 10;
/// Pairs of what takes its time by the clock: the fewest that give an interval, and one to spare.
const FEW: u32 = 7;

/// Which times are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerClock {
    /// by the clock and by the processor
    Both,
    /// by the processor: both end by the clock
    Processor,
}

/// The same work by perflab and by a peer.
#[derive(Debug, Clone, Copy)]
pub struct PeerRow {
    /// what `--only` calls it
    pub name: &'static str,
    /// what both do
    pub work: &'static str,
    pub peer: &'static str,
    /// what prints the peer's version in its first line
    pub version: &'static str,
    pub sources: &'static [PeerSource],
    /// makes what both read, once
    pub prepare: &'static str,
    /// before each command, not timed
    pub before_each: &'static str,
    pub perflab: &'static str,
    pub other: &'static str,
    pub clock: PeerClock,
    pub pairs: u32,
}

const ROW: PeerRow = PeerRow {
    name: "",
    work: "",
    peer: "",
    version: "",
    sources: &[],
    prepare: "",
    before_each: "",
    perflab: "",
    other: "",
    clock: PeerClock::Both,
    pairs: MANY,
};

const HYPERFINE: PeerRow = PeerRow {
    peer: "hyperfine",
    version: "hyperfine --version",
    sources: &[PeerSource::Debian { package: "hyperfine", program: "hyperfine" }],
    ..ROW
};

const PERF: PeerSource = PeerSource::Debian { package: "linux-perf", program: "perf" };
const SET_PROGRAM: PeerSource =
    PeerSource::Folder { path: "crates/slablist/peers", program: "slablist-peers" };
const CXX_SETS: PeerSource = PeerSource::Cxx {
    file: "crates/slablist/peers/peers.cc",
    links: &["-lJudy", "-labsl_raw_hash_set", "-labsl_throw_delegate"],
    program: "peers-cc",
};

/// 1,416,100 random keys into an ordered set, each looked up, twenty ordered folds.
const SETS: PeerRow = PeerRow {
    work: "a set of 1,416,100 random keys: insert, find, 20 ordered folds",
    perflab: "slablist-peers slablist 1416100 random",
    sources: &[SET_PROGRAM],
    pairs: SOME,
    ..ROW
};

/// Operations of the study `slablist-insertion`, recorded once; the points of them for programs that read points.
const DOTS: PeerRow = PeerRow {
    work: "1,416,100 operations as dots, from a file to a PNG",
    prepare: "OPTRACE_FILE=$PWD/t.optrace perflab load drv_rand_ops 1416100 intsrt\n\
              perflab import t.optrace --label t --quiet\n\
              python3 $REPOSITORY/xtask/peers/inputs.py points archive/runs/* points",
    perflab: "perflab trace plot t -o perflab.png",
    sources: &[PeerSource::Python { package: "pyarrow", module: "pyarrow" }],
    pairs: SOME,
    ..ROW
};

/// All rows, by what perflab is used for.
pub const PEER_ROWS: &[PeerRow] = &[
    PeerRow {
        name: "start",
        work: "`--help`",
        perflab: "perflab --help",
        other: "hyperfine --help",
        ..HYPERFINE
    },
    PeerRow {
        name: "bench",
        work: "300 runs of /bin/true",
        before_each: "rm -rf archive",
        perflab: "perflab bench --quiet -N -r 300 -w 0 /bin/true",
        other: "hyperfine --style none -N -r 300 -w 0 /bin/true",
        ..HYPERFINE
    },
    PeerRow {
        name: "counters",
        work: "300 runs of /bin/true with four counters of the kernel",
        peer: "perf stat",
        version: "perf --version",
        sources: &[PERF],
        before_each: "rm -rf archive",
        perflab: "perflab bench --quiet -N -r 300 -w 0 --counters task-clock,context-switches,cpu-migrations,page-faults /bin/true",
        other: "perf stat -r 300 -e task-clock,context-switches,cpu-migrations,page-faults /bin/true",
        ..ROW
    },
    PeerRow {
        name: "compare-go",
        work: "two outputs of `go test`, 1,000 benchmarks x 10, to a table",
        peer: "benchstat",
        version: "go version -m $(command -v benchstat) | awk '$1 == \"mod\" { print \"benchstat\", $3 }'",
        sources: &[PeerSource::Go { path: "golang.org/x/perf/cmd/benchstat", program: "benchstat" }],
        prepare: "python3 $REPOSITORY/xtask/peers/inputs.py go-benchmarks old.txt new.txt",
        perflab: "perflab compare old.txt new.txt",
        other: "benchstat old.txt new.txt",
        ..ROW
    },
    PeerRow {
        name: "compare-scipy",
        work: "two results of Google Benchmark, 1,000 cases x 30, to intervals and corrected p-values",
        peer: "a script with SciPy",
        version: "python3 -c 'import scipy; print(\"SciPy\", scipy.__version__)'",
        sources: &[PeerSource::Python { package: "scipy", module: "scipy" }],
        prepare: "python3 $REPOSITORY/xtask/peers/inputs.py google-benchmarks old.json new.json",
        perflab: "perflab compare old.json new.json",
        other: "python3 $REPOSITORY/xtask/peers/compare_scipy.py old.json new.json",
        pairs: SOME,
        ..ROW
    },
    PeerRow {
        name: "import-slab",
        work: "47,423 rows of slab logs of lkp-tests, to Parquet",
        peer: "a script with pandas",
        version: "python3 -c 'import pandas; print(\"pandas\", pandas.__version__)'",
        sources: &[
            PeerSource::Python { package: "pandas", module: "pandas" },
            PeerSource::Python { package: "pyarrow", module: "pyarrow" },
        ],
        prepare: "python3 $REPOSITORY/xtask/peers/inputs.py slab-logs logs",
        before_each: "rm -rf archive",
        perflab: "perflab import --quiet logs",
        other: "python3 $REPOSITORY/crates/import/benches/import_pandas.py logs 1",
        pairs: SOME,
        ..ROW
    },
    PeerRow {
        name: "perf-data",
        work: "a perf.data of hackbench, to folded stacks",
        peer: "perf script and inferno",
        version: "inferno-collapse-perf --help 2>&1 | head -1",
        sources: &[
            PERF,
            PeerSource::Debian { package: "rt-tests", program: "hackbench" },
            PeerSource::Crates { package: "inferno", program: "inferno-collapse-perf" },
        ],
        prepare: "perf record -q -F 4999 -a -g -m 4096 -o perf.data -- hackbench -g 10 -l 1000",
        before_each: "rm -rf archive",
        perflab: "perflab flame import --quiet perf.data && perflab flame export --to folded -o perflab.folded",
        other: "perf script -i perf.data 2>/dev/null | inferno-collapse-perf > inferno.folded",
        pairs: SOME,
        ..ROW
    },
    PeerRow {
        name: "profile",
        work: "stacks of the whole machine at 999 Hz for 4 s, recorded",
        peer: "perf record",
        version: "perf --version",
        sources: &[PERF],
        before_each: "rm -rf archive perf.data",
        perflab: "perflab flame record --quiet -F 999 --system --for 4s",
        other: "perf record -q -F 999 -a -g -o perf.data -- sleep 4",
        clock: PeerClock::Processor,
        pairs: FEW,
        ..ROW
    },
    PeerRow {
        name: "slab-top",
        work: "slab caches, once",
        peer: "slabtop",
        version: "slabtop --version",
        sources: &[PeerSource::Debian { package: "procps", program: "slabtop" }],
        perflab: "perflab slab top",
        other: "slabtop -o",
        ..ROW
    },
    PeerRow {
        name: "watch-1s",
        work: "the machine once a second for 10 s, stored",
        peer: "sadc",
        version: "sadc -V | head -n 1",
        sources: &[PeerSource::Debian { package: "sysstat", program: "/usr/lib/sysstat/sadc" }],
        before_each: "rm -rf archive sa",
        perflab: "perflab watch --quiet --quiet-time 0s --every 1s --duration 10s",
        other: "sadc -S ALL 1 11 sa",
        clock: PeerClock::Processor,
        pairs: FEW,
        ..ROW
    },
    PeerRow {
        name: "watch-100ms",
        work: "the machine ten times a second for 10 s, stored",
        peer: "collectl",
        version: "collectl --version",
        sources: &[PeerSource::Debian { package: "collectl", program: "collectl" }],
        before_each: "rm -rf archive collectl-*",
        perflab: "perflab watch --quiet --quiet-time 0s --duration 10s",
        other: "collectl -scdmnCDMNY -i 0.1:0.1 -c 100 -f collectl",
        clock: PeerClock::Processor,
        pairs: FEW,
        ..ROW
    },
    PeerRow {
        name: "dots-gnuplot",
        peer: "gnuplot, terminal `pngcairo`",
        version: "gnuplot --version",
        sources: &[
            PeerSource::Python { package: "pyarrow", module: "pyarrow" },
            PeerSource::Debian { package: "gnuplot-nox", program: "gnuplot" },
        ],
        other: "gnuplot -e \"points='points'; picture='peer.png'; terminal='pngcairo'\" \
                $REPOSITORY/crates/present/benches/dots/peer.gnuplot",
        ..DOTS
    },
    PeerRow {
        name: "dots-libgd",
        peer: "gnuplot, terminal `png`",
        version: "gnuplot --version",
        sources: &[
            PeerSource::Python { package: "pyarrow", module: "pyarrow" },
            PeerSource::Debian { package: "gnuplot-nox", program: "gnuplot" },
        ],
        other: "gnuplot -e \"points='points'; picture='peer.png'; terminal='png'\" \
                $REPOSITORY/crates/present/benches/dots/peer.gnuplot",
        ..DOTS
    },
    PeerRow {
        name: "dots-datashader",
        peer: "datashader, its imports and numba's compiler included",
        version: "python3 -c 'import datashader; print(\"datashader\", datashader.__version__)'",
        sources: &[
            PeerSource::Python { package: "pyarrow", module: "pyarrow" },
            PeerSource::Python { package: "datashader", module: "datashader" },
            PeerSource::Python { package: "pillow", module: "PIL" },
        ],
        other: "echo | python3 $REPOSITORY/crates/present/benches/dots/peer_datashader.py points peer.png",
        ..DOTS
    },
    PeerRow {
        name: "set-btreeset",
        peer: "std's BTreeSet",
        version: "rustc --version",
        other: "slablist-peers BTreeSet 1416100 random",
        ..SETS
    },
    PeerRow {
        name: "set-indexset",
        peer: "indexset",
        version: "grep -A 1 'name = \"indexset\"' $REPOSITORY/crates/slablist/peers/Cargo.lock | sed -n 's/version = \"\\(.*\\)\"/indexset \\1/p'",
        other: "slablist-peers indexset 1416100 random",
        ..SETS
    },
    PeerRow {
        name: "set-sweep-bptree",
        peer: "sweep-bptree",
        version: "grep -A 1 'name = \"sweep-bptree\"' $REPOSITORY/crates/slablist/peers/Cargo.lock | sed -n 's/version = \"\\(.*\\)\"/sweep-bptree \\1/p'",
        other: "slablist-peers sweep-bptree 1416100 random",
        ..SETS
    },
    PeerRow {
        name: "set-absl",
        peer: "absl::btree_set",
        version: "dpkg-query -W -f 'libabsl-dev ${Version}\\n' libabsl-dev",
        sources: &[
            SET_PROGRAM,
            PeerSource::Debian { package: "libabsl-dev", program: "/usr/include/absl/container/btree_set.h" },
            PeerSource::Debian { package: "libjudy-dev", program: "/usr/include/Judy.h" },
            CXX_SETS,
        ],
        other: "peers-cc absl 1416100 random",
        ..SETS
    },
    PeerRow {
        name: "set-judy",
        peer: "Judy",
        version: "dpkg-query -W -f 'libjudy-dev ${Version}\\n' libjudy-dev",
        sources: &[
            SET_PROGRAM,
            PeerSource::Debian { package: "libabsl-dev", program: "/usr/include/absl/container/btree_set.h" },
            PeerSource::Debian { package: "libjudy-dev", program: "/usr/include/Judy.h" },
            CXX_SETS,
        ],
        other: "peers-cc Judy 1416100 random",
        ..SETS
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_says_what_it_measures_against_whom() {
        let names: BTreeSet<&str> = PEER_ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), PEER_ROWS.len());
        for row in PEER_ROWS {
            let texts = [row.name, row.work, row.peer, row.version, row.perflab, row.other];
            assert!(texts.iter().all(|text| !text.is_empty()), "{row:?}");
            assert!(!row.sources.is_empty() && row.pairs >= FEW, "{row:?}");
            // The cells of a table.
            assert!(![row.name, row.work, row.peer].iter().any(|text| text.contains('|')), "{row:?}");
        }
    }
}
