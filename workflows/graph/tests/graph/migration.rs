use engine_base::Datum;
use flow_graph::{DocNode, Document, MigrationOutcome, Subgraph, flatten, migrate, validate};

use crate::stubs::{HASH, registry};

fn old() -> Document {
    let mut document = Document::new();
    document
        .add("load", DocNode::new("picture.load", 1).set("file", HASH))
        .unwrap();
    let grade = DocNode::new("picture.grade", 1)
        .set("strength", 25)
        .link("image", "load", "picture");
    document.add("grade", grade).unwrap();
    let save = DocNode::new("save.picture", 1).link("picture", "grade", "image");
    document.add("save", save).unwrap();
    document
}

#[test]
fn older_nodes_are_brought_up_with_their_links() {
    let (registry, before) = (registry(), old());
    let (after, notes) = migrate(&before, &registry);
    assert_eq!(before, old(), "the document handed in was changed");
    let grade = &after.nodes["grade"];
    assert_eq!(
        (grade.version, grade.widgets.get("amount")),
        (2, Some(&Datum::Float(0.25)))
    );
    assert_eq!(grade.widgets.get("strength"), None);
    assert_eq!(grade.links["picture"].node, "load");
    assert_eq!(after.nodes["save"].links["picture"].output, "picture");
    assert_eq!(validate(&after, &registry), []);
    assert_eq!(flatten(&after, &registry).unwrap().len(), 3);
    let texts: Vec<String> = notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["node \"grade\": \"picture.grade\" version 1 brought to version 2"]
    );
    assert_eq!(
        migrate(&after, &registry),
        (after.clone(), vec![]),
        "a second time does nothing"
    );
}

#[test]
fn newer_and_refused_nodes_are_left_untouched() {
    let mut document = old();
    document.nodes.get_mut("grade").unwrap().version = 3;
    document.nodes.get_mut("save").unwrap().version = 0;
    document.nodes.get_mut("load").unwrap().type_name = "somebody.elses".into();
    let (after, notes) = migrate(&document, &registry());
    assert_eq!(after, document);
    let outcomes: Vec<_> = notes
        .iter()
        .map(|note| (note.node.as_str(), &note.outcome))
        .collect();
    let refused = MigrationOutcome::Refused {
        reason: "cannot read version 0".into(),
    };
    assert_eq!(
        outcomes,
        [("grade", &MigrationOutcome::Newer), ("save", &refused)]
    );
}

#[test]
fn ports_of_subgraphs_follow() {
    let mut document = Document::new();
    let mut part = Subgraph::new();
    part.add("g", DocNode::new("picture.grade", 1).set("strength", 50))
        .unwrap();
    let part = part.feeding("in", "g", "image").giving("out", "g", "image");
    document.subgraphs.insert("look".into(), part);
    document
        .add("load", DocNode::new("picture.load", 1).set("file", HASH))
        .unwrap();
    document
        .add(
            "look",
            DocNode::subgraph("look").link("in", "load", "picture"),
        )
        .unwrap();
    document
        .add(
            "save",
            DocNode::new("save.picture", 1).link("picture", "look", "out"),
        )
        .unwrap();
    let (after, notes) = migrate(&document, &registry());
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0].subgraph.as_deref(), Some("look"));
    let graph = flatten(&after, &registry()).unwrap();
    let ids: Vec<&str> = graph.nodes().iter().map(|node| node.id.as_str()).collect();
    assert_eq!(ids, ["load", "look:g", "save"]);
}
