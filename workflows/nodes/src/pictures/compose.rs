//! `picture.compose`: a picture laid of paper, with cut-out subjects.

use std::collections::BTreeMap;

use engine_base::{Code, Datum};
use flow_graph::{
    Call, DocNode, Document, Exactness, Link, Mode, Node, NodeContext, NodeError, NodeId, NodeSpec,
    Outcome, PortType, Widget,
};
use flow_media::paper::{Backdrop, Cutout, Ground, Light, Weather, paint};
use flow_media::still::{SavePicture, SaveSamples, StillOptions, load_still_noted, save_still};
use flow_media::{Picture, Pixels};
use flow_story::{PictureGround, PictureLight, PictureSpec, PictureWeather};

use super::failed;
use crate::basic::ListJoin;
use crate::spec;

/// Largest side of a picture.
const SIDE_MAX_PX: i64 = 8192;

/// A place painted in layers, and subjects standing in it.
pub(super) struct Compose {
    spec: NodeSpec,
}

impl Compose {
    pub(super) fn new() -> Self {
        let help = "Lays a picture of paper: a place by time of day and weather, with the subjects \
                    cut out and set into it.";
        let mut spec = spec::node("picture.compose", 1, "Compose picture", "image", help);
        let side = |default| Widget::Int {
            default,
            min: 16,
            max: SIDE_MAX_PX,
        };
        spec.inputs = vec![
            spec::optional(spec::list(
                "subjects",
                PortType::PICTURE,
                "Pictures with transparency, as many as the spec has subjects.",
            )),
            spec::data("spec", Datum::Null, "Place, light, weather and subjects."),
            spec::set("width_px", PortType::INT, side(1280), "Width."),
            spec::set("height_px", PortType::INT, side(720), "Height."),
        ];
        spec.outputs = vec![spec::gives(
            "picture",
            PortType::PICTURE,
            "The picture, as PNG.",
        )];
        // Floats: another kind of machine may round otherwise.
        spec.exactness = Exactness::Tolerant;
        Self { spec }
    }
}

fn backdrop_of(spec: &PictureSpec) -> Backdrop {
    Backdrop {
        ground: match spec.ground {
            PictureGround::Sea => Ground::Sea,
            PictureGround::Beach => Ground::Beach,
            PictureGround::Forest => Ground::Forest,
            PictureGround::Meadow => Ground::Meadow,
            PictureGround::Village => Ground::Village,
            PictureGround::Mountains => Ground::Mountains,
            PictureGround::Desert => Ground::Desert,
            PictureGround::City => Ground::City,
            PictureGround::Room => Ground::Room,
            PictureGround::Space => Ground::Space,
            PictureGround::Underwater => Ground::Underwater,
            PictureGround::Sky => Ground::Sky,
        },
        light: match spec.light {
            PictureLight::Day => Light::Day,
            PictureLight::Dawn => Light::Dawn,
            PictureLight::Dusk => Light::Dusk,
            PictureLight::Night => Light::Night,
        },
        weather: match spec.weather {
            PictureWeather::Clear => Weather::Clear,
            PictureWeather::Rain => Weather::Rain,
            PictureWeather::Snow => Weather::Snow,
            PictureWeather::Fog => Weather::Fog,
            PictureWeather::Storm => Weather::Storm,
        },
        lighthouse: spec.lighthouse,
        papers: spec.papers,
        seed: spec.seed,
    }
}

/// A picture's pixels with 8 bits a channel.
fn bytes_of(picture: Picture) -> Vec<u8> {
    match picture.pixels {
        Pixels::Rgba8(values) => values,
        Pixels::Rgba16(values) => values.into_iter().map(|value| (value >> 8) as u8).collect(),
    }
}

fn side(call: &Call, name: &str) -> Result<u32, NodeError> {
    let got = call.int(name)?;
    u32::try_from(got)
        .ok()
        .filter(|side| (16..=SIDE_MAX_PX).contains(&i64::from(*side)))
        .ok_or_else(|| {
            let message = format!("input {name:?} is {got}, expected 16 to {SIDE_MAX_PX}");
            NodeError::new(Code::BadInput, message)
        })
}

