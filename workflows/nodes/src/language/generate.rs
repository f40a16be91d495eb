//! `text.generate`: text by a language model.

use std::sync::Arc;

use engine_base::Datum;
use flow_graph::{
    Call, Exactness, Lane, Node, NodeContext, NodeError, NodeSpec, Outcome, PortType, Widget,
};
use flow_story::{LlmRequest, Message, Role};

use super::{LlmSource, failed, seed};
use crate::spec;

/// Text by a language model.
pub(super) struct Generate {
    spec: NodeSpec,
    source: Arc<dyn LlmSource>,
}

impl Generate {
    pub(super) fn new(source: Arc<dyn LlmSource>) -> Self {
        let help = "Asks a language model: ours, or a server's when the model is a URL such as \
                    http://127.0.0.1:8080/v1#model. The reply is kept; another seed asks again.";
        let mut spec = spec::node("text.generate", 1, "Generate text", "text", help);
        let text = |multiline, max_chars| Widget::Text {
            default: "",
            multiline,
            max_chars,
        };
        spec.inputs = vec![
            spec::set(
                "prompt",
                PortType::TEXT,
                text(true, 200_000),
                "What is asked.",
            ),
            spec::set(
                "system",
                PortType::TEXT,
                text(true, 20_000),
                "Standing instructions.",
            ),
            spec::set(
                "model",
                PortType::TEXT,
                text(false, 1000),
                "Id, path or URL; empty for the default.",
            ),
            spec::data(
                "schema",
                Datum::Null,
                "JSON schema that the reply has to meet.",
            ),
            spec::set(
                "max_tokens",
                PortType::INT,
                Widget::Int {
                    default: 256,
                    min: 1,
                    max: 8192,
                },
                "Longest reply in tokens.",
            ),
            spec::set(
                "temperature",
                PortType::FLOAT,
                Widget::Float {
                    default: 0.8,
                    min: 0.0,
                    max: 2.0,
                },
                "0 takes the likeliest words always.",
            ),
            spec::set(
                "seed",
                PortType::INT,
                Widget::Seed { default: 0 },
                "Decides every draw.",
            ),
        ];
        spec.outputs = vec![spec::gives("text", PortType::TEXT, "The reply.")];
        // The same type reaches our models and servers; only a record holds for both.
        spec.exactness = Exactness::Recorded;
        spec.lane = Lane::Device;
        Self { spec, source }
    }
}

impl Node for Generate {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn side_data(&self) -> Datum {
        self.source.side_data()
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let schema = match call.datum("schema")? {
            Datum::Null => None,
            schema => Some(spec::read("schema", schema)?),
        };
        let request = LlmRequest {
            system: call.text("system")?.to_owned(),
            messages: vec![Message {
                role: Role::User,
                text: call.text("prompt")?.to_owned(),
            }],
            schema,
            max_tokens: usize::try_from(call.int("max_tokens")?).unwrap_or(1),
            temperature: call.float("temperature")? as f32,
            seed: seed(call.datum("seed")?)?,
            stop: Vec::new(),
        };
        let mut llm = self.source.open(call.text("model")?, context.cancel)?;
        let reply = llm.complete(&request, context.cancel).map_err(failed)?;
        Ok(Outcome::data(reply.text))
    }
}
