//! Namespaces: machines within the machine (namespaces(7)).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::thread;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

/// The namespaces that make a node: its network, its mounts and its host name. Unnamed: the
/// kernel takes them away with the last process and descriptor that holds them.
#[derive(Debug)]
pub struct Namespaces {
    net: OwnedFd,
    mnt: OwnedFd,
    uts: OwnedFd,
}

impl Namespaces {
    /// Makes a node and runs `furnish` inside it, on a thread of its own.
    ///
    /// # Errors
    /// When the kernel refuses new namespaces, or `furnish` fails.
    pub fn create<E: From<io::Error> + Send>(
        hostname: &str,
        furnish: impl FnOnce() -> Result<(), E> + Send,
    ) -> Result<Self, E> {
        on_own_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS)
                .map_err(io::Error::from)?;
            make_mounts_private()?;
            nix::unistd::sethostname(hostname).map_err(io::Error::from)?;
            furnish()?;
            let open = |name: &str| File::open(Path::new("/proc/thread-self/ns").join(name));
            Ok(Self {
                net: open("net")?.into(),
                mnt: open("mnt")?.into(),
                uts: open("uts")?.into(),
            })
        })
    }

    /// Runs `work` in this node's network, on a thread of its own that ends with it.
    ///
    /// Only the network changes: the thread sees the files of the caller.
    ///
    /// # Errors
    /// When the namespace cannot be entered, or `work` fails.
    pub fn in_network<T: Send, E: From<io::Error> + Send>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send,
    ) -> Result<T, E> {
        on_own_thread(|| {
            setns(&self.net, CloneFlags::CLONE_NEWNET).map_err(io::Error::from)?;
            work()
        })
    }

    /// Moves the calling process into this node for good. Async-signal-safe, so that it can run
    /// between fork and exec.
    pub(crate) fn enter(&self) -> io::Result<()> {
        setns(&self.net, CloneFlags::CLONE_NEWNET)?;
        setns(&self.uts, CloneFlags::CLONE_NEWUTS)?;
        setns(&self.mnt, CloneFlags::CLONE_NEWNS)?;
        Ok(())
    }

    /// Descriptors by which another process can get in ([`enter_node`]).
    ///
    /// # Errors
    /// When /proc does not show this process.
    pub fn doors(&self) -> io::Result<Doors<'_>> {
        let own = |name: &str| File::open(Path::new("/proc/self/ns").join(name));
        Ok(Doors {
            user: own("user")?.into(),
            pid: own("pid")?.into(),
            node: self,
        })
    }

    /// The network namespace, for the kernel interfaces that take one by descriptor.
    pub fn net(&self) -> &OwnedFd {
        &self.net
    }
}

/// How many descriptors lead into a node.
pub const DOORS: usize = 5;

/// What leads into a node from outside.
#[derive(Debug)]
pub struct Doors<'a> {
    user: OwnedFd,
    pid: OwnedFd,
    node: &'a Namespaces,
}

impl Doors<'_> {
    /// As [`enter_node`] wants them.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; DOORS] {
        let node = self.node;
        [&self.user, &self.pid, &node.net, &node.mnt, &node.uts].map(AsFd::as_fd)
    }
}

/// Moves the calling process into the user namespace of a node, where it is another, and its
/// children from now on into the node's PID namespace. The rest of the node is left to each child.
///
/// Only for a process with a single thread, and it can start none afterwards.
///
/// # Errors
/// When the descriptors are not from [`Doors`], or the kernel refuses.
pub fn enter_node(doors: [OwnedFd; DOORS]) -> io::Result<Namespaces> {
    let [user, pid, net, mnt, uts] = doors;
    // The kernel refuses to enter the user namespace that one is in.
    let there = nix::sys::stat::fstat(&user)?;
    let here = nix::sys::stat::stat("/proc/self/ns/user")?;
    if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino) {
        setns(&user, CloneFlags::CLONE_NEWUSER)?;
    }
    setns(&pid, CloneFlags::CLONE_NEWPID)?;
    Ok(Namespaces { net, mnt, uts })
}

/// Keeps mounts made from here on from spreading to other namespaces. Only for a thread that has
/// just left the machine's mount namespace.
pub(crate) fn make_mounts_private() -> io::Result<()> {
    Ok(mount(
        None::<&str>,
        "/",
        None::<&str>,
        MsFlags::MS_REC | MsFlags::MS_PRIVATE,
        None::<&str>,
    )?)
}

/// Mounts a file system of the kernel's own (`proc`, `sysfs`, `tmpfs`).
///
/// # Errors
/// Errors of the kernel, which in a user namespace refuses to show what is hidden outside it
/// (`mount_too_revealing` in `fs/namespace.c`).
pub fn mount_kernel_fs(kind: &str, at: &Path) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some(kind), at, Some(kind), flags, None::<&str>).map_err(|e| {
        let why = match e {
            nix::errno::Errno::EPERM => {
                " (parts of it are hidden on this system, as in a container: run it as root outside)"
            }
            _ => "",
        };
        let e = io::Error::from(e);
        let at = at.display();
        io::Error::new(e.kind(), format!("cannot mount {kind} at {at}: {e}{why}"))
    })
}

/// Mounts one of the kernel's file systems that have devices in them (`devtmpfs`, `devpts`).
///
/// # Errors
/// Errors of the kernel.
pub fn mount_devices(kind: &str, at: &Path) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    Ok(mount(Some(kind), at, Some(kind), flags, None::<&str>)?)
}

/// Shows `from` in the place of `at`.
///
/// # Errors
/// Errors of the kernel.
pub fn bind_mount(from: &Path, at: &Path) -> io::Result<()> {
    Ok(mount(
        Some(from),
        at,
        None::<&str>,
        MsFlags::MS_BIND,
        None::<&str>,
    )?)
}

/// The same with all that is mounted below `from`: without it a user namespace, in which those mounts are
/// locked together, refuses.
///
/// # Errors
/// Errors of the kernel.
pub fn bind_mount_tree(from: &Path, at: &Path) -> io::Result<()> {
    Ok(mount(
        Some(from),
        at,
        None::<&str>,
        MsFlags::MS_BIND | MsFlags::MS_REC,
        None::<&str>,
    )?)
}

/// Takes a mount away from the tree; what still uses it keeps it.
///
/// # Errors
/// Errors of the kernel.
pub fn detach_mount(at: &Path) -> io::Result<()> {
    Ok(umount2(at, MntFlags::MNT_DETACH)?)
}

/// A thread of its own, because namespaces belong to threads and cannot always be left again.
fn on_own_thread<T: Send, E: From<io::Error> + Send>(
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E> {
    thread::scope(|scope| {
        thread::Builder::new()
            .name("namespace".into())
            .spawn_scoped(scope, work)?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