impl Node for Compose {
    fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    fn run(&self, context: &NodeContext<'_>, call: &Call) -> Result<Outcome, NodeError> {
        let spec: PictureSpec = spec::read("spec", call.datum("spec")?)?;
        let (width_px, height_px) = (side(call, "width_px")?, side(call, "height_px")?);
        let given = call.list("subjects");
        if given.len() != spec.subjects.len() {
            let message = format!(
                "input \"subjects\": expected {} pictures, as the spec has subjects, got {}",
                spec.subjects.len(),
                given.len()
            );
            return Err(NodeError::new(Code::BadInput, message));
        }
        let mut drawn = Vec::with_capacity(given.len());
        for blob in given.iter().filter_map(flow_graph::Value::as_blob) {
            let path = context.artifacts.path(&blob.hash)?;
            let loaded = load_still_noted(&path, &StillOptions::default()).map_err(failed)?;
            let (width, height) = (loaded.picture.width_px, loaded.picture.height_px);
            drawn.push((bytes_of(loaded.picture), width as usize, height as usize));
        }
        let cutouts: Vec<Cutout<'_>> = drawn
            .iter()
            .zip(&spec.subjects)
            .map(|((rgba, width_px, height_px), subject)| Cutout {
                rgba,
                width_px: *width_px,
                height_px: *height_px,
                centre: subject.centre.clamp(-0.5, 1.5),
                base: subject.base.clamp(-0.5, 2.0),
                size: subject.size.clamp(0.02, 1.5),
                flipped: subject.flipped,
            })
            .collect();
        let size_px = (width_px as usize, height_px as usize);
        let painted = paint(&backdrop_of(&spec), &cutouts, size_px);
        let file = context.artifacts.temp("png")?;
        let picture = SavePicture {
            width_px,
            height_px,
            channels: 4,
            samples: SaveSamples::U8(&painted),
        };
        save_still(&picture, file.path()).map_err(failed)?;
        Ok(Outcome::blob(context.artifacts.adopt(file, "image/png")?))
    }
}

fn node(
    type_name: &str,
    widgets: BTreeMap<String, Datum>,
    links: BTreeMap<String, Link>,
) -> DocNode {
    DocNode {
        type_name: type_name.to_owned(),
        version: 1,
        widgets,
        links,
        mode: Mode::Run,
        title: None,
    }
}

/// A document that draws the pictures of `specs`, and the node of each. A subject that several pictures
/// show is drawn once.
///
/// # Errors
/// A number of a spec is none.
pub fn picture_document(
    specs: &BTreeMap<String, PictureSpec>,
    size_px: (u32, u32),
) -> Result<(Document, BTreeMap<String, NodeId>), NodeError> {
    let mut document = Document::new();
    let mut nodes = BTreeMap::new();
    for (name, spec) in specs {
        let links = spec.subjects.iter().map(|subject| {
            let mut id = format!("subject:{:08x}:{}", subject.seed, subject.prompt);
            let mut widgets = BTreeMap::from([
                ("prompt".to_owned(), Datum::from(subject.prompt.as_str())),
                ("seed".to_owned(), Datum::from(subject.seed)),
            ]);
            if !spec.negative.is_empty() {
                id = format!("{id}:without {}", spec.negative);
                let negative = Datum::from(spec.negative.as_str());
                widgets.insert("negative".to_owned(), negative);
            }
            document
                .nodes
                .insert(id.clone(), node("image.draw", widgets, BTreeMap::new()));
            Link::new(id, "picture")
        });
        let mut links: Vec<Link> = links.collect();
        if links.len() > 1 {
            let inputs = ListJoin::INPUTS.iter().map(|input| (*input).to_owned());
            let id = format!("subjects:{name}");
            let joined = node("list.join", BTreeMap::new(), inputs.zip(links).collect());
            document.nodes.insert(id.clone(), joined);
            links = vec![Link::new(id, "list")];
        }
        let value = serde_json::to_value(spec)
            .ok()
            .and_then(|value| serde_json::from_value::<Datum>(value).ok())
            .ok_or_else(|| {
                let message = format!("the picture of {name:?} cannot be written down");
                NodeError::new(Code::BadInput, message)
            })?;
        let widgets = BTreeMap::from([
            ("spec".to_owned(), value),
            ("width_px".to_owned(), Datum::from(size_px.0)),
            ("height_px".to_owned(), Datum::from(size_px.1)),
        ]);
        let links = links.into_iter().map(|link| ("subjects".to_owned(), link));
        let id = format!("picture:{name}");
        document.nodes.insert(
            id.clone(),
            node("picture.compose", widgets, links.collect()),
        );
        nodes.insert(name.clone(), id);
    }
    Ok((document, nodes))
}

#[cfg(test)]
mod tests;
