//! Nothing is left open or running when all is over.

use super::Found;
use crate::sim::run::Ran;

pub(super) fn check(ran: &Ran, found: &mut Found) {
    found.same(ran.client_streams.0, 0, || "connections that the client left open".to_owned());
    if ran.scenario.link.faults.hang() {
        // An end that never arrives leaves its server waiting, rightly.
        return;
    }
    for left in &ran.left_at_servers {
        let what = || "open, running and waiting at a server when all is over".to_owned();
        found.same(*left, (0, 0, 0), what);
    }
}
