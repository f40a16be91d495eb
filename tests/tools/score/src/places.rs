//! The three ambiences, from noise and a few tones. Every slow movement has a whole number of
//! turns in the loop, every sound that passes the end goes on at the beginning.

use std::f64::consts::{PI, TAU};

use crate::dice::Dice;
use crate::sound::{Filter, RATE, Room, Stereo, gain, samples};

/// A slow, smooth, looping wander over about -1..1: turns of 1 to `turns` in the loop.
struct Wander(Vec<(f64, f64, f64)>);

impl Wander {
    fn new(dice: &mut Dice, turns: u32) -> Self {
        let parts = (1..=turns).map(|turn| {
            (
                f64::from(turn),
                dice.between(0.0, TAU),
                dice.between(0.5, 1.0) / f64::from(turn).sqrt(),
            )
        });
        let parts: Vec<_> = parts.collect();
        let total: f64 = parts
            .iter()
            .map(|part| part.2 * part.2 / 2.0)
            .sum::<f64>()
            .sqrt();
        Self(
            parts
                .into_iter()
                .map(|(turn, at, high)| (turn, at, high / total / 1.8))
                .collect(),
        )
    }

    /// At `place` of the loop, 0..1.
    fn at(&self, place: f64) -> f64 {
        self.0
            .iter()
            .map(|(turn, start, high)| high * (TAU * turn * place + start).sin())
            .sum()
    }
}

/// Looping noise on two channels: white noise through `shape(channel)`, which sees time in
/// seconds and the noise, run once to settle and once for keeps.
fn noise<F>(length: usize, dice: &mut Dice, shared: f64, shape: impl Fn(usize) -> F) -> Stereo
where
    F: FnMut(f64, f64) -> f64,
{
    let mut white = || -> Vec<f64> { (0..length).map(|_| dice.noise()).collect() };
    let (both, left, right) = (white(), white(), white());
    let (share, own) = (shared.sqrt(), (1.0 - shared).sqrt());
    let channel = |number: usize, alone: &[f64]| {
        let mut shape = shape(number);
        let mut out = vec![0.0; length];
        for _ in 0..2 {
            for at in 0..length {
                let input = share * both[at] + own * alone[at];
                out[at] = shape(at as f64 / RATE, input);
            }
        }
        out
    };
    Stereo {
        left: channel(0, &left),
        right: channel(1, &right),
    }
}

/// Seconds from `start` to `at` in a loop of `secs`.
fn since(start: f64, at: f64, secs: f64) -> f64 {
    (at - start).rem_euclid(secs)
}

/// 0 to 1 and back, rising over `rise`, falling with time constant `fall`.
fn swell(at: f64, rise: f64, fall: f64) -> f64 {
    if at < rise {
        let x = at / rise;
        x * x * (3.0 - 2.0 * x)
    } else {
        (-(at - rise) / fall).exp()
    }
}

/// Puts `sounds` into `place` with the room's answer.
fn in_the_open(place: &mut Stereo, sounds: &Stereo, room: Room, dry: f64, wet: f64) {
    place.add_looped(0, sounds, dry);
    place.add_looped(0, &room.wet(sounds, 4.0), wet);
}

