//! The words of causes, of which each has a file of its name in `plumb-diagnose`.

use crate::vocabulary;

vocabulary! {
    /// The causes that plumb can name.
    pub enum Cause {
        /// A transfer waits for its own acknowledgements, which fill the narrow line of the other direction.
        AckStarvation = "ack-starvation",
        /// A cloud's allowance of bandwidth, packets or connections of this machine is used up.
        AllowanceExceeded = "allowance-exceeded",
        /// The program that sends has nothing to send for much of the time.
        ApplicationLimited = "application-limited",
        /// A processor's backlog of received packets overflows.
        BacklogDrops = "backlog-drops",
        /// A link has more neighbours than a broadcast domain should.
        BroadcastDomainLarge = "broadcast-domain-large",
        /// A queue that downloads fill delays everything else.
        BufferbloatDown = "bufferbloat-down",
        /// A queue that uploads fill delays everything else.
        BufferbloatUp = "bufferbloat-up",
        /// The bus of a network card is slower than its link.
        BusSlow = "bus-slow",
        /// A captive portal answers in place of the Internet until the user logs in.
        CaptivePortal = "captive-portal",
        /// An edge of a content network or a cache answers for the page, and the origin is behind it.
        CdnEdge = "cdn-edge",
        /// Encryption is slower than the transfer is to be.
        CipherSlow = "cipher-slow",
        /// The kernel reads time from a slow clock.
        ClockSourceSlow = "clock-source-slow",
        /// This machine's clock was set while the path was measured.
        ClockStepped = "clock-stepped",
        /// Nothing holds the clock to true time.
        ClockUnsynchronised = "clock-unsynchronised",
        /// The network card interrupts for every packet, or waits long before it does.
        CoalescingUnfit = "coalescing-unfit",
        /// Others fill a queue behind the provider's first router: at an interconnection, or within a network further on.
        CongestedInterconnection = "congested-interconnection",
        /// This machine's table of connections is full, and packets of new ones are dropped.
        ConnectionTableFull = "connection-table-full",
        /// Packets arrive with wrong checksums.
        Corruption = "corruption",
        /// A quota of a control group stops plumb's programs for a part of the time.
        CpuQuota = "cpu-quota",
        /// The traffic of others fills the line meanwhile.
        CrossTraffic = "cross-traffic",
        /// Packets come late by tens or hundreds of milliseconds, whatever loads the path.
        DelayVaries = "delay-varies",
        /// Files are slower than the transfer is to be.
        DiskSlow = "disk-slow",
        /// The far end is far away: the shortest round trip is long, and steady.
        Distance = "distance",
        /// A machine on the path answers questions for names in place of the server that was asked.
        DnsIntercepted = "dns-intercepted",
        /// Two routers of the customer's translate addresses, one behind the other.
        DoubleNat = "double-nat",
        /// The driver's queue has no limit in bytes.
        DriverQueueUnlimited = "driver-queue-unlimited",
        /// A machine on the path changes the DSCP.
        DscpChanged = "dscp-changed",
        /// One end of a link sends whenever it likes, and the other takes that for a collision.
        DuplexMismatch = "duplex-mismatch",
        /// Packets arrive more than once.
        Duplication = "duplication",
        /// A machine on the path clears the ECN field.
        EcnCleared = "ecn-cleared",
        /// A firewall drops handshakes that ask for ECN, and each connection begins a second late.
        EcnSynDropped = "ecn-syn-dropped",
        /// A machine on the path clears or drops ECT(1), and leaves ECT(0) alone.
        Ect1Bleached = "ect1-bleached",
        /// Packets are not put together from their fragments.
        FragmentsLost = "fragments-lost",
        /// The path does not reach the rate or the round trip that was asked for, or paid for.
        GoalMissed = "goal-missed",
        /// Nothing passes for a time, and then all of it at once.
        Handover = "handover",
        /// Echo requests are filtered, limited or answered later than other traffic.
        IcmpHeldBack = "icmp-held-back",
        /// The far end's name has an address of IPv6, and nothing gets there by it.
        Ipv6Broken = "ipv6-broken",
        /// Connections over IPv6 take longer than over IPv4, by another route or a tunnel.
        Ipv6Slower = "ipv6-slower",
        /// A table or a limit of this machine is nearly full.
        LimitNear = "limit-near",
        /// Only one end of a link may send at a time.
        LinkDuplexHalf = "link-duplex-half",
        /// A link damages frames.
        LinkErrors = "link-errors",
        /// A link runs below what both of its ends can.
        LinkSlow = "link-slow",
        /// A link comes and goes.
        LinkUnsteady = "link-unsteady",
        /// Connections are refused because a queue of them is full.
        ListenOverflow = "listen-overflow",
        /// A page takes long because it takes many round trips, one after the other.
        ManyRoundTrips = "many-round-trips",
        /// The kernel's memory for sockets runs out.
        MemoryPressure = "memory-pressure",
        /// An optical module gets too little light.
        ModuleLightLow = "module-light-low",
        /// Something on the path lowers TCP's maximum segment size.
        MssClamped = "mss-clamped",
        /// Interfaces on one link disagree about the largest packet.
        MtuMismatch = "mtu-mismatch",
        /// One line carries less than every other.
        NarrowestLine = "narrowest-line",
        /// A NAT or firewall on the path forgets silent connections early.
        NatForgets = "nat-forgets",
        /// A direction delivered no payload at all, or none any more.
        NothingCarried = "nothing-carried",
        /// A setting of old advice does harm today.
        ObsoleteSetting = "obsolete-setting",
        /// An offload damages what is forwarded.
        OffloadHarmful = "offload-harmful",
        /// Work that hardware or kernel could do in large pieces is done packet by packet.
        OffloadOff = "offload-off",
        /// One processor of several serves all received packets.
        OneProcessorReceives = "one-processor-receives",
        /// One direction takes longer than the other.
        OneWayDelayAsymmetric = "one-way-delay-asymmetric",
        /// The path carries nothing at all for a time, and then recovers.
        Outage = "outage",
        /// A box on the path forwards so many packets a second and no more, however small they are.
        PacketRateLimited = "packet-rate-limited",
        /// Packets are lost on the path.
        PathLoss = "path-loss",
        /// A router refuses to forward packets to the target.
        PathRefused = "path-refused",
        /// Pause frames hold a link up.
        PauseFlood = "pause-flood",
        /// Something on the path gives each flow a rate of its own, far below what the path carries.
        PerFlowLimit = "per-flow-limit",
        /// Large packets vanish on the path, and no message reports it.
        PmtudBlackHole = "pmtud-black-hole",
        /// What exceeds a contract is dropped at once, without a queue.
        Policer = "policer",
        /// A TCP port of a host that is there gets no answer: a firewall drops what is sent to it.
        PortFiltered = "port-filtered",
        /// A transfer carries exactly what a common speed of network ports carries.
        PortSpeed = "port-speed",
        /// A processor or a link saves power while packets wait.
        PowerSaving = "power-saving",
        /// A machine at an end has no processor time left to carry more.
        ProcessorBusy = "processor-busy",
        /// A NAT of the provider stands on the path.
        ProviderNat = "provider-nat",
        /// This host's own queue drops packets.
        QueueDrops = "queue-drops",
        /// A managed queue drops so early that TCP cannot fill the line.
        QueueTargetLow = "queue-target-low",
        /// This host's own queue is a plain first-in-first-out.
        QueueUnmanaged = "queue-unmanaged",
        /// What the line carries changes from moment to moment, as a radio's cell or access point grants it.
        RadioScheduling = "radio-scheduling",
        /// The line's rate goes up and down between levels.
        RateVaries = "rate-varies",
        /// Received segments are thrown away for want of buffer.
        ReceiveBufferPruned = "receive-buffer-pruned",
        /// The receiver's window is smaller than the path.
        ReceiveBufferSmall = "receive-buffer-small",
        /// The network card drops packets before the kernel sees them.
        ReceiveOverrun = "receive-overrun",
        /// Packets overtake each other, and TCP repeats what had arrived already.
        Reordering = "reordering",
        /// A resolver that this machine asks for names does not answer.
        ResolverSilent = "resolver-silent",
        /// The resolver that this machine asks for names is far away or slow.
        ResolverSlow = "resolver-slow",
        /// Much of what this host sends is retransmitted.
        RetransmitsHigh = "retransmits-high",
        /// The route changed once or twice.
        RouteChanged = "route-changed",
        /// The route is much longer on the map than the direct way.
        RouteDetour = "route-detour",
        /// The route changes time and again.
        RouteFlapping = "route-flapping",
        /// A radio sleeps after some seconds of silence, and the first packet waits until it is awake.
        RrcWakeUp = "rrc-wake-up",
        /// Something on the path strips selective acknowledgements from TCP's handshakes.
        SackStripped = "sack-stripped",
        /// The path leads over a geostationary satellite.
        Satellite = "satellite",
        /// The sender's buffer is smaller than the path.
        SendBufferSmall = "send-buffer-small",
        /// A server takes long until it begins to answer.
        ServerSlow = "server-slow",
        /// The queue before a line is too short for one TCP connection to fill the line.
        ShallowQueue = "shallow-queue",
        /// Both directions share one medium: what goes up takes from what comes down.
        SharedMedium = "shared-medium",
        /// Many small files take a round trip each, whatever the line carries.
        SmallFiles = "small-files",
        /// One copy by SSH cannot fill the path: its channel has a window of 2 MiB.
        SshWindow = "ssh-window",
        /// A part of TCP that every path needs is switched off.
        TcpFeatureOff = "tcp-feature-off",
        /// TCP is limited to a rate, and UDP is not.
        TcpLimited = "tcp-limited",
        /// Something on the path strips timestamps from TCP's handshakes.
        TimestampsStripped = "timestamps-stripped",
        /// A token bucket lets the beginning of a transfer pass faster than the rest.
        TokenBucket = "token-bucket",
        /// A machine on the path answers TCP connections in the far end's place.
        TransparentProxy = "transparent-proxy",
        /// Packets leave this machine through a tunnel: a VPN, or an overlay.
        TunnelInPath = "tunnel-in-path",
        /// Packets on the path are smaller than Ethernet's, as behind a tunnel or an access protocol.
        TunnelOverhead = "tunnel-overhead",
        /// UDP does not pass where TCP does.
        UdpBlocked = "udp-blocked",
        /// UDP sockets drop datagrams for want of buffer.
        UdpBufferSmall = "udp-buffer-small",
        /// UDP is limited to a rate, and TCP is not.
        UdpLimited = "udp-limited",
        /// One of several parallel paths loses packets, and only some connections take it.
        UnequalPaths = "unequal-paths",
        /// Something is wrong, and no cause that plumb looks for explains it.
        Unexplained = "unexplained",
        /// The hypervisor gives this machine's processors to others while it wants to run.
        VmSteal = "vm-steal",
        /// A tunnel of this machine limits the rate: one processor has no time left to encrypt, or its packets are cut up.
        VpnLimited = "vpn-limited",
        /// Others take most of a radio channel's time.
        WifiChannelBusy = "wifi-channel-busy",
        /// A radio sleeps between frames, and what comes for it waits.
        WifiPowerSave = "wifi-power-save",
        /// A radio sends at a low rate although its signal is strong.
        WifiRateLow = "wifi-rate-low",
        /// A radio sends many frames again, which turns loss into delay.
        WifiRetries = "wifi-retries",
        /// A radio leaves its channel to look for other access points, and what comes meanwhile waits.
        WifiScans = "wifi-scans",
        /// The signal of a radio link is weak.
        WifiWeak = "wifi-weak",
        /// Something on the path strips window scaling from TCP's handshakes.
        WindowScalingStripped = "window-scaling-stripped",
    }
}
