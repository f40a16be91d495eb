//! The node types a run may use.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::node::Node;

/// Two node types claim one name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two node types are called {0:?}")]
pub struct RegistryError(pub String);

/// Node types by name.
#[derive(Clone, Default)]
pub struct Registry {
    types: BTreeMap<&'static str, Arc<dyn Node>>,
}

impl Registry {
    /// No types.
    pub fn new() -> Self {
        Self::default()
    }

    /// Add a type.
    ///
    /// # Errors
    /// [`RegistryError`] when its name is taken.
    pub fn add(&mut self, node: Arc<dyn Node>) -> Result<(), RegistryError> {
        let name = node.spec().type_name;
        if self.types.insert(name, node).is_some() {
            return Err(RegistryError(name.to_owned()));
        }
        Ok(())
    }

    /// The type called `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Node>> {
        self.types.get(name)
    }

    /// All types, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Node>> {
        self.types.values()
    }
}
