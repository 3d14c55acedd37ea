//! What a cause needs to have been measured before it can be found, or called absent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::Cause;
use crate::vocabulary;

vocabulary! {
    /// What must have been measured before a cause can be found, or called absent.
    pub enum Need {
        /// Round trips and losses of the idle path.
        Idle = "idle",
        /// Single probes, with seconds of silence before each.
        Silence = "silence",
        /// Round trips to the first router beyond the gateway, before any load.
        ProviderHop = "provider-hop",
        /// Marks of packets that a responder received.
        Marks = "marks",
        /// An upload for as long as a rate takes to become steady.
        Upload = "upload",
        /// A download for as long as a rate takes to become steady.
        Download = "download",
        /// Uploads and downloads at once, for as long as a rate takes to become steady.
        BothLoads = "both-loads",
        /// Round trips beside an upload that fills any queue: 14 s of TCP, or datagrams above the line's rate.
        UploadQueue = "upload-queue",
        /// Round trips beside a download that fills any queue: 14 s of TCP, or datagrams above the line's rate.
        DownloadQueue = "download-queue",
        /// Datagrams up and down, below the rate that TCP reached or above it.
        Datagrams = "datagrams",
        /// Small datagrams up and down, more a second than TCP's packets.
        SmallPackets = "small-packets",
        /// One connection alone, up and down.
        SingleStreams = "single-streams",
        /// What both hosts report of their TCP.
        BothHosts = "both-hosts",
        /// The routers of the path.
        Route = "route",
        /// What routers quote of the packets that reached them, which only raw sockets show, or the marks of packets that
        /// a responder received.
        QuotedHeaders = "quoted-headers",
        /// The routers of the path for 15 s or longer.
        RouteOverTime = "route-over-time",
        /// Places of the routers, from a database.
        Places = "places",
        /// How large packets may be.
        PacketSizes = "packet-sizes",
        /// The maximum segment size on its way to a TCP port, which only raw sockets show.
        SegmentSize = "segment-size",
        /// The delay of each direction between synchronised clocks.
        OneWayDelays = "one-way-delays",
        /// What the line between each two routers carries.
        Lines = "lines",
        /// The facts of this machine.
        Machine = "machine",
        /// What this machine's radio counts of its frames and of its channel; where it has none in use, nothing is missing.
        Radio = "radio",
        /// Counters of this machine while the path is loaded.
        CounterRates = "counter-rates",
        /// How fast files are read and written.
        Files = "files",
        /// How fast ciphers are.
        Ciphers = "ciphers",
        /// How fast and how well the resolver answers.
        Resolver = "resolver",
        /// Small objects one after another, which `--for transfer` and `--for backup` send.
        SmallObjects = "small-objects",
        /// Connections to a TCP port.
        Connections = "connections",
        /// Packets of connections, captured.
        Capture = "capture",
        /// What loading a web page takes.
        Page = "page",
        /// Round trips of both versions of IP.
        BothVersions = "both-versions",
        /// Connections that stay silent for minutes.
        SilentConnections = "silent-connections",
    }
}

/// Which causes were looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LookedFor {
    /// Causes for which everything that they need was measured, and that were not found.
    pub absent: Vec<Cause>,
    /// Causes that were not looked for, by what was not measured.
    pub not: Vec<NotLookedFor>,
}

/// Causes that were not looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotLookedFor {
    /// What was not measured.
    pub need: Need,
    /// Causes that need it. One that lacks several things stands with the first of them.
    pub causes: Vec<Cause>,
}
