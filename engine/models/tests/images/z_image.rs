//! Z-Image.

use engine_base::CancelToken;
use engine_models::{ZImageConfig, load_z_image};
use engine_tensor::Cpu;

use crate::fixture::Fixture;

#[test]
fn z_image_predicts_what_the_reference_does() {
    let fixture = Fixture::open("z_image");
    let cpu = Cpu::new(2).unwrap();
    let config: ZImageConfig = fixture.json("transformer/config.json");
    let weights = fixture.weights("transformer");
    let model = load_z_image(&weights, "", &config, &cpu).unwrap();
    let text = fixture.input("transformer.cap_feats.0");
    let latent = fixture.input("transformer.x.0");
    let t = fixture.input("transformer.t")[0];
    let cancel = CancelToken::new();
    let out = model.run(&latent, (8, 12), &text, t, &cancel).unwrap();
    fixture.check("transformer", "0", &out);
    assert!(model.run(&latent, (8, 11), &text, t, &cancel).is_err());
    assert!(model.run(&latent, (8, 12), &text[1..], t, &cancel).is_err());
}