/// Surf on a shingle beach, a few gulls far out.
pub fn sea() -> Stereo {
    const SECS: f64 = 32.0;
    let length = samples(SECS);
    let mut dice = Dice::named("sea");
    // When each wave starts to lift, how strong it is, where along the beach it breaks.
    let waves: Vec<(f64, f64, f64)> = [
        (0.6, 0.85),
        (7.4, 1.0),
        (13.1, 0.62),
        (18.9, 0.95),
        (26.2, 0.72),
    ]
    .into_iter()
    .map(|(start, strong)| (start, strong, dice.between(-0.6, 0.6)))
    .collect();
    let side = |pan: f64, channel: usize| {
        let angle = (pan + 1.0) * PI / 4.0;
        1.3 * if channel == 0 {
            angle.cos()
        } else {
            angle.sin()
        }
    };
    let mut place = Stereo::silent(length);
    // The body of the water: low, never still.
    let mut wander = Wander::new(&mut dice, 9);
    let deep = noise(length, &mut dice, 0.35, |_| {
        let (mut first, mut second) = (
            Filter::Low(170.0, 0.6).start(),
            Filter::Low(420.0, 0.6).start(),
        );
        let wander = &wander;
        move |at, input| {
            let high = 1.0 + 0.35 * wander.at(at / SECS);
            (first.step(input) * 3.2 + second.step(input) * 0.6) * high
        }
    });
    place.add_looped(0, &deep, 0.55);
    // Waves: a lift, and the break that opens the sound up.
    let surf = noise(length, &mut dice, 0.3, |channel| {
        let mut body = Filter::Low(400.0, 0.7).start();
        let waves = &waves;
        move |at, input| {
            let (mut open, mut level) = (260.0, 0.0);
            for (start, strong, pan) in waves {
                let t = since(*start, at, SECS);
                level +=
                    strong * side(*pan * (1.0 - 0.1 * t.min(6.0)), channel) * swell(t, 3.0, 1.5);
                open += 3600.0 * strong * swell((t - 1.2).max(0.0), 2.0, 1.3);
            }
            body.step_at(open, input) * level * 1.5
        }
    });
    place.add_looped(0, &surf, 0.7);
    // Foam that runs back hissing, from noise of its own: two filters of opposite phase on one
    // noise would cut a moving notch.
    let foam = noise(length, &mut dice, 0.15, |channel| {
        let mut high = Filter::Band(3400.0, 0.35).start();
        let waves = &waves;
        move |at, input| {
            let mut hiss = 0.0;
            for (start, strong, pan) in waves {
                let t = since(*start, at, SECS);
                let own = strong * side(*pan * (1.0 - 0.1 * t.min(6.0)), channel);
                hiss += own * swell((t - 2.2).max(0.0), 1.7, 2.4);
            }
            high.step(input) * (hiss * 0.30 + 0.012)
        }
    });
    place.add_looped(0, &foam, 0.8);
    // Bubbles bursting in the foam: short bright grains while a wave runs back.
    wander = Wander::new(&mut dice, 5);
    for _ in 0..2600 {
        let at = dice.between(0.0, SECS);
        let foam: f64 = waves
            .iter()
            .map(|(start, strong, _)| {
                strong * swell((since(*start, at, SECS) - 3.4).max(0.0), 1.2, 2.2)
            })
            .sum();
        let hz = dice.between(1800.0, 7000.0);
        let grain_secs = dice.between(0.002, 0.009);
        let pan = dice.between(-0.9, 0.9);
        if dice.unit() < foam * (0.8 + 0.2 * wander.at(at / SECS)) {
            let grain: Vec<f64> = (0..samples(grain_secs))
                .map(|n| {
                    let t = n as f64 / RATE;
                    (TAU * hz * t).sin() * (PI * t / grain_secs).sin().powi(2)
                })
                .collect();
            let loud = dice.between(0.012, 0.06);
            place.add_mono(at, &grain, pan, loud);
        }
    }
    // Gulls.
    let mut gulls = Stereo::silent(length);
    for (start, count, pan, loud) in [
        (4.2, 3, -0.5, 0.8),
        (15.0, 2, 0.65, 0.55),
        (23.4, 4, 0.2, 0.7),
    ] {
        let mut at = start;
        for call in 0..count {
            let cry = gull(&mut dice, 1.0 - 0.06 * f64::from(call));
            gulls.add_mono(at, &cry, pan + 0.05 * f64::from(call), loud);
            at += dice.between(0.42, 0.62);
        }
    }
    gulls.filter_looped(Filter::Low(4200.0, 0.6));
    let air = Room {
        decay_secs: 1.8,
        damp_hz: 3000.0,
        size: 1.4,
        predelay_secs: 0.06,
    };
    in_the_open(&mut place, &gulls, air, 0.20, 0.20);
    place.filter_looped(Filter::High(38.0, 0.7));
    place
}

/// One cry: a reedy tone that jumps up and falls, its harmonics fading upward.
fn gull(dice: &mut Dice, height: f64) -> Vec<f64> {
    let secs = dice.between(0.28, 0.4);
    let base = 830.0 * height * dice.between(0.96, 1.04);
    let mut turn = 0.0;
    let rough = dice.between(55.0, 75.0);
    (0..samples(secs))
        .map(|n| {
            let x = n as f64 / RATE / secs;
            let bend = if x < 0.22 {
                1.0 + 0.55 * (x / 0.22).powf(0.7)
            } else {
                1.55 - 0.62 * (x - 0.22) / 0.78
            };
            turn += TAU * base * bend / RATE;
            let reed: f64 = (1..=6)
                .map(|k| {
                    f64::from(k).powf(-0.9)
                        * (f64::from(k) * turn).sin()
                        * if k == 2 { 1.5 } else { 1.0 }
                })
                .sum();
            let flutter = 1.0 - 0.25 * (TAU * rough * n as f64 / RATE).sin() * (1.0 - x);
            reed * flutter * (PI * x.powf(0.6)).sin().max(0.0) * 0.35
        })
        .collect()
}

