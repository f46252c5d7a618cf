//! Everybody kills everybody: by SQL and by COM_PROCESS_KILL, through Sluice and at the server.

use std::time::{Duration, Instant};

use integration::error::Result;
use integration::raw::{Login, RawConn, Shape};
use integration::scenario::Chance;
use tokio::time::sleep;

use super::Lab;

/// COM_PROCESS_KILL of the manual.
const COM_PROCESS_KILL: u8 = 0x0c;

impl Lab {
    pub(super) async fn kill_until(&self, until: Instant) {
        let mut chance = Chance::new(self.seed);
        while Instant::now() < until {
            let find = "SELECT id FROM information_schema.processlist WHERE user = 'quick'";
            let ids: Vec<u64> = self.server.query(find).await.unwrap();
            if let Some(id) = ids.get(chance.index(ids.len())) {
                // It may have gone by itself.
                self.kill(*id, &mut chance).await.ok();
            }
            sleep(Duration::from_millis(15)).await;
        }
    }

    async fn kill(&self, id: u64, chance: &mut Chance) -> Result<()> {
        let addr = match chance.below(2) {
            0 => self.sluice.listen_addr(),
            _ => self.server.addr(),
        };
        let mut conn = RawConn::open(addr, &Login::new("quick").password("")).await?;
        match chance.below(3) {
            0 => conn.query(format!("KILL QUERY {id}")).await.map(drop),
            1 => conn.query(format!("KILL {id}")).await.map(drop),
            _ => {
                let id = u32::try_from(id).unwrap_or_default().to_le_bytes();
                let payload = [&[COM_PROCESS_KILL], id.as_slice()].concat();
                conn.command(&payload, Shape::Single).await.map(drop)
            }
        }
    }
}
