//! The store and the project's database from outside: what survives what.

#[cfg(test)]
mod cache;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod project;
#[cfg(test)]
mod prune;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod support;
