//! The objects that are asked for: of SNMPv2-MIB and IF-MIB (RFC 3418, RFC 2863), HOST-RESOURCES-MIB (RFC 2790), ENTITY-MIB and
//! ENTITY-SENSOR-MIB (RFC 6933, RFC 3433).

use plumb_wire::snmp::oid::Oid;

/// A column of a table, or an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Object(&'static [u32]);

impl Object {
    /// The object of this index; of an object that is in no table 0.
    pub(super) fn at(self, index: &[u32]) -> Option<Oid> {
        Oid::new(&[self.0, index].concat())
    }

    /// The object of this one number as its index.
    pub(super) fn of(self, index: u32) -> Option<Oid> {
        self.at(&[index])
    }

    pub(super) fn column(self) -> Option<Oid> {
        Oid::new(self.0)
    }
}

pub(super) const SYS_DESCR: Object = Object(&[1, 3, 6, 1, 2, 1, 1, 1]);
pub(super) const SYS_UP_TIME: Object = Object(&[1, 3, 6, 1, 2, 1, 1, 3]);
pub(super) const SYS_NAME: Object = Object(&[1, 3, 6, 1, 2, 1, 1, 5]);
/// Since the host booted, where sysUpTime is since its agent began.
pub(super) const HR_SYSTEM_UPTIME: Object = Object(&[1, 3, 6, 1, 2, 1, 25, 1, 1]);

pub(super) const IF_NUMBER: Object = Object(&[1, 3, 6, 1, 2, 1, 2, 1]);
pub(super) const IF_TABLE_LAST_CHANGE: Object = Object(&[1, 3, 6, 1, 2, 1, 31, 1, 5]);

pub(super) const IF_DESCR: Object = Object(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 2]);
pub(super) const IF_TYPE: Object = Object(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 3]);
pub(super) const IF_SPEED: Object = Object(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 5]);
pub(super) const IF_OPER_STATUS: Object = Object(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 8]);
pub(super) const IF_IN_OCTETS: Object = Object(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 10]);
pub(super) const IF_IN_DISCARDS: Object = Object(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 13]);
pub(super) const IF_IN_ERRORS: Object = Object(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 14]);
pub(super) const IF_OUT_OCTETS: Object = Object(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 16]);
pub(super) const IF_OUT_DISCARDS: Object = Object(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 19]);
pub(super) const IF_OUT_ERRORS: Object = Object(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 20]);

pub(super) const IF_NAME: Object = Object(&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1]);
pub(super) const IF_HC_IN_OCTETS: Object = Object(&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6]);
pub(super) const IF_HC_OUT_OCTETS: Object = Object(&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10]);
/// In units of 1,000,000 bit/s.
pub(super) const IF_HIGH_SPEED: Object = Object(&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 15]);
pub(super) const IF_COUNTER_DISCONTINUITY_TIME: Object =
    Object(&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 19]);

/// In percent, over the last minute.
pub(super) const HR_PROCESSOR_LOAD: Object = Object(&[1, 3, 6, 1, 2, 1, 25, 3, 3, 1, 2]);
pub(super) const HR_STORAGE_TYPE: Object = Object(&[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 2]);
pub(super) const HR_STORAGE_SIZE: Object = Object(&[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 5]);
pub(super) const HR_STORAGE_USED: Object = Object(&[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 6]);
/// The type of storage that is main memory.
pub(super) const HR_STORAGE_RAM: Object = Object(&[1, 3, 6, 1, 2, 1, 25, 2, 1, 2]);

pub(super) const ENT_PHYSICAL_NAME: Object = Object(&[1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1, 7]);
pub(super) const ENT_PHY_SENSOR_TYPE: Object = Object(&[1, 3, 6, 1, 2, 1, 99, 1, 1, 1, 1]);
pub(super) const ENT_PHY_SENSOR_SCALE: Object = Object(&[1, 3, 6, 1, 2, 1, 99, 1, 1, 1, 2]);
pub(super) const ENT_PHY_SENSOR_PRECISION: Object = Object(&[1, 3, 6, 1, 2, 1, 99, 1, 1, 1, 3]);
pub(super) const ENT_PHY_SENSOR_VALUE: Object = Object(&[1, 3, 6, 1, 2, 1, 99, 1, 1, 1, 4]);
