//! Paper pictures: the same everywhere, filled, and with their subjects in them.

use super::*;

fn backdrop(ground: Ground, light: Light, weather: Weather) -> Backdrop {
    Backdrop {
        ground,
        light,
        weather,
        lighthouse: true,
        papers: 1,
        seed: 7,
    }
}

const GROUNDS: [Ground; 12] = [
    Ground::Sea,
    Ground::Beach,
    Ground::Forest,
    Ground::Meadow,
    Ground::Village,
    Ground::Mountains,
    Ground::Desert,
    Ground::City,
    Ground::Room,
    Ground::Space,
    Ground::Underwater,
    Ground::Sky,
];

fn brightness(picture: &[u8]) -> f64 {
    let sum: u64 = picture.iter().map(|part| u64::from(*part)).sum();
    sum as f64 / picture.len() as f64
}

#[test]
fn every_place_is_painted_the_same_twice_and_unlike_the_others() {
    let paint_one = |ground| paint(&backdrop(ground, Light::Day, Weather::Clear), &[], (96, 54));
    let pictures: Vec<Vec<u8>> = GROUNDS.into_iter().map(paint_one).collect();
    for (ground, picture) in GROUNDS.into_iter().zip(&pictures) {
        assert_eq!(picture.len(), 96 * 54 * 4);
        assert_eq!(*picture, paint_one(ground));
        let same = pictures.iter().filter(|other| *other == picture).count();
        assert_eq!(same, 1, "{ground:?}");
    }
}

#[test]
fn night_is_darker_than_day_and_rain_duller_than_sun() {
    let at = |light, weather| {
        brightness(&paint(
            &backdrop(Ground::Meadow, light, weather),
            &[],
            (96, 54),
        ))
    };
    assert!(at(Light::Night, Weather::Clear) < at(Light::Day, Weather::Clear) - 40.0);
    assert!(at(Light::Day, Weather::Storm) < at(Light::Day, Weather::Clear) - 15.0);
}

#[test]
fn a_subject_stands_where_it_was_put() {
    let red: Vec<u8> = [220, 30, 30, 255].repeat(32 * 32);
    let cutout = Cutout {
        rgba: &red,
        width_px: 32,
        height_px: 32,
        centre: 0.5,
        base: 0.8,
        size: 0.4,
        flipped: false,
    };
    let scene = backdrop(Ground::Meadow, Light::Day, Weather::Clear);
    let picture = paint(&scene, &[cutout], (160, 90));
    let pixel = |x: usize, y: usize| {
        let at = (y * 160 + x) * 4;
        picture.get(at..at + 3).map(<[u8]>::to_vec)
    };
    let inside = pixel(80, 54).expect("in the picture");
    assert!(inside[0] > 170 && inside[1] < 80, "{inside:?}");
    let outside = pixel(20, 54).expect("in the picture");
    assert!(outside[0] < 170 || outside[1] > 80, "{outside:?}");
}

#[test]
fn odd_sizes_and_empty_cutouts_are_harmless() {
    let empty = Cutout {
        rgba: &[],
        width_px: 9,
        height_px: 9,
        centre: 2.0,
        base: 2.0,
        size: 1.0,
        flipped: true,
    };
    for size in [(0, 0), (1, 1), (17, 3), (3, 17)] {
        let scene = backdrop(Ground::Beach, Light::Dusk, Weather::Rain);
        assert_eq!(paint(&scene, &[empty], size).len(), size.0 * size.1 * 4);
    }
}
