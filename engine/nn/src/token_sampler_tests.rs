use super::*;

fn sampler(sampling: Sampling, vocab: usize) -> TokenSampler {
    TokenSampler::new(sampling, vocab).expect("parameters in range")
}

fn seeded(seed: u64) -> Sampling {
    Sampling {
        seed,
        ..Sampling::default()
    }
}

/// Logits like a model's: a few high ones over a wide floor.
fn wide_logits(vocab: usize, salt: u64) -> Vec<f32> {
    (0..vocab as u64)
        .map(|token| {
            let u = (mix(token ^ (salt << 32)) >> 40) as f32 / (1u32 << 24) as f32;
            -12.0 + 1.5 * (1.0 / (u + 1e-4)).ln()
        })
        .collect()
}

/// Chi-square of counts against expected shares.
fn chi_square(counts: &[u32], shares: &[f64]) -> f64 {
    let total = f64::from(counts.iter().sum::<u32>());
    let terms = counts.iter().zip(shares);
    terms
        .map(|(&n, share)| (f64::from(n) - total * share).powi(2) / (total * share))
        .sum()
}

fn softmax(logits: &[f32], temperature: f32) -> Vec<f64> {
    let exps: Vec<f64> = logits
        .iter()
        .map(|&l| f64::from(l / temperature).exp())
        .collect();
    let sum: f64 = exps.iter().sum();
    exps.iter().map(|e| e / sum).collect()
}

const LOGITS: [f32; 8] = [1.0, -0.5, 2.0, 0.0, 0.7, -1.5, 1.9, 0.3];

/// 0.1 % of true distributions go over it, at 7 degrees of freedom.
const CHI_SQUARE_7: f64 = 24.32;

#[test]
fn draws_follow_softmax_over_positions() {
    for (seed, temperature) in [(0, 1.0), (1, 0.7), (0xdead_beef, 1.6), (u64::MAX, 1.0)] {
        let sampling = Sampling {
            temperature,
            ..seeded(seed)
        };
        let mut sampler = sampler(sampling, 8);
        let mut counts = [0u32; 8];
        for position in 0..20_000 {
            let token = sampler.draw(&LOGITS, position, None).expect("a token");
            counts[token as usize] += 1;
        }
        let chi = chi_square(&counts, &softmax(&LOGITS, temperature));
        assert!(
            chi < CHI_SQUARE_7,
            "seed {seed}: chi-square {chi:.1}, {counts:?}"
        );
    }
}

#[test]
fn draws_follow_softmax_over_seeds() {
    for position in [0, 1, 4095] {
        let mut counts = [0u32; 8];
        for seed in 0..20_000 {
            let token = sampler(seeded(seed), 8).draw(&LOGITS, position, None);
            counts[token.expect("a token") as usize] += 1;
        }
        let chi = chi_square(&counts, &softmax(&LOGITS, 1.0));
        assert!(
            chi < CHI_SQUARE_7,
            "position {position}: chi-square {chi:.1}"
        );
    }
}

#[test]
fn neighbouring_draws_are_independent() {
    let flat = [0.0f32; 4];
    let mut sampler = sampler(seeded(5), 4);
    let mut draw = |position| sampler.draw(&flat, position, None).expect("a token");
    let mut counts = [0u32; 16];
    for pair in 0..20_000u64 {
        counts[(draw(2 * pair) * 4 + draw(2 * pair + 1)) as usize] += 1;
    }
    // 0.1 % of independent pairs go over it, at 15 degrees of freedom.
    let chi = chi_square(&counts, &[1.0 / 16.0; 16]);
    assert!(chi < 37.70, "chi-square {chi:.1}");
}

