//! Which line of its file each part of a script stands on.

use std::collections::HashMap;

use crate::fault::Fault;
use crate::tree::At;

/// Lines of the parts of a script, by place (`shot boats`, `scene harbour`, `cast MARA`,
/// `music 1`, `credits`, empty for the film) and field (`picture`, `line 2`; empty for the whole).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptLines {
    lines: HashMap<String, HashMap<String, At>>,
}

impl ScriptLines {
    pub(crate) fn put(&mut self, place: &str, field: &str, at: At) {
        if !self.lines.contains_key(place) {
            self.lines.insert(place.to_owned(), HashMap::new());
        }
        if let Some(fields) = self.lines.get_mut(place)
            && !fields.contains_key(field)
        {
            fields.insert(field.to_owned(), at);
        }
    }

    pub(crate) fn at(&self, place: &str, field: &str) -> Option<At> {
        let fields = self.lines.get(place)?;
        fields.get(field).or_else(|| fields.get("")).copied()
    }

    /// Line of a field, or of the thing it belongs to.
    pub fn line_of(&self, place: &str, field: &str) -> Option<u32> {
        self.at(place, field).map(|at| at.line)
    }

    /// Give faults found in the finished script (by planning, say) their lines.
    pub fn locate(&self, faults: &mut [Fault]) {
        for fault in faults.iter_mut().filter(|fault| fault.line.is_none()) {
            if let Some(at) = self.at(&fault.place, &fault.field) {
                (fault.line, fault.column) = (Some(at.line), Some(at.column));
            }
        }
    }
}