/// Wind in leaves, birds near and far.
pub fn forest() -> Stereo {
    const SECS: f64 = 32.0;
    let length = samples(SECS);
    let mut dice = Dice::named("forest");
    let gusts = Wander::new(&mut dice, 7);
    let sides = [Wander::new(&mut dice, 11), Wander::new(&mut dice, 11)];
    let wind = |at: f64, channel: usize| {
        let place = at / SECS;
        (0.55 + 0.33 * gusts.at(place) + 0.16 * sides[channel].at(place)).clamp(0.12, 1.4)
    };
    let mut place = Stereo::silent(length);
    // The mass of air in the trees.
    let air = noise(length, &mut dice, 0.4, |channel| {
        let mut low = Filter::Low(300.0, 0.6).start();
        let mut mid = Filter::Band(700.0, 0.5).start();
        let wind = &wind;
        move |at, input| {
            let now = wind(at, channel);
            low.step_at(180.0 + 260.0 * now, input) * (0.5 + 0.8 * now)
                + mid.step_at(450.0 + 700.0 * now, input) * 0.55 * now * now
        }
    });
    place.add_looped(0, &air, 0.42);
    // Leaves: a bright hiss that comes and goes with the gusts, broken up by their flutter.
    let leaves = noise(length, &mut dice, 0.1, |channel| {
        let mut high = Filter::Band(4200.0, 0.45).start();
        let mut flutter = Filter::Low(14.0, 0.7).start();
        let mut own = Dice::named(if channel == 0 {
            "leaves left"
        } else {
            "leaves right"
        });
        let wind = &wind;
        move |at, input| {
            let now = wind(at, channel);
            let shake = 1.0 + 14.0 * flutter.step(own.noise());
            high.step_at(3000.0 + 2400.0 * now, input) * now.powf(1.8) * shake.clamp(0.2, 2.2)
        }
    });
    place.add_looped(0, &leaves, 0.2);
    // Single leaves and twigs.
    for _ in 0..900 {
        let at = dice.between(0.0, SECS);
        let (pan, hz) = (dice.between(-1.0, 1.0), dice.between(2200.0, 6500.0));
        let secs = dice.between(0.012, 0.06);
        if dice.unit() < wind(at, usize::from(pan > 0.0)).powi(2) {
            let mut band = Filter::Band(hz, 1.6).start();
            let rustle: Vec<f64> = (0..samples(secs))
                .map(|n| {
                    let x = n as f64 / RATE / secs;
                    band.step(dice.noise()) * (PI * x).sin() * (-3.0 * x).exp()
                })
                .collect();
            let loud = dice.between(0.02, 0.11);
            place.add_mono(at, &rustle, pan, loud);
        }
    }
    // Birds. Each sings from its tree, in its own time.
    let (mut near, mut far) = (Stereo::silent(length), Stereo::silent(length));
    let mut thrush = Dice::named("thrush");
    for start in [1.4, 5.1, 9.9, 14.3, 21.0, 25.2, 28.9] {
        sing_thrush(&mut near, &mut thrush, start, -0.45);
    }
    let mut warbler = Dice::named("warbler");
    for start in [3.6, 12.2, 18.0, 27.1] {
        sing_chiffchaff(&mut near, &mut warbler, start, 0.6);
    }
    for start in [7.7, 17.1, 23.6, 30.6] {
        sing_trill(&mut far, &mut warbler, start, 0.15);
    }
    for start in [2.8, 11.0, 19.4] {
        coo(&mut far, start, 0.75);
    }
    near.filter_looped(Filter::High(900.0, 0.7));
    let wood = Room {
        decay_secs: 1.4,
        damp_hz: 3800.0,
        size: 1.3,
        predelay_secs: 0.045,
    };
    in_the_open(&mut place, &near, wood, 0.13, 0.08);
    far.filter_looped(Filter::Low(4800.0, 0.6));
    in_the_open(&mut place, &far, wood, 0.06, 0.10);
    place.filter_looped(Filter::High(45.0, 0.7));
    place
}

/// A whistle gliding over `points` (Hz, evenly in time), a little vibrato, soft ends.
fn whistle(points: &[f64], secs: f64, vibrato: (f64, f64)) -> Vec<f64> {
    let mut turn = 0.0;
    (0..samples(secs))
        .map(|n| {
            let t = n as f64 / RATE;
            let x = t / secs;
            let along = x * (points.len() - 1) as f64;
            let (at, part) = (along.floor() as usize, along.fract());
            let ease = part * part * (3.0 - 2.0 * part);
            let next = points[(at + 1).min(points.len() - 1)];
            let hz = points[at] + (next - points[at]) * ease;
            turn += TAU * (hz + vibrato.1 * (TAU * vibrato.0 * t).sin()) / RATE;
            let shape = (x / 0.12).min(1.0).min((1.0 - x) / 0.25).max(0.0);
            (turn.sin() + 0.10 * (2.0 * turn).sin() + 0.03 * (3.0 * turn).sin()) * shape * shape
        })
        .collect()
}

