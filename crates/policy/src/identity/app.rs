//! What can be an app.

/// Longest app, in bytes.
pub const APP_LEN_MAX: usize = 255;
/// Most levels of an app.
pub const APP_LEVELS_MAX: usize = 16;

/// Whether these bytes can name an app.
pub(crate) fn is_app(app: &[u8]) -> bool {
    let levels = app.iter().filter(|byte| **byte == b':').take(APP_LEVELS_MAX).count();
    !app.is_empty()
        && app.len() <= APP_LEN_MAX
        && levels < APP_LEVELS_MAX
        && !app.iter().any(u8::is_ascii_control)
}
