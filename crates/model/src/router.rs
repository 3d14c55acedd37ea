//! Which system the router runs that is to shape the line.

use crate::vocabulary;

vocabulary! {
    /// The system of the router between this host and the line.
    pub enum Router default Generic {
        /// OpenWrt with its SQM scripts.
        Openwrt = "openwrt" as "OpenWrt",
        /// Linux, by the commands of iproute2.
        Linux = "linux" as "Linux",
        /// RouterOS 7 of MikroTik.
        Mikrotik = "mikrotik" as "MikroTik RouterOS",
        /// pfSense, by its menus.
        Pfsense = "pfsense" as "pfSense",
        /// OPNsense, by its menus.
        Opnsense = "opnsense" as "OPNsense",
        /// VyOS 1.4 and later.
        Vyos = "vyos" as "VyOS",
        /// EdgeOS, of Ubiquiti's EdgeRouters.
        Edgeos = "edgeos" as "EdgeOS",
        /// UniFi gateways, by their menus.
        Unifi = "unifi" as "UniFi",
        /// Routers of ASUS, with Asuswrt-Merlin or without it.
        Asus = "asus" as "ASUS",
        /// FRITZ!Box, which has no managed queue.
        Fritzbox = "fritzbox" as "FRITZ!Box",
        /// Any other router, in plain words.
        Generic = "generic" as "any router",
    }
}