/// A phrase of four to seven clear whistles, the last one a squeak.
fn sing_thrush(place: &mut Stereo, dice: &mut Dice, start: f64, pan: f64) {
    const HEIGHTS: [f64; 7] = [1750.0, 1980.0, 2230.0, 2350.0, 2650.0, 2980.0, 3350.0];
    let mut at = start;
    let count = 4 + (dice.unit() * 4.0) as usize;
    for call in 0..count {
        let pick = |dice: &mut Dice| HEIGHTS[(dice.unit() * 7.0) as usize % 7];
        let secs = dice.between(0.10, 0.26);
        let points = [
            pick(dice),
            pick(dice),
            pick(dice) * dice.between(0.97, 1.03),
        ];
        let mut song = whistle(&points, secs, (24.0, 25.0));
        if call + 1 == count {
            song = whistle(&[4300.0, 5400.0, 4000.0, 5100.0], 0.16, (60.0, 180.0));
            song.iter_mut().for_each(|sample| *sample *= 0.35);
        }
        place.add_mono(at, &song, pan, dice.between(0.6, 1.0));
        at += secs + dice.between(0.04, 0.16);
    }
}

/// Two notes in turn, unevenly.
fn sing_chiffchaff(place: &mut Stereo, dice: &mut Dice, start: f64, pan: f64) {
    let mut at = start;
    for call in 0..7 {
        let top = if (call + usize::from(dice.unit() < 0.2)) % 2 == 0 {
            5200.0
        } else {
            4300.0
        };
        let song = whistle(&[top * 1.22, top, top * 0.96], 0.10, (0.0, 0.0));
        place.add_mono(at, &song, pan, dice.between(0.3, 0.42));
        at += dice.between(0.24, 0.31);
    }
}

/// A fast falling rattle that ends in a flourish.
fn sing_trill(place: &mut Stereo, dice: &mut Dice, start: f64, pan: f64) {
    let mut at = start;
    for call in 0..14 {
        let down = 1.0 - 0.028 * f64::from(call);
        let song = whistle(&[4700.0 * down, 3300.0 * down], 0.055, (0.0, 0.0));
        place.add_mono(at, &song, pan, 0.45 + 0.03 * f64::from(call));
        at += 0.072 + 0.004 * dice.unit();
    }
    let song = whistle(&[2500.0, 3900.0, 2700.0], 0.2, (0.0, 0.0));
    place.add_mono(at, &song, pan, 0.8);
}

/// A wood pigeon: five soft low notes.
fn coo(place: &mut Stereo, start: f64, pan: f64) {
    let mut at = start;
    for (hz, secs, loud) in [
        (455.0, 0.22, 0.7),
        (490.0, 0.62, 1.0),
        (470.0, 0.5, 0.85),
        (450.0, 0.2, 0.6),
        (462.0, 0.3, 0.6),
    ] {
        let song = whistle(&[hz * 0.97, hz, hz * 0.985], secs, (0.0, 0.0));
        place.add_mono(at, &song, pan, loud * 1.1);
        at += secs + 0.07;
    }
}

