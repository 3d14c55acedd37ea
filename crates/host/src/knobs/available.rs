//! Whether what a knob is set to by name can be had: a congestion control, a queueing discipline.

/// Whether a host could have something by that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Available {
    /// It is there, or is loaded when it is set.
    Yes,
    /// The host does not report it.
    #[default]
    NotKnown,
    /// The kernel has no such thing, nor a module of it.
    NotInKernel,
    /// A network namespace may not choose it.
    NotAllowed,
}

impl Available {
    /// By whether a module is there.
    pub fn by_module(has: Option<bool>) -> Self {
        match has {
            Some(true) => Self::Yes,
            Some(false) => Self::NotInKernel,
            None => Self::NotKnown,
        }
    }

    /// Whether it can be had, as far as is known.
    pub fn is_possible(self) -> bool {
        matches!(self, Self::Yes | Self::NotKnown)
    }

    /// Why it cannot be had, where that is so.
    pub fn why_not(self, name: &str) -> Option<String> {
        match self {
            Self::Yes | Self::NotKnown => None,
            Self::NotInKernel => Some(format!("this kernel has no {name}")),
            Self::NotAllowed => Some(format!(
                "a network namespace may not choose {name} here (net.ipv4.tcp_allowed_congestion_control of the first one)"
            )),
        }
    }
}