#[test]
fn winner_equals_the_plain_maximum_in_any_order() {
    let logits = wide_logits(5000, 1);
    let highest = logits.iter().copied().fold(f32::MIN, f32::max);
    let mut candidates: Vec<Candidate> = logits
        .iter()
        .enumerate()
        .map(|(token, &l)| Candidate {
            token: token as u32,
            score: l - highest,
        })
        .collect();
    let mut distinct = std::collections::BTreeSet::new();
    for position in 0..200 {
        let noise = Noise::new(9, position);
        let plain = candidates
            .iter()
            .map(|c| f64::from(c.score) + Noise::gumbel(noise.complement(c.token)))
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(at, _)| candidates[at].token);
        assert_eq!(noise.winner(&candidates), plain);
        candidates.reverse();
        assert_eq!(noise.winner(&candidates), plain);
        candidates.rotate_left(777);
        assert_eq!(noise.winner(&candidates), plain);
        distinct.extend(plain);
    }
    assert!(
        distinct.len() > 20,
        "{} tokens in 200 draws",
        distinct.len()
    );
}

#[test]
fn a_draw_does_not_depend_on_candidates_that_lose() {
    let logits = wide_logits(640, 2);
    let mut sampler = sampler(seeded(3), 640);
    for position in 0..100 {
        let winner = sampler.draw(&logits, position, None).expect("a token");
        let mut allowed = vec![0x5555_5555u32; 20];
        allowed[winner as usize / 32] |= 1 << (winner % 32);
        let again = sampler.draw(&logits, position, Some(&allowed));
        assert_eq!(again, Ok(winner));
    }
}

