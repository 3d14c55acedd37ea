//! The kinds of queues.

use plumb_model::units::BitRate;

use super::fq_codel::FqCodelSpec;
use super::{
    AnyQueue, QueueKinds, cake, codel, docsis_pie, dualpi2, fifo, fq_codel, host_fair, pie,
    priority, red,
};
use crate::settings::{Settings, kinds};

kinds! {
    "queue",
    /// A queue: a table with a `type`, or the type alone.
    pub enum QueueSpec {
        /// First in, first out.
        Fifo(fifo::FifoSpec) = "fifo",
        Codel(codel::CodelSpec) = "codel",
        FqCodel(fq_codel::FqCodelSpec) = "fq_codel",
        /// Random early detection (Floyd and Jacobson 1993).
        Red(red::RedSpec) = "red",
        Pie(pie::PieSpec) = "pie",
        /// The PIE of cable modems (RFC 8034).
        DocsisPie(docsis_pie::DocsisPieSpec) = "docsis_pie",
        DualPi2(dualpi2::DualPi2Spec) = "dualpi2",
        /// Strict priority, with a queue in each band.
        Priority(priority::PrioritySpec<QueueSpec>) = "priority",
        /// An equal share for each host, with a queue for each.
        HostFair(host_fair::HostFairSpec<QueueSpec>) = "host_fair",
        Cake(cake::CakeSpec) = "cake",
    }
}

impl Settings for QueueSpec {}

impl Default for QueueSpec {
    fn default() -> Self {
        Self::Fifo(fifo::FifoSpec::default())
    }
}

impl From<FqCodelSpec> for QueueSpec {
    fn from(spec: FqCodelSpec) -> Self {
        Self::FqCodel(spec)
    }
}

impl QueueKinds for QueueSpec {
    fn build(&self, rate: BitRate, seed: u64) -> Box<dyn AnyQueue<Self>> {
        match self {
            Self::Fifo(spec) => Box::new(fifo::Fifo::new(*spec, rate)),
            Self::Codel(spec) => Box::new(codel::CodelQueue::new(*spec, rate)),
            Self::FqCodel(spec) => Box::new(fq_codel::FqCodel::new(*spec, rate, seed)),
            Self::Red(spec) => Box::new(red::Red::new(*spec, rate, seed)),
            Self::Pie(spec) => Box::new(pie::Pie::new(*spec, rate, seed)),
            Self::DocsisPie(spec) => Box::new(docsis_pie::DocsisPie::new(*spec, rate, seed)),
            Self::DualPi2(spec) => Box::new(dualpi2::DualPi2::new(*spec, rate, seed)),
            Self::Priority(spec) => Box::new(priority::Priority::new(spec.clone(), rate, seed)),
            Self::HostFair(spec) => Box::new(host_fair::HostFair::new(spec.clone(), rate, seed)),
            Self::Cake(spec) => Box::new(cake::Cake::new(*spec, rate, seed)),
        }
    }
}
