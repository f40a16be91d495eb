//! Has the crate built again when the page that it takes in is another one.

use std::path::Path;

fn main() {
    // A page that is not there yet is noticed by its folder's change: a missing file would have
    // the crate built anew each time.
    let page = Path::new("../../ui/dist/index.html");
    let watched = if page.is_file() {
        page
    } else {
        Path::new("../../ui")
    };
    #[allow(
        clippy::print_stdout,
        reason = "this is how a build script speaks to cargo"
    )]
    {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
}
