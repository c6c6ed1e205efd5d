//! A trace as a state file of preload's, in which the application follows `sleep` for certain.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use perflab_model::io_trace::PAGE;
use perflab_prefetch::ProgramTraces;

/// Only what is read counts: no scan of processes, half of the free memory, sorted by place, 30 readers at once, as shipped.
const SETTINGS: &str = "[model]\ncycle = 20\nusecorrelation = false\nmemtotal = -10\nmemfree = 100\nmemcached = 0\n\
    [system]\ndoscan = false\ndopredict = true\nautosave = 36000\nmapprefix = /\nexeprefix = /\nmaxprocs = 30\n\
    sortstrategy = 3\n";

/// Starts what the application follows, and preload; waits until it has read; ends both.
const SCRIPT: &str = "#!/bin/sh\ncd \"$1\"\nrm -f log\nsleep 1000 & followed=$!\n\
    \"$2\" --foreground --verbose 9 --conffile settings --statefile state --logfile log & preload=$!\n\
    until grep -q 'readahead [0-9]* files\\|nothing to readahead' log 2>/dev/null; do\n\
    kill -0 $preload || { kill $followed; cat log; exit 1; }; sleep 0.01; done\n\
    kill -9 $preload $followed\ngrep readahead log\n! grep -q 'nothing to' log\n";

/// The command that reads the trace's pages ahead; none where nobody says where preload is.
pub fn preload_command(home: &Path, known: &ProgramTraces) -> anyhow::Result<Option<String>> {
    let Some(program) = std::env::var_os("PRELOAD") else {
        eprintln!("preload is left out: PRELOAD does not say where it is");
        return Ok(None);
    };
    let place = home.join("preload");
    std::fs::create_dir(&place)?;
    std::fs::write(place.join("settings"), SETTINGS)?;
    std::fs::write(place.join("state"), preload_state(known)?)?;
    std::fs::write(place.join("read"), SCRIPT)?;
    Ok(Some(format!("sh {0}/read {0} {1}", place.display(), program.display())))
}

fn preload_state(known: &ProgramTraces) -> anyhow::Result<String> {
    let mut state = String::from("PRELOAD\t0.6.4\t1000\n");
    let mut maps = 0;
    for file in &known.starts.last().context("no start is known")?.files {
        let name = file_uri(&file.path);
        for (first, count) in file.pages.iter() {
            maps += 1;
            writeln!(state, "MAP\t{maps}\t1000\t{}\t{}\t-1\t{name}", first * PAGE, count * PAGE)?;
        }
    }
    let sleep = std::fs::canonicalize("/usr/bin/sleep")?;
    for (number, program) in [&*sleep.to_string_lossy(), &*known.program].into_iter().enumerate() {
        writeln!(state, "EXE\t{}\t1000\t1000\t-1\t{}", number + 1, file_uri(program))?;
    }
    for map in 1..=maps {
        writeln!(state, "EXEMAP\t2\t{map}\t1")?;
    }
    // Times to leave each of the four states, and from each the changes to each: from "only the first runs" to "both run".
    Ok(state + "MARKOV\t1\t2\t1000\t2\t2\t2\t2\t1\t0\t0\t0\t0\t100\t0\t100\t0\t0\t0\t0\t0\t0\t0\t0\n")
}

/// As a URI.
fn file_uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let escaped = path.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    format!("file://{}", escaped.collect::<String>())
}