#[test]
fn the_noise_is_what_the_documentation_says() {
    fn documented(seed: u64, position: u64, token: u64) -> f64 {
        let a = mix(seed.wrapping_add(0x9e3779b97f4a7c15));
        let b = mix(a ^ position.wrapping_add(0xd1b54a32d192ed03));
        let token = token.wrapping_mul(0xff51afd7ed558ccd);
        let h = mix(b ^ token.wrapping_add(0x2545f4914f6cdd1d));
        let u = ((h >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
        -(-u.ln()).ln()
    }
    for (seed, position, token) in [(0, 0, 0u32), (7, 3, 49_151), (u64::MAX, u64::MAX, 5)] {
        let ours = Noise::gumbel(Noise::new(seed, position).complement(token));
        let expected = documented(seed, position, u64::from(token));
        assert!((ours - expected).abs() < 1e-9, "{ours} is not {expected}");
    }
    for end in [0, (1u64 << 52) - 1] {
        assert!(Noise::gumbel(end).is_finite());
    }
    // Pinned: the same seed must give the same text in every later version.
    let mut sampler = sampler(seeded(42), 8);
    let drawn: Vec<u32> = (0..12)
        .map(|position| sampler.draw(&LOGITS, position, None).expect("a token"))
        .collect();
    assert_eq!(drawn, PINNED);
}

const PINNED: [u32; 12] = [2, 2, 0, 4, 0, 0, 0, 2, 2, 4, 2, 7];

#[test]
fn seeds_and_positions_change_draws_and_repeat_them() {
    let logits = wide_logits(300, 4);
    let run = |seed: u64| -> Vec<u32> {
        let mut sampler = sampler(seeded(seed), 300);
        (0..40)
            .map(|position| sampler.draw(&logits, position, None).expect("a token"))
            .collect()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    // A draw is the same when nothing was drawn before it.
    let mut late = sampler(seeded(1), 300);
    assert_eq!(late.draw(&logits, 39, None), Ok(run(1)[39]));
}

#[test]
fn greedy_takes_the_highest_and_of_ties_the_lowest_id() {
    let mut greedy = sampler(Sampling::greedy(), 6);
    let logits = [0.0, 3.0, 1.0, 3.0, f32::NEG_INFINITY, 3.0];
    assert_eq!(greedy.draw(&logits, 0, None), Ok(1));
    assert_eq!(greedy.draw(&logits, 0, Some(&[0b101000])), Ok(3));
    assert_eq!(greedy.draw(&logits, 7, Some(&[0b010001])), Ok(0));
    assert_eq!(
        greedy.draw(&logits, 7, Some(&[0b010000])),
        Err(SampleError::NoneAllowed { position: 7 })
    );
    assert_eq!(
        greedy.draw(&logits, 7, Some(&[])),
        Err(SampleError::NoneAllowed { position: 7 })
    );
}

#[test]
fn filters_keep_what_they_say() {
    let kept = |change: &dyn Fn(&mut Sampling)| -> Vec<u32> {
        let mut sampling = seeded(11);
        change(&mut sampling);
        let mut sampler = sampler(sampling, 8);
        let drawn = (0..4000).map(|p| sampler.draw(&LOGITS, p, None).expect("a token"));
        let drawn: std::collections::BTreeSet<u32> = drawn.collect();
        drawn.into_iter().collect()
    };
    assert_eq!(kept(&|_| ()), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(kept(&|s| s.top_k = 2), [2, 6]);
    assert_eq!(kept(&|s| s.top_k = 1), [2]);
    assert_eq!(kept(&|s| s.top_k = 8), [0, 1, 2, 3, 4, 5, 6, 7]);
    // Shares, likeliest first: .336 .304 .124 .092 .061 ...
    assert_eq!(kept(&|s| s.top_p = 0.30), [2]);
    assert_eq!(kept(&|s| s.top_p = 0.60), [2, 6]);
    assert_eq!(kept(&|s| s.top_p = 0.66), [0, 2, 6]);
    // Of the likeliest two alone the first has .525.
    let two = |s: &mut Sampling, p| (s.top_k, s.top_p) = (2, p);
    assert_eq!(kept(&|s| two(s, 0.52)), [2]);
    assert_eq!(kept(&|s| two(s, 0.53)), [2, 6]);
    assert_eq!(kept(&|s| s.min_p = 0.3), [0, 2, 6]);
    assert_eq!(kept(&|s| s.min_p = 1.0), [2]);
    assert_eq!(
        kept(&|s| s.logit_bias = [(2, f32::NEG_INFINITY), (6, -50.0), (5, 40.0)].into()),
        [5]
    );
}

#[test]
fn top_p_over_many_equals_the_full_sort() {
    let logits = wide_logits(3000, 6);
    for top_p in [0.01, 0.5, 0.9, 0.999] {
        let mut all: Vec<Candidate> = logits
            .iter()
            .enumerate()
            .map(|(token, &score)| Candidate {
                token: token as u32,
                score: score / 40.0,
            })
            .collect();
        let mut ours = all.clone();
        keep_top_p(&mut ours, top_p);
        all.sort_unstable_by(by_rank);
        let total: f64 = all.iter().map(|c| f64::from(c.score).exp()).sum();
        let mut sum = 0.0;
        let keep = all.iter().position(|c| {
            sum += f64::from(c.score).exp();
            sum >= top_p * total * (1.0 - 1e-12)
        });
        all.truncate(keep.expect("the sum is reached") + 1);
        assert!(
            all.len().abs_diff(ours.len()) <= 1,
            "{} and {}",
            all.len(),
            ours.len()
        );
        let common = all.len().min(ours.len());
        assert_eq!(all[..common], ours[..common]);
    }
}

#[test]
fn penalties_push_seen_tokens_back() {
    let logits = [2.0, 1.9, -1.0, -1.1];
    let greedy = |change: &dyn Fn(&mut Sampling)| {
        let mut sampling = Sampling::greedy();
        change(&mut sampling);
        sampler(sampling, 4)
    };
    let mut repetition = greedy(&|s| s.repetition_penalty = 1.2);
    assert_eq!(repetition.draw(&logits, 0, None), Ok(0));
    repetition.see_prompt(&[0]).expect("a known token");
    assert_eq!(
        repetition.draw(&logits, 0, None),
        Ok(1),
        "2 / 1.2 is under 1.9"
    );
    repetition.see_reply(2).expect("a known token");
    let low = Some(&[0b1100u32][..]);
    assert_eq!(
        repetition.draw(&logits, 0, low),
        Ok(3),
        "-1 * 1.2 is under -1.1"
    );

    let mut presence = greedy(&|s| s.presence_penalty = 0.2);
    presence.see_prompt(&[0]).expect("a known token");
    assert_eq!(
        presence.draw(&logits, 0, None),
        Ok(0),
        "the prompt does not count"
    );
    presence.see_reply(0).expect("a known token");
    assert_eq!(presence.draw(&logits, 0, None), Ok(1));

    let mut frequency = greedy(&|s| s.frequency_penalty = 0.06);
    frequency.see_reply(0).expect("a known token");
    assert_eq!(frequency.draw(&logits, 0, None), Ok(0), "once costs 0.06");
    frequency.see_reply(0).expect("a known token");
    assert_eq!(frequency.draw(&logits, 0, None), Ok(1), "twice costs 0.12");
}

#[test]
fn bad_logits_are_named() {
    let mut sampler = sampler(seeded(0), 4);
    for (bad, at) in [(f32::NAN, 2), (f32::INFINITY, 3)] {
        let mut logits = [0.0f32; 4];
        logits[at] = bad;
        let error = sampler.draw(&logits, 17, None).expect_err("not a number");
        let text = error.to_string();
        assert!(text.contains(&format!("token {at} is")), "{text}");
        assert!(text.contains("position 17"), "{text}");
        assert_eq!(error.code(), Code::Corrupt);
    }
    let error = sampler.draw(&[0.0; 3], 0, None);
    assert_eq!(error, Err(SampleError::BadLength { got: 3, vocab: 4 }));
    let none = [f32::NEG_INFINITY; 4];
    let error = sampler.draw(&none, 5, None);
    assert_eq!(error, Err(SampleError::NoneAllowed { position: 5 }));
}

#[test]
fn extreme_but_valid_numbers_draw_something() {
    let logits = [f32::MAX, f32::MIN, 0.0, f32::MAX];
    for temperature in [0.0, 1e-30, 1.0, 100.0] {
        let sampling = Sampling {
            temperature,
            repetition_penalty: 100.0,
            ..seeded(1)
        };
        let mut sampler = sampler(sampling, 4);
        sampler.see_prompt(&[1]).expect("a known token");
        for position in [0, u64::MAX] {
            let token = sampler.draw(&logits, position, None).expect("a token");
            assert!(token == 0 || token == 3);
        }
    }
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let refused = |change: &dyn Fn(&mut Sampling)| -> String {
        let mut sampling = Sampling::default();
        change(&mut sampling);
        let error = TokenSampler::new(sampling, 10).expect_err("out of range");
        assert_eq!(error.code(), Code::BadInput);
        error.to_string()
    };
    assert_eq!(
        refused(&|s| s.temperature = -0.1),
        "cannot draw tokens with temperature -0.1: expected 0 to 100"
    );
    assert!(refused(&|s| s.temperature = f32::NAN).contains("temperature NaN"));
    assert!(refused(&|s| s.top_p = 0.0).contains("top_p 0"));
    assert!(refused(&|s| s.top_p = 1.01).contains("top_p 1.01"));
    assert!(refused(&|s| s.min_p = -1.0).contains("min_p -1"));
    assert!(refused(&|s| s.repetition_penalty = 0.0).contains("repetition_penalty 0"));
    assert!(refused(&|s| s.presence_penalty = 101.0).contains("presence_penalty 101"));
    assert!(refused(&|s| s.frequency_penalty = f32::INFINITY).contains("frequency_penalty inf"));
    assert!(refused(&|s| s.logit_bias = [(1, f32::NAN)].into()).contains("logit_bias NaN"));
    assert_eq!(
        refused(&|s| s.logit_bias = [(10, 1.0)].into()),
        "cannot draw tokens with logit_bias of token 10: expected an id under 10"
    );
    let mut sampler = sampler(Sampling::default(), 10);
    assert!(sampler.see_prompt(&[3, 10]).is_err());
    assert!(sampler.see_reply(10).is_err());
}
