//! Has the crate built again when the built pages change: they are put into the program.

use std::path::Path;

fn main() {
    let pages = Path::new("../../ui/dist");
    // A path that is not there would have the crate built again every time; the folder around it
    // changes when it comes.
    let watched = if pages.is_dir() {
        pages
    } else {
        Path::new("../../ui")
    };
    println!("cargo:rerun-if-changed={}", watched.display());
}
