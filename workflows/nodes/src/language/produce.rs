//! `story.produce`: a script from a premise.

use std::sync::Arc;

use engine_base::{Code, Datum, ProgressEvent};
use flow_graph::{
    Call, Exactness, Lane, Node, NodeContext, NodeError, NodeSpec, Outcome, PortType, Widget,
};
use flow_story::{Picture, ProduceEvent, ProduceOptions, produce, to_json};

use super::{LlmSource, seed};
use crate::spec;

/// A script from a premise.
pub(super) struct Produce {
    spec: NodeSpec,
    source: Arc<dyn LlmSource>,
}

impl Produce {
    pub(super) fn new(source: Arc<dyn LlmSource>) -> Self {
        let help = "Writes the script of a film from a premise: a language model finds the words, \
                    rules do the rest. The script says of each field who wrote it.";
        let mut spec = spec::node("story.produce", 1, "Write a script", "story", help);
        let text = |default, multiline, max_chars| Widget::Text {
            default,
            multiline,
            max_chars,
        };
        spec.inputs = vec![
            spec::set(
                "premise",
                PortType::TEXT,
                text("", true, 200_000),
                "What the film is about.",
            ),
            spec::set(
                "length",
                PortType::TEXT,
                text("45 s", false, 40),
                "5 s to 10 min.",
            ),
            spec::set(
                "fps",
                PortType::TEXT,
                text("24", false, 20),
                "Frames a second.",
            ),
            spec::set(
                "model",
                PortType::TEXT,
                text("", false, 1000),
                "Id, path or URL; empty for the default.",
            ),
            spec::data(
                "pictures",
                Datum::List(Vec::new()),
                "Names of pictures to choose from by their words.",
            ),
            spec::data(
                "sounds",
                Datum::List(Vec::new()),
                "Names of beds and ambiences.",
            ),
            spec::set(
                "seed",
                PortType::INT,
                Widget::Seed { default: 0 },
                "Decides every draw.",
            ),
        ];
        spec.outputs = vec![spec::gives("script", PortType::DATA, "The script.")];
        spec.exactness = Exactness::Recorded;
        spec.lane = Lane::Device;
        Self { spec, source }
    }
}

impl Node for Produce {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn side_data(&self) -> Datum {
        self.source.side_data()
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let wrong = |input: &str, why: String| {
            NodeError::new(Code::BadInput, format!("input {input:?}: {why}"))
        };
        let mut options = ProduceOptions {
            seed: seed(call.datum("seed")?)?,
            sounds: spec::read("sounds", call.datum("sounds")?)?,
            ..ProduceOptions::default()
        };
        let length = call.text("length")?.parse();
        options.length = length.map_err(|error| wrong("length", format!("{error}")))?;
        let fps = call.text("fps")?.parse();
        options.format.fps = fps.map_err(|error| wrong("fps", format!("{error}")))?;
        options
            .format
            .check()
            .map_err(|error| wrong("fps", error.to_string()))?;
        let names: Vec<String> = spec::read("pictures", call.datum("pictures")?)?;
        let picture = |name| Picture {
            name,
            caption: String::new(),
        };
        options.pictures = names.into_iter().map(picture).collect();
        let mut llm = self.source.open(call.text("model")?, context.cancel)?;
        let mut watch = |event: &ProduceEvent<'_>| {
            context.progress.report(ProgressEvent {
                what: event.stage.to_owned(),
                step: event.step as u64,
                of: event.of as u64,
                secs_left: None,
            });
        };
        let premise = call.text("premise")?;
        let made = produce(premise, &options, llm.as_mut(), &mut watch, context.cancel)
            .map_err(|error| NodeError::new(error.code(), error.to_string()))?;
        let script: Datum = serde_json::from_str(&to_json(&made.script))
            .map_err(|error| NodeError::new(Code::Internal, error.to_string()))?;
        Ok(Outcome::data(script))
    }
}
