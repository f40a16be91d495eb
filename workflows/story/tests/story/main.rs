//! Scripts, plans and the linter, seen from outside.

#[cfg(test)]
mod faults;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod lint;
#[cfg(test)]
mod plan;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod scripts;
