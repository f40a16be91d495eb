//! Node types that are described but never run.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine_base::{Code, Datum};
use flow_graph::{
    Call, Exactness, InputSpec, Lane, Node, NodeContext, NodeError, NodeSpec, Outcome, OutputSpec,
    PortRenames, PortType, Registry, Widget,
};

pub(crate) const MASK: PortType = PortType::named("mask");

pub(crate) struct Stub {
    pub(crate) spec: NodeSpec,
    pub(crate) side_data: Datum,
}

impl Node for Stub {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn run(&self, _context: &NodeContext<'_>, _call: &Call) -> Result<Outcome, NodeError> {
        Err(NodeError::new(Code::Internal, "a stub cannot run"))
    }

    fn side_data(&self) -> Datum {
        self.side_data.clone()
    }

    fn check(&self, widgets: &BTreeMap<String, Datum>) -> Vec<String> {
        let cursed = |datum: &&Datum| datum.as_i64() == Some(13);
        let steps = widgets.get("steps").filter(cursed);
        steps
            .map(|_| "steps: expected anything but 13, got 13".to_owned())
            .into_iter()
            .collect()
    }

    /// Version 1 of `picture.grade` had `strength` in percent and `image` for `picture`.
    fn migrate(
        &self,
        from_version: u32,
        mut widgets: BTreeMap<String, Datum>,
    ) -> Result<BTreeMap<String, Datum>, NodeError> {
        if self.spec.type_name != "picture.grade" || from_version != 1 {
            return Err(NodeError::new(
                Code::Refused,
                format!("cannot read version {from_version}"),
            ));
        }
        if let Some(percent) = widgets.remove("strength").and_then(|datum| datum.as_f64()) {
            widgets.insert("amount".into(), Datum::Float(percent / 100.0));
        }
        Ok(widgets)
    }

    fn renamed_ports(&self, from_version: u32) -> PortRenames {
        if self.spec.type_name == "picture.grade" && from_version == 1 {
            PortRenames {
                inputs: vec![("image".into(), "picture".into())],
                outputs: vec![("image".into(), "picture".into())],
            }
        } else {
            PortRenames::default()
        }
    }
}

pub(crate) fn input(name: &'static str, ty: PortType) -> InputSpec {
    InputSpec {
        name,
        ty,
        widget: None,
        required: true,
        lazy: false,
        whole_list: false,
        help: "",
    }
}

pub(crate) fn widget(name: &'static str, ty: PortType, widget: Widget) -> InputSpec {
    InputSpec {
        widget: Some(widget),
        ..input(name, ty)
    }
}

pub(crate) fn float(name: &'static str, default: f64, min: f64, max: f64) -> InputSpec {
    widget(name, PortType::FLOAT, Widget::Float { default, min, max })
}

pub(crate) fn spec(
    type_name: &'static str,
    version: u32,
    inputs: Vec<InputSpec>,
    outputs: &[(&'static str, PortType)],
) -> NodeSpec {
    NodeSpec {
        type_name,
        version,
        title: "",
        category: "test",
        help: "",
        inputs,
        outputs: outputs
            .iter()
            .map(|(name, ty)| OutputSpec {
                name,
                ty: ty.clone(),
                list: false,
                help: "",
            })
            .collect(),
        exactness: Exactness::Exact,
        durable: true,
        cheap: true,
        lane: Lane::Cpu,
        output_node: outputs.is_empty(),
    }
}

pub(crate) fn grade() -> NodeSpec {
    let inputs = vec![
        input("picture", PortType::PICTURE),
        float("amount", 0.5, 0.0, 1.0),
        widget(
            "steps",
            PortType::INT,
            Widget::Int {
                default: 20,
                min: 1,
                max: 100,
            },
        ),
        widget("seed", PortType::INT, Widget::Seed { default: 0 }),
        widget(
            "look",
            PortType::TEXT,
            Widget::Choice {
                default: "warm",
                options: &["warm", "cold", "plain"],
            },
        ),
        widget(
            "label",
            PortType::TEXT,
            Widget::Text {
                default: "",
                multiline: false,
                max_chars: 20,
            },
        ),
        widget("exact", PortType::BOOL, Widget::Bool { default: false }),
        widget(
            "curve",
            PortType::DATA,
            Widget::Data {
                default: Datum::Null,
            },
        ),
        InputSpec {
            required: false,
            ..input("mask", MASK)
        },
    ];
    spec(
        "picture.grade",
        2,
        inputs,
        &[("picture", PortType::PICTURE)],
    )
}

fn all() -> Vec<NodeSpec> {
    let picture = || input("picture", PortType::PICTURE);
    let asset = Widget::Asset {
        accept: &["image/*"],
    };
    let whole_list = InputSpec {
        whole_list: true,
        ..input("items", PortType::ANY)
    };
    vec![
        spec(
            "picture.load",
            1,
            vec![widget("file", PortType::FILE, asset)],
            &[("picture", PortType::PICTURE), ("mask", MASK)],
        ),
        grade(),
        spec(
            "picture.blend",
            1,
            vec![
                input("first", PortType::PICTURE),
                input("second", PortType::PICTURE),
            ],
            &[("picture", PortType::PICTURE)],
        ),
        spec(
            "picture.upscale",
            1,
            vec![input("model", PortType::named("model")), picture()],
            &[("picture", PortType::PICTURE)],
        ),
        spec(
            "mask.to_picture",
            1,
            vec![input("mask", MASK)],
            &[("picture", PortType::PICTURE)],
        ),
        spec(
            "math.constant",
            1,
            vec![float("value", 0.0, -1000.0, 1000.0)],
            &[("value", PortType::FLOAT)],
        ),
        spec(
            "math.add",
            1,
            vec![
                float("a", 0.0, -1000.0, 1000.0),
                float("b", 0.0, -1000.0, 1000.0),
            ],
            &[("sum", PortType::FLOAT)],
        ),
        spec(
            "any.pass",
            1,
            vec![input("in", PortType::ANY)],
            &[("out", PortType::ANY)],
        ),
        spec(
            "list.join",
            1,
            vec![whole_list],
            &[("list", PortType::DATA)],
        ),
        spec("save.picture", 1, vec![picture()], &[]),
        spec("save.any", 1, vec![input("value", PortType::ANY)], &[]),
    ]
}

pub(crate) fn registry() -> Registry {
    let mut registry = Registry::new();
    for spec in all() {
        let side_data = Datum::Null;
        registry.add(Arc::new(Stub { spec, side_data })).unwrap();
    }
    registry
}

pub(crate) const HASH: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