/// A quiet room: fire in the grate, a clock on the wall.
pub fn room() -> Stereo {
    const SECS: f64 = 30.0;
    let length = samples(SECS);
    let mut dice = Dice::named("room");
    let mut place = Stereo::silent(length);
    // The room itself: air, barely there.
    let air = noise(length, &mut dice, 0.5, |_| {
        let mut low = Filter::Low(140.0, 0.6).start();
        let mut soft = Filter::Low(900.0, 0.5).start();
        move |_, input| low.step(input) * 1.2 + soft.step(input) * 0.10
    });
    place.add_looped(0, &air, 0.05);
    let mut fire = Stereo::silent(length);
    // Flames: low noise that licks and flutters.
    let breath = Wander::new(&mut dice, 13);
    let flames = noise(length, &mut dice, 0.55, |channel| {
        let mut low = Filter::Band(150.0, 0.5).start();
        let mut hiss = Filter::Band(2600.0, 0.4).start();
        let mut flutter = Filter::Low(9.0, 0.8).start();
        let mut own = Dice::named(if channel == 0 {
            "flames left"
        } else {
            "flames right"
        });
        let breath = &breath;
        move |at, input| {
            let lick = (1.0 + 18.0 * flutter.step(own.noise())).clamp(0.25, 2.4);
            let now = 1.0 + 0.35 * breath.at(at / SECS);
            low.step_at(130.0 + 60.0 * lick, input) * lick * now * 1.5
                + hiss.step(input) * 0.035 * now * lick
        }
    });
    fire.add_looped(0, &flames, 0.16);
    // Crackle: snaps in loose clusters, most of them small.
    let mut at = 0.0;
    while at < SECS {
        let cluster = 1 + (dice.unit().powi(2) * 9.0) as usize;
        let pan = dice.between(-0.4, 0.4);
        let mut moment = at;
        for _ in 0..cluster {
            let size = dice.unit().powi(4);
            let snap = snap(&mut dice, size);
            fire.add_mono(
                moment,
                &snap,
                pan + dice.between(-0.15, 0.15),
                0.10 + 0.9 * size,
            );
            moment += dice.between(0.004, 0.09);
        }
        at += -0.30 * (1.0 - dice.unit()).ln();
    }
    // Two logs settle.
    for (start, pan) in [(8.7, -0.2), (22.3, 0.25)] {
        let thud = thud(&mut dice);
        fire.add_mono(start, &thud, pan, 0.35);
    }
    let parlour = Room {
        decay_secs: 0.55,
        damp_hz: 3200.0,
        size: 0.33,
        predelay_secs: 0.007,
    };
    in_the_open(&mut place, &fire, parlour, 1.0, 0.22);
    // The clock: one second a swing, tick and tock not alike.
    let mut clock = Stereo::silent(length);
    for second in 0..30 {
        let tick = tick(&mut dice, second % 2 == 0);
        clock.add_mono(f64::from(second) + 0.5, &tick, 0.55, 1.0);
    }
    in_the_open(&mut place, &clock, parlour, 0.17, 0.12);
    place.filter_looped(Filter::High(40.0, 0.7));
    place
}

/// A snap of burning wood: a click that rings in the wood for a moment.
fn snap(dice: &mut Dice, size: f64) -> Vec<f64> {
    let hz = 900.0 + 4200.0 * dice.unit() * (1.0 - 0.6 * size);
    let fall = 0.0012 + 0.010 * size * dice.unit();
    let mut band = Filter::Band(hz, 1.1).start();
    (0..samples(fall * 8.0))
        .map(|n| {
            let t = n as f64 / RATE;
            band.step(dice.noise()) * (t / 0.0003).min(1.0) * (-t / fall).exp()
        })
        .collect()
}

fn thud(dice: &mut Dice) -> Vec<f64> {
    let mut low = Filter::Low(260.0, 0.8).start();
    (0..samples(0.5))
        .map(|n| {
            let t = n as f64 / RATE;
            (low.step(dice.noise()) * 1.4 + 0.5 * (TAU * 84.0 * t).sin())
                * (t / 0.004).min(1.0)
                * (-t / 0.09).exp()
        })
        .collect()
}

/// The escapement's click and the case that answers.
fn tick(dice: &mut Dice, first: bool) -> Vec<f64> {
    let tones = if first {
        [
            (2350.0, 0.5, 0.006),
            (3900.0, 0.3, 0.004),
            (640.0, 0.5, 0.018),
        ]
    } else {
        [
            (1980.0, 0.5, 0.007),
            (3300.0, 0.25, 0.004),
            (560.0, 0.55, 0.020),
        ]
    };
    let loud = dice.between(0.94, 1.06);
    (0..samples(0.12))
        .map(|n| {
            let t = n as f64 / RATE;
            let rung: f64 = tones
                .iter()
                .map(|(hz, high, fall)| high * (TAU * hz * t).sin() * (-t / fall).exp())
                .sum();
            let click = dice.noise() * 0.4 * (-t / 0.0012).exp();
            loud * (rung + click) * (t / 0.0004).min(1.0)
        })
        .collect()
}

/// Level of a place in LUFS, below that of music.
pub const LUFS: f64 = -22.0;

/// Everything above `hz` of a place, in dB against the whole; used to look at its balance.
pub fn share_above(sound: &Stereo, hz: f64) -> f64 {
    let mut above = sound.clone();
    above.filter_looped(Filter::High(hz, 0.7));
    let power = |sound: &Stereo| {
        sound
            .left
            .iter()
            .chain(&sound.right)
            .map(|sample| sample * sample)
            .sum::<f64>()
    };
    10.0 * (power(&above) / power(sound).max(gain(-200.0))).log10()
}
