//! Which machine, which source and which day: what stands above a page of figures.

use std::path::Path;
use std::process::Command;

/// A line for each of them.
pub(super) fn lines(root: &Path) -> Vec<String> {
    let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let asked = |program: &str, args: &[&str]| {
        let out = Command::new(program).args(args).current_dir(root).output();
        out.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()).unwrap_or_default()
    };
    let commit = asked("git", &["rev-parse", "--short=12", "HEAD"]);
    let changed = !asked("git", &["status", "--porcelain", "--untracked-files=no"]).is_empty();
    vec![
        format!("machine: {}", machine(&file("/proc/cpuinfo"), &file("/proc/meminfo"))),
        format!("kernel: Linux {}", file("/proc/sys/kernel/osrelease").trim()),
        format!(
            "commit: {commit}{}",
            if changed { ", with changes that are not committed" } else { "" }
        ),
        format!("compiler: {}", asked("rustc", &["--version"])),
        format!("date: {}", asked("date", &["-u", "+%Y-%m-%d %H:%M UTC"])),
    ]
}

/// From `/proc/cpuinfo` and `/proc/meminfo`; a virtual machine has the flag `hypervisor`.
fn machine(cpuinfo: &str, meminfo: &str) -> String {
    let value = |key: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim())
    };
    let cores = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    let model = value("model name").unwrap_or("a processor without a name");
    let flags = value("flags").unwrap_or_default();
    let virtual_ = if flags.split(' ').any(|flag| flag == "hypervisor") { ", virtual" } else { "" };
    let memory = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = memory.and_then(|text| text.trim().split(' ').next()?.parse::<f64>().ok());
    let memory = kib.map_or(String::new(), |kib| format!(", {:.1} GiB", kib / 1_048_576.0));
    format!("{cores} cores of {model}{virtual_}{memory}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_described_from_what_the_kernel_says() {
        let cpus = "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: fpu hypervisor lm\n\
                    \nprocessor\t: 1\nmodel name\t: A CPU\nflags\t\t: fpu hypervisor lm\n";
        let says = machine(cpus, "MemTotal:        8388608 kB\nMemFree: 1 kB\n");
        assert_eq!(says, "2 cores of A CPU, virtual, 8.0 GiB");
        assert_eq!(machine("", ""), "0 cores of a processor without a name");
    }
}
