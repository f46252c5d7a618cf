//! The families of certificates, for one scrape.

use prometheus::{GaugeVec, Registry};

use super::gauges::gauges;
use crate::cluster::Cluster;

pub(super) struct Certificates {
    usable: GaugeVec,
    not_after: GaugeVec,
}

impl Certificates {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            usable: gauges(
                registry,
                "sluice_certificates_usable",
                "1 while what the files of certificates say is in force, 0 while they cannot be \
                 used and what they said before is. Legs without TLS have no series.",
                &["cluster", "leg"],
            ),
            not_after: gauges(
                registry,
                "sluice_certificate_not_after_seconds",
                "Until when the certificate that Sluice shows on a leg is valid, in Unix time.",
                &["cluster", "leg"],
            ),
        }
    }

    pub(super) fn read(&self, cluster: &Cluster) {
        for view in cluster.tls.legs() {
            let labels = [&*cluster.name, view.leg];
            self.usable.with_label_values(&labels).set(f64::from(u8::from(view.is_current)));
            if let Some(not_after) = view.not_after {
                self.not_after.with_label_values(&labels).set(not_after.as_secs_f64());
            }
        }
    }
}
