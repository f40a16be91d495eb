//! The document that a film would be run from.

use std::sync::Arc;

use engine_base::CancelToken;
use flow_graph::Document;

use super::{FilmRequest, Given, Wanted, targets};
use crate::error::StudioError;
use crate::events::Watcher;
use crate::studio::Studio;

impl Studio {
    /// The document of a film and its targets, as [`Studio::film`] would run them now.
    pub(crate) fn film_document_of(
        &self,
        request: &FilmRequest,
        watcher: &Arc<dyn Watcher>,
    ) -> Result<(Document, Vec<String>), StudioError> {
        let cancel = CancelToken::new();
        let prepared = self.prepare(request, Given::Request, Wanted::Plan, watcher, &cancel)?;
        let targets = targets(&prepared.film);
        Ok((prepared.film.document, targets))
    }
}
