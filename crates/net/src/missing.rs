//! What to do about a part that the kernel lacks: the package that brings it, or the option that builds it in.

use std::fs;

/// That this kernel has no `what`, which these modules have, and what brings it.
pub fn of(what: &str, modules: &[impl AsRef<str>]) -> String {
    let modules: Vec<&str> = modules.iter().map(AsRef::as_ref).collect();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let remedy = remedy(&modules, release, &system);
    format!("this kernel ({release}) has no {what}: {remedy}")
}

/// The package that has the modules, by the system's own name for itself (os-release(5)).
fn remedy(modules: &[&str], release: &str, system: &str) -> String {
    let is = |name: &str| {
        system
            .lines()
            .filter_map(|line| line.strip_prefix("ID=").or(line.strip_prefix("ID_LIKE=")))
            .any(|names| {
                let mut names = names.trim_matches('"').split_whitespace();
                names.any(|id| id == name)
            })
    };
    let (ubuntu, fedora) = (
        format!("linux-modules-extra-{release}"),
        format!("kernel-modules-extra-{release}"),
    );
    let options: Vec<_> = modules.iter().map(|module| option(module)).collect();
    let package = if is("openwrt") {
        let packages: Vec<_> = modules.iter().map(|module| openwrt(module)).collect();
        return format!("opkg install {}", packages.join(" "));
    } else if is("ubuntu") {
        format!("install {ubuntu}")
    } else if is("fedora") || is("rhel") {
        format!("install {fedora}")
    } else if is("debian") {
        format!(
            "Debian's own kernels bring it (apt install linux-image-amd64, and boot that kernel); on another kernel it must be built in ({})",
            options.join(", ")
        )
    } else {
        format!(
            "install the modules of your kernel (Ubuntu: {ubuntu}; Fedora: {fedora}; Debian's kernels bring it), or build it with {}",
            options.join(", ")
        )
    };
    format!("{package}, then modprobe {}", modules.join(" "))
}

/// The option that a module is built by (`net/sched/Kconfig`, `drivers/net/Kconfig`).
fn option(module: &str) -> String {
    let name = module.to_uppercase();
    match name.split_once('_') {
        Some(("SCH" | "CLS" | "ACT", _)) => format!("CONFIG_NET_{name}"),
        _ => format!("CONFIG_{name}"),
    }
}

/// The package of a module on OpenWrt (`package/kernel/linux/modules/netsupport.mk`).
fn openwrt(module: &str) -> &'static str {
    match module {
        "sch_cake" => "kmod-sched-cake",
        "ifb" => "kmod-ifb",
        "cls_flow" | "cls_u32" | "sch_htb" | "sch_fq_codel" | "sch_tbf" | "cls_matchall"
        | "act_mirred" => "kmod-sched-core",
        _ => "kmod-sched",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_has_its_package() {
        let of = |system: &str| remedy(&["sch_netem"], "6.1.0-1", system);
        assert!(
            of("NAME=\"Ubuntu\"\nID=ubuntu\nID_LIKE=debian\n")
                .starts_with("install linux-modules-extra-6.1.0-1,")
        );
        assert!(of("ID=fedora\n").starts_with("install kernel-modules-extra-6.1.0-1,"));
        assert!(
            of("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n").contains("kernel-modules-extra")
        );
        assert!(of("ID=debian\n").contains("linux-image-amd64"));
        assert!(of("ID=arch\n").contains("Ubuntu: linux-modules-extra"));
    }

    #[test]
    fn each_module_has_its_option() {
        let of = |system: &str| remedy(&["sch_cake", "ifb"], "6.1.0-1", system);
        assert!(of("ID=arch\n").contains("CONFIG_NET_SCH_CAKE, CONFIG_IFB"));
        assert!(of("ID=debian\n").ends_with("modprobe sch_cake ifb"));
        assert_eq!(
            of("ID=\"openwrt\"\n"),
            "opkg install kmod-sched-cake kmod-ifb"
        );
    }
}
