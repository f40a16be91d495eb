//! Hands the configuration to the window's library.

fn main() {
    tauri_build::build();
}
