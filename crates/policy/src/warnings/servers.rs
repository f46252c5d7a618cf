//! Servers that are Sluice itself, or each other.

use super::Found;
use super::addresses::Spot;
use crate::fault::Faults;

pub(super) fn look(found: &Found<'_>, warnings: &mut Faults) {
    for (cluster, (_, raw)) in found.config.clusters.iter().zip(found.clusters()) {
        let Some(primary) = &raw.value.primary else { continue };
        let Some(spot) = Spot::of(&primary.value) else { continue };
        let listen = &cluster.listen;
        if spot.is_listener(listen) {
            let message = format!(
                "is this cluster's own `listen`, {listen}: every connection would come back to \
                 Sluice; name the MySQL server"
            );
            warnings.add(&primary.place, message);
        }
        let replicas = raw.value.replicas.iter().flat_map(|replicas| &replicas.value);
        for (address, replica) in cluster.replicas.iter().zip(replicas) {
            let Some(of_replica) = Spot::of(address) else { continue };
            if of_replica.is(&spot) {
                warnings.add(&replica.place, "is the primary: that it never lags says nothing");
            } else if of_replica.is_listener(listen) {
                let message = format!(
                    "is this cluster's own `listen`, {listen}: what comes there goes to the primary"
                );
                warnings.add(&replica.place, message);
            }
        }
    }
}
