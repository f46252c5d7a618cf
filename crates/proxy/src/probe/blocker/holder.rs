//! Who holds the lock that a session waits for.

use mysql_async::Row;

use crate::board::{BlockingLock, LockHolder};
use crate::probe::answer::{number, text};

/// Whoever has been granted what the session `writer` waits for.
pub(super) fn in_performance_schema(writer: u32, lock: BlockingLock) -> String {
    let modes = match lock {
        BlockingLock::Row => return of_row_in_performance_schema(writer),
        BlockingLock::GlobalRead => {
            "'SHARED', 'FTWRL1', 'FTWRL2', 'MDL_BACKUP_FTWRL1', 'MDL_BACKUP_FTWRL2', \
             'BACKUP_FTWRL1', 'BACKUP_FTWRL2', 'BACKUP_WAIT_COMMIT'"
        }
        BlockingLock::Table => {
            "'SHARED_READ_ONLY', 'SHARED_NO_WRITE', 'SHARED_NO_READ_WRITE', 'EXCLUSIVE'"
        }
    };
    format!(
        "{HOLDER} \
         FROM performance_schema.threads me \
         JOIN performance_schema.metadata_locks waits \
           ON waits.OWNER_THREAD_ID = me.THREAD_ID AND waits.LOCK_STATUS = 'PENDING' \
         JOIN performance_schema.metadata_locks granted \
           ON granted.OBJECT_TYPE = waits.OBJECT_TYPE \
           AND granted.OBJECT_SCHEMA <=> waits.OBJECT_SCHEMA \
           AND granted.OBJECT_NAME <=> waits.OBJECT_NAME \
           AND granted.LOCK_STATUS = 'GRANTED' AND granted.LOCK_TYPE IN ({modes}) \
         JOIN performance_schema.threads holder ON holder.THREAD_ID = granted.OWNER_THREAD_ID \
         WHERE me.PROCESSLIST_ID = {writer} AND holder.PROCESSLIST_ID <> {writer} \
         ORDER BY holder.PROCESSLIST_ID LIMIT 1"
    )
}

/// A thread as what [`holder_in`] reads.
const HOLDER: &str = "SELECT holder.PROCESSLIST_ID, holder.PROCESSLIST_USER, \
    (SELECT attr.ATTR_VALUE FROM performance_schema.session_connect_attrs attr \
     WHERE attr.PROCESSLIST_ID = holder.PROCESSLIST_ID \
       AND attr.ATTR_NAME = 'program_name' LIMIT 1)";

fn of_row_in_performance_schema(writer: u32) -> String {
    format!(
        "{HOLDER} FROM performance_schema.threads me \
         JOIN performance_schema.data_lock_waits waits ON waits.REQUESTING_THREAD_ID = me.THREAD_ID \
         JOIN performance_schema.threads holder ON holder.THREAD_ID = waits.BLOCKING_THREAD_ID \
         WHERE me.PROCESSLIST_ID = {writer} AND holder.PROCESSLIST_ID <> {writer} \
         ORDER BY holder.PROCESSLIST_ID LIMIT 1"
    )
}

fn of_row_in_mariadb(writer: u32) -> String {
    format!(
        "SELECT holder.trx_mysql_thread_id, list.USER, NULL \
         FROM information_schema.INNODB_TRX me \
         JOIN information_schema.INNODB_LOCK_WAITS waits ON waits.requesting_trx_id = me.trx_id \
         JOIN information_schema.INNODB_TRX holder ON holder.trx_id = waits.blocking_trx_id \
         JOIN information_schema.PROCESSLIST list ON list.ID = holder.trx_mysql_thread_id \
         WHERE me.trx_mysql_thread_id = {writer} \
         ORDER BY holder.trx_mysql_thread_id LIMIT 1"
    )
}

/// The same of MariaDB's plugin, which shows what is granted only. Attributes it has none.
pub(super) fn in_mariadb(writer: u32, lock: BlockingLock) -> String {
    let modes = match lock {
        BlockingLock::Row => return of_row_in_mariadb(writer),
        BlockingLock::GlobalRead => {
            "'MDL_BACKUP_FTWRL1', 'MDL_BACKUP_FTWRL2', 'MDL_BACKUP_WAIT_FLUSH', \
             'MDL_BACKUP_WAIT_DDL', 'MDL_BACKUP_WAIT_COMMIT'"
        }
        BlockingLock::Table => {
            "'MDL_SHARED_READ_ONLY', 'MDL_SHARED_NO_WRITE', 'MDL_SHARED_NO_READ_WRITE', \
             'MDL_EXCLUSIVE'"
        }
    };
    // A lock on another table has nothing to do with the heartbeat's.
    let only_its_table = match lock {
        BlockingLock::GlobalRead | BlockingLock::Row => "",
        BlockingLock::Table => {
            "AND EXISTS (SELECT 1 FROM information_schema.PROCESSLIST me WHERE me.INFO LIKE \
             CONCAT('%`', locks.TABLE_SCHEMA, '`.`', locks.TABLE_NAME, '`%') AND me.ID = locks.ME)"
        }
    };
    format!(
        "SELECT locks.THREAD_ID, list.USER, NULL FROM \
           (SELECT info.*, {writer} AS ME FROM information_schema.METADATA_LOCK_INFO info) locks \
         JOIN information_schema.PROCESSLIST list ON list.ID = locks.THREAD_ID \
         WHERE locks.THREAD_ID <> {writer} AND locks.LOCK_MODE IN ({modes}) {only_its_table} \
         ORDER BY locks.THREAD_ID LIMIT 1"
    )
}

/// Who a row of theirs names.
pub(super) fn holder_in(row: &Row) -> Option<LockHolder> {
    Some(LockHolder {
        connection_id: row.as_ref(0).and_then(number)?,
        user: row.as_ref(1).and_then(text)?,
        program: row.as_ref(2).and_then(text).filter(|program| !program.is_empty()),
    })
}
