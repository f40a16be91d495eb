//! Pictures that are begun with, masks, references.

use engine_pipelines::{GivenPicture, ImageRequest, InitPicture};

use crate::tiny::{MODELS, Tiny};
use crate::{apart, draw, open, request};

fn stripes(width: u32, height: u32) -> GivenPicture {
    let bytes = (0..width * height).flat_map(|at| {
        let (y, x) = (at / width, at % width);
        let dark = if (x / 8 + y / 16) % 2 == 0 { 40 } else { 210 };
        [dark, 255 - dark, (4 * y % 256) as u8, 255]
    });
    GivenPicture::new(width, height, bytes.collect()).unwrap()
}

fn begun(strength: f32, seed: u64) -> ImageRequest {
    ImageRequest {
        init: Some(InitPicture {
            picture: stripes(64, 64),
            strength,
        }),
        steps: Some(4),
        ..request("a red kite", seed)
    }
}

#[test]
fn a_picture_is_left_as_far_as_its_strength_says() {
    for model in MODELS {
        let tiny = Tiny::new(model);
        let pipeline = open(&tiny);
        let count = |strength: f32| {
            let mut of = 0;
            pipeline
                .draw(&begun(strength, 7), &mut |step| {
                    of = step.of;
                    std::ops::ControlFlow::Continue(())
                })
                .unwrap();
            of
        };
        assert_eq!((count(0.5), count(0.01)), (2, 1), "{model}");
        let half = draw(&pipeline, &begun(0.5, 7)).unwrap();
        assert_ne!(draw(&pipeline, &begun(0.5, 8)).unwrap(), half, "{model}");
        // With all strength nothing of it is left.
        let all = draw(&pipeline, &begun(1.0, 7)).unwrap();
        let plain = ImageRequest {
            init: None,
            ..begun(1.0, 7)
        };
        assert_eq!(draw(&pipeline, &plain).unwrap(), all, "{model}");
        assert_ne!(half, all, "{model}");
    }
    // Without a size, the nearest to the picture's own.
    let tiny = Tiny::new("qwen_image_21");
    let pipeline = open(&tiny);
    let own = ImageRequest {
        init: Some(InitPicture {
            picture: stripes(90, 70),
            strength: 0.5,
        }),
        width_px: 0,
        height_px: 0,
        ..begun(0.5, 7)
    };
    let settled = pipeline.settle(&own).unwrap();
    assert_eq!((settled.width_px, settled.height_px), (96, 64));
}

#[test]
fn what_a_mask_leaves_stays_byte_for_byte() {
    let mut bytes = vec![0; 4 * 64 * 64];
    for (at, pixel) in bytes.chunks_exact_mut(4).enumerate() {
        pixel[3] = 255;
        if at / 64 >= 20 && at / 64 < 50 && at % 64 >= 32 {
            pixel[..3].fill(255);
        }
    }
    let mask = GivenPicture::new(64, 64, bytes.clone()).unwrap();
    for model in ["qwen_image_21", "flux2", "z_image", "sd15"] {
        let tiny = Tiny::new(model);
        let pipeline = open(&tiny);
        let wanted = ImageRequest {
            mask: Some(mask.clone()),
            ..begun(1.0, 7)
        };
        let drawn = draw(&pipeline, &wanted).unwrap();
        let own = stripes(64, 64);
        let mut changed = 0;
        let pixels = drawn.rgba.chunks_exact(4).zip(own.rgba().chunks_exact(4));
        for ((now, before), mask) in pixels.zip(bytes.chunks_exact(4)) {
            if mask[0] == 0 {
                assert_eq!(now, before, "{model}");
            } else if now != before {
                changed += 1;
            }
        }
        assert!(changed > 30 * 32 / 2, "{model}: {changed}");
        // What is drawn knows what is around it.
        let alone = ImageRequest {
            mask: None,
            ..wanted
        };
        assert_ne!(draw(&pipeline, &alone).unwrap(), drawn, "{model}");
    }
}

#[test]
fn a_picture_is_drawn_further_on_all_sides() {
    let tiny = Tiny::new("qwen_image_21");
    let pipeline = open(&tiny);
    let (picture, mask) = stripes(48, 32).outpainted((64, 64)).unwrap();
    let wanted = ImageRequest {
        init: Some(InitPicture {
            picture: picture.clone(),
            strength: 1.0,
        }),
        mask: Some(mask),
        ..request("a red kite", 7)
    };
    let drawn = draw(&pipeline, &wanted).unwrap();
    for y in 16..48 {
        let row = 4 * (64 * y + 8)..4 * (64 * y + 56);
        assert_eq!(drawn.rgba[row.clone()], picture.rgba()[row], "row {y}");
    }
    assert_ne!(drawn.rgba[..4 * 64], picture.rgba()[..4 * 64]);
}

#[test]
fn references_change_the_picture_each_in_its_place() {
    for (model, most) in [
        ("qwen_image_21", 10),
        ("qwen_image", 3),
        ("flux2", 10),
        ("flux3", 10),
    ] {
        let tiny = Tiny::new(model);
        let pipeline = open(&tiny);
        let with = |references: Vec<GivenPicture>| {
            let wanted = ImageRequest {
                references,
                steps: Some(1),
                ..request("a red kite", 7)
            };
            draw(&pipeline, &wanted)
        };
        let none = with(Vec::new()).unwrap();
        let (a, b) = (stripes(64, 32), stripes(32, 64));
        let one = with(vec![a.clone()]).unwrap();
        let both = with(vec![a.clone(), b.clone()]).unwrap();
        let turned = with(vec![b, a.clone()]).unwrap();
        assert_ne!(one, none, "{model}");
        assert_ne!(both, one, "{model}");
        assert!(apart(&turned, &both) > 0, "{model}");
        assert!(with(vec![a.clone(); most]).is_ok(), "{model}");
        let error = with(vec![a; most + 1]).unwrap_err().to_string();
        assert!(error.contains(&format!("at most {most}")), "{error}");
    }
    let tiny = Tiny::new("z_image");
    let wanted = ImageRequest {
        references: vec![stripes(64, 64)],
        ..request("a red kite", 7)
    };
    let error = draw(&open(&tiny), &wanted).unwrap_err().to_string();
    assert!(error.contains("z_image takes none"), "{error}");
}
