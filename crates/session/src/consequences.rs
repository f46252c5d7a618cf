//! What a statement changes in its session when the server accepts it, kept until the response is
//! in.

use policy::identity::APP_LEN_MAX;
use sql::{AppSetting, Effects, PlainEffects};

use crate::cut_over::CutOver;

/// The effects of a statement without its text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consequences {
    /// What is copied without allocating.
    pub(crate) plain: PlainEffects,
    /// What few statements have.
    pub(crate) rare: Option<Box<Rare>>,
    /// There may be any.
    pub(crate) any: bool,
}

/// Effects that carry text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rare {
    /// `SET @sluice_app`: the new value, or none.
    pub(crate) app: Option<Option<Vec<u8>>>,
    /// `USE`.
    pub(crate) schema: Option<Vec<u8>>,
    /// `DEALLOCATE PREPARE name`.
    pub(crate) deallocate: Option<Vec<u8>>,
    /// The lock of gh-ost's cut-over.
    pub(crate) cut_over: Option<CutOver>,
}

/// The longest name that is kept: servers have none of more than 64 characters, and refuse a text
/// that has a longer one.
const NAME_LEN_MAX: usize = 256;

impl Consequences {
    /// What it takes, about.
    pub(crate) fn len(&self) -> usize {
        let Some(Rare { app, schema, deallocate, cut_over: _ }) = self.rare.as_deref() else {
            return 0;
        };
        let len = |text: Option<&Vec<u8>>| text.map_or(0, Vec::len);
        size_of::<Rare>()
            .saturating_add(len(app.as_ref().and_then(Option::as_ref)))
            .saturating_add(len(schema.as_ref()))
            .saturating_add(len(deallocate.as_ref()))
    }

    /// Keeps the effects.
    pub(crate) fn of(effects: &Effects<'_>) -> Self {
        let has_text = effects.set_app.is_some()
            || effects.use_schema.is_some()
            || effects.deallocate.is_some();
        let rare = has_text.then(|| {
            Box::new(Rare {
                app: effects.set_app.map(app_of),
                schema: effects
                    .use_schema
                    .filter(|name| name.len() <= NAME_LEN_MAX)
                    .map(<[u8]>::to_vec),
                deallocate: effects
                    .deallocate
                    .filter(|name| name.len() <= NAME_LEN_MAX)
                    .map(<[u8]>::to_vec),
                cut_over: None,
            })
        });
        let any = rare.is_some() || effects.plain != PlainEffects::default();
        Self { plain: effects.plain, rare, any }
    }

    /// The same for a text that takes the lock of a cut-over.
    pub(crate) fn with_cut_over(mut self, cut_over: Option<CutOver>) -> Self {
        if cut_over.is_some() {
            self.rare.get_or_insert_default().cut_over = cut_over;
            self.any = true;
        }
        self
    }

    /// Whether there is a USE among them.
    pub(crate) fn uses_schema(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.schema.is_some())
    }

    /// Whether the server may give back a lock of LOCK TABLES as soon as it reads the text.
    pub(crate) fn may_unlock_tables(&self) -> bool {
        let PlainEffects { unread, begins_transaction, takes, releases, .. } = self.plain;
        unread || begins_transaction || takes.tables || releases.tables
    }
}

fn app_of(setting: AppSetting<'_>) -> Option<Vec<u8>> {
    match setting {
        AppSetting::Named(text) => {
            let mut app = Vec::new();
            text.unescape_into(&mut app);
            app.shrink_to_fit();
            // What is longer is nobody's name.
            (app.len() <= APP_LEN_MAX).then_some(app)
        }
        // What cannot be read names nobody: the next source of identity speaks.
        AppSetting::Cleared | AppSetting::Unreadable => None,
    }
}
