//! Documents, validation, flattening, keys and migration, seen from outside.

#[cfg(test)]
mod flattening;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod migration;
#[cfg(test)]
mod random;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod scale;
#[cfg(test)]
mod stubs;
#[cfg(test)]
mod validation;
