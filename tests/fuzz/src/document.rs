//! Documents: read, write, migrate, validate, flatten, key.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use engine_base::{Code, ContentHash, Datum, Key};
use flow_graph::{
    Call, Document, Exactness, FlatInput, FlattenOptions, InputSpec, KeyInput, KeyMaker, Lane,
    Limits, Node, NodeContext, NodeError, NodeSpec, Outcome, OutputSpec, PortType, Registry,
    Widget, flatten, flatten_runnable, migrate,
};

struct Stub(NodeSpec);

impl Node for Stub {
    fn spec(&self) -> &NodeSpec {
        &self.0
    }

    fn run(&self, _: &NodeContext<'_>, _: &Call) -> Result<Outcome, NodeError> {
        Err(NodeError::new(Code::Internal, "a stub cannot run"))
    }

    fn migrate(
        &self,
        _from_version: u32,
        widgets: BTreeMap<String, Datum>,
    ) -> Result<BTreeMap<String, Datum>, NodeError> {
        Ok(widgets)
    }
}

fn input(name: &'static str, ty: PortType, widget: Option<Widget>) -> InputSpec {
    InputSpec {
        name,
        ty,
        required: widget.is_none(),
        widget,
        lazy: false,
        whole_list: false,
        help: "",
    }
}

fn stub(
    type_name: &'static str,
    version: u32,
    inputs: Vec<InputSpec>,
    outputs: &[(&'static str, PortType)],
) -> Arc<dyn Node> {
    let output = |(name, ty): &(&'static str, PortType)| OutputSpec {
        name,
        ty: ty.clone(),
        list: false,
        help: "",
    };
    Arc::new(Stub(NodeSpec {
        type_name,
        version,
        title: "",
        category: "",
        help: "",
        inputs,
        outputs: outputs.iter().map(output).collect(),
        exactness: Exactness::Exact,
        durable: true,
        cheap: true,
        lane: Lane::Cpu,
        output_node: outputs.is_empty(),
    }))
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let float = Widget::Float {
        default: 0.5,
        min: -1.0,
        max: 1.0,
    };
    let int = Widget::Int {
        default: 2,
        min: 0,
        max: 9,
    };
    let choice = Widget::Choice {
        default: "x",
        options: &["x", "y"],
    };
    let text = Widget::Text {
        default: "",
        multiline: true,
        max_chars: 9,
    };
    let asset = Widget::Asset { accept: &[] };
    let data = Widget::Data {
        default: Datum::Null,
    };
    let mut registry = Registry::new();
    let types = [
        stub(
            "w",
            2,
            vec![
                input("f", PortType::FLOAT, Some(float)),
                input("i", PortType::INT, Some(int)),
                input("s", PortType::INT, Some(Widget::Seed { default: 0 })),
                input("b", PortType::BOOL, Some(Widget::Bool { default: true })),
                input("c", PortType::TEXT, Some(choice)),
                input("t", PortType::TEXT, Some(text)),
                input("h", PortType::FILE, Some(asset)),
                input("d", PortType::DATA, Some(data)),
            ],
            &[("o", PortType::FLOAT), ("p", PortType::PICTURE)],
        ),
        stub(
            "a",
            1,
            vec![input("i", PortType::ANY, None)],
            &[("o", PortType::ANY)],
        ),
        stub(
            "p",
            1,
            vec![
                input("p", PortType::PICTURE, None),
                input("f", PortType::named("float,int"), None),
            ],
            &[("p", PortType::PICTURE), ("f", PortType::FLOAT)],
        ),
        stub("e", 1, vec![input("i", PortType::ANY, None)], &[]),
    ];
    for node in types {
        registry.add(node).expect("each name stands once");
    }
    registry
});

/// Any bytes as a document: what is read comes back from what is written, what can run has keys.
///
/// # Panics
/// When that does not hold.
pub fn document(bytes: &[u8]) {
    let Ok(read) = Document::parse(bytes, &Limits::default()) else {
        return;
    };
    let text = read.to_json().expect("what was read can be written");
    let again = Document::parse(&text, &Limits::default()).expect("what was written can be read");
    assert_eq!(again, read);
    assert_eq!(again.to_json().as_ref(), Ok(&text));

    let (document, _notes) = migrate(&read, &REGISTRY);
    let flattened = flatten_runnable(&document, &REGISTRY, &FlattenOptions::default());
    for problem in &flattened.problems {
        assert!(!problem.to_string().is_empty());
    }
    let graph = flattened.graph;
    let mut keys: Vec<Key> = Vec::with_capacity(graph.len());
    for (at, node) in graph.nodes().iter().enumerate() {
        let inputs: Vec<KeyInput<'_>> = node
            .inputs
            .iter()
            .map(|input| match input {
                FlatInput::Absent | FlatInput::Given(_) => KeyInput::Absent,
                FlatInput::Literal(datum) => KeyInput::Literal(datum),
                FlatInput::Link { node, .. } => {
                    assert!((*node as usize) < at, "a node links to one after it");
                    KeyInput::One(1, ContentHash::of(keys[*node as usize].as_bytes()))
                }
            })
            .collect();
        let maker = KeyMaker::new(node.node.as_ref()).expect("specs have keys");
        keys.push(maker.key(&inputs).expect("checked values have keys"));
    }
    if let Err(error) = flatten(&graph.to_document(), &REGISTRY) {
        panic!("what can run cannot run: {error}");
    }
}
