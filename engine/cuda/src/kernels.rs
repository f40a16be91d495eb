//! The kernel sources. A new one is a file under `kernels/` and a line in [`SOURCES`].

const PRELUDE: &str = include_str!("../kernels/prelude.cuh");

/// A file of kernels.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// Its name, without its ending.
    pub name: &'static str,
    text: &'static str,
}

/// All of them.
pub const SOURCES: &[Source] = &[
    Source {
        name: "attention",
        text: include_str!("../kernels/attention.cu"),
    },
    Source {
        name: "conv3x3",
        text: include_str!("../kernels/conv3x3.cu"),
    },
    Source {
        name: "conv_stream",
        text: include_str!("../kernels/conv_stream.cu"),
    },
    Source {
        name: "decode_attention",
        text: include_str!("../kernels/decode_attention.cu"),
    },
    Source {
        name: "elementwise",
        text: include_str!("../kernels/elementwise.cu"),
    },
    Source {
        name: "gemv",
        text: include_str!("../kernels/gemv.cu"),
    },
    Source {
        name: "normalize",
        text: include_str!("../kernels/normalize.cu"),
    },
    Source {
        name: "sampling",
        text: include_str!("../kernels/sampling.cu"),
    },
];

impl Source {
    /// What the compiler is given: the prelude, then the file, with its own line numbers.
    pub fn full_text(&self) -> String {
        format!("{PRELUDE}\n#line 1 \"{}.cu\"\n{}", self.name, self.text)
    }

    /// The source of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SOURCES.iter().find(|source| source.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "cu"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let listed: Vec<&str> = SOURCES.iter().map(|source| source.name).collect();
        assert_eq!(listed, files);
    }

    #[test]
    fn sources_include_nothing() {
        for source in SOURCES {
            assert!(!source.full_text().contains("#include"), "{}", source.name);
        }
    }
}
