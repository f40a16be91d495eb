//! `engine-bench kernels`: compiles every kernel for every target, without a device.

use std::path::Path;

use anyhow::{Result, bail};
use engine_cuda::kernels::SOURCES;
use engine_cuda::{CubinCache, compile, compiler_version};

/// What the compiler reports of one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Report {
    name: String,
    registers: u32,
    spill_bytes: u32,
}

fn number_before(line: &str, word: &str) -> Option<u32> {
    let before = line.split(word).next()?.trim_end();
    before.rsplit(' ').next()?.parse().ok()
}

/// Kernels in the compiler's log with what they take.
fn reports(log: &str) -> Vec<Report> {
    let mut reports: Vec<Report> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or_default().to_owned();
            reports.push(Report {
                name,
                ..Report::default()
            });
        } else if let Some(report) = reports.last_mut() {
            if let Some((_, rest)) = line.split_once("stack frame, ") {
                report.spill_bytes = number_before(rest, " bytes spill stores").unwrap_or(0);
            } else if let Some((_, rest)) = line.split_once("Used ") {
                report.registers = number_before(rest, " registers").unwrap_or(0);
            }
        }
    }
    reports
}

/// Compiles for each of `archs`; what is made is kept in `cache` for a machine with the same compiler.
pub(crate) fn run(archs: &str, verbose: bool, cache: Option<&Path>) -> Result<()> {
    let (major, minor) = compiler_version()?;
    println!("compiler {major}.{minor}");
    let mut count = 0;
    for arch in archs.split(',') {
        let mut of_arch = 0;
        for source in SOURCES {
            let compiled = compile(source, arch, true)?;
            if let Some(folder) = cache {
                let key = CubinCache::key(&source.full_text(), arch, (major, minor));
                let kept = CubinCache::new(Some(folder.to_owned()));
                kept.get_or_compile(key, || Ok(compiled.cubin.clone()))?;
            }
            let found = reports(&compiled.log);
            if found.is_empty() {
                bail!("{}.cu gives no kernel for {arch}", source.name);
            }
            of_arch += found.len();
            for report in &found {
                if verbose || report.spill_bytes > 0 {
                    println!(
                        "  {arch} {:<28} {:>3} registers, {} bytes spilled",
                        report.name, report.registers, report.spill_bytes
                    );
                }
            }
        }
        println!("{arch}: {of_arch} kernels of {} sources", SOURCES.len());
        count += of_arch;
    }
    println!("{count} kernels compiled");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compilers_report_is_read() {
        let log = "ptxas info    : 0 bytes gmem\n\
            ptxas info    : Compiling entry function 'one' for 'sm_90a'\n\
            ptxas         .     16 bytes stack frame, 36 bytes spill stores, 20 bytes spill loads\n\
            ptxas info    : Used 80 registers, used 1 barriers\n\
            ptxas info    : Compiling entry function 'two' for 'sm_90a'\n\
            ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
            ptxas info    : Used 9 registers, used 0 barriers\n";
        let read: Vec<(String, u32, u32)> = reports(log)
            .into_iter()
            .map(|one| (one.name, one.registers, one.spill_bytes))
            .collect();
        assert_eq!(read, [("one".to_owned(), 80, 36), ("two".to_owned(), 9, 0)]);
        assert!(reports("").is_empty());
    }
}
