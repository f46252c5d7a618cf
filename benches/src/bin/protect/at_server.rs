//! What the server says of the app's statements.

use benches::Result;
use integration::server::Server;

use crate::distribution::Distribution;

/// Forgets what the server has counted by now.
pub(crate) async fn forget(server: &Server) -> Result<()> {
    Ok(server
        .run_sql(&[
            "TRUNCATE performance_schema.events_statements_summary_by_digest",
            "TRUNCATE performance_schema.events_statements_histogram_by_digest",
        ])
        .await?)
}

/// How long the app's statements took since [`forget`], and how many there were.
pub(crate) async fn web(server: &Server) -> Result<(Distribution, u64)> {
    let buckets: Vec<(f64, f64, u64)> = server.query(WEB).await?;
    let count = buckets.iter().map(|(_, _, count)| count).sum();
    Ok((Distribution::of_buckets(&buckets), count))
}

const WEB: &str = "SELECT h.BUCKET_TIMER_LOW / 1e12, h.BUCKET_TIMER_HIGH / 1e12, h.COUNT_BUCKET \
                   FROM performance_schema.events_statements_histogram_by_digest h \
                   JOIN performance_schema.events_statements_summary_by_digest s \
                   USING (SCHEMA_NAME, DIGEST) \
                   WHERE s.DIGEST_TEXT LIKE 'SELECT `pad` %FROM `t` %' AND h.COUNT_BUCKET > 0 \
                   ORDER BY h.BUCKET_NUMBER";
