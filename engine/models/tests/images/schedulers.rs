//! Noise schedules and samplers against tables of diffusers.

use engine_nn::{
    DpmSolver, FlowShift, KRun, Prediction, Spacing, TrainedNoise, UniPc, even_sigmas, flow_sigmas,
    flow_step, h3_sigmas, h3_step, karras_sigmas, linear_sigmas,
};

use crate::fixture::Fixture;

/// Steps of a case: the model's outputs, noise, and checks.
struct Steps {
    fixture: Fixture,
    case: &'static str,
    x: Vec<f32>,
    outputs: Vec<Vec<f32>>,
    noises: Vec<Vec<f32>>,
}

impl Steps {
    fn of(case: &'static str) -> Self {
        let fixture = Fixture::open("schedulers");
        let x = fixture.input(&format!("{case}.sample"));
        let rows = |name: &str| -> Vec<Vec<f32>> {
            let all = fixture.input(&format!("{case}.{name}"));
            all.chunks_exact(x.len()).map(<[f32]>::to_vec).collect()
        };
        let noisy = ["euler_ancestral", "dpmpp_2m_sde_karras", "lcm"].contains(&case);
        Self {
            outputs: rows("model_outputs"),
            noises: if noisy { rows("noises") } else { Vec::new() },
            x,
            case,
            fixture,
        }
    }

    #[track_caller]
    fn check(&self, name: &str, got: &[f32]) {
        self.fixture.check_within(self.case, name, got);
    }

    #[track_caller]
    fn check_all(&self, name: &str, got: &[f64]) {
        let got: Vec<f32> = got.iter().map(|value| *value as f32).collect();
        self.check(name, &got);
    }

    /// All steps; `step` moves the latent.
    fn run(mut self, mut step: impl FnMut(usize, &mut Vec<f32>, &[f32], &[Vec<f32>])) {
        for at in 0..self.outputs.len() {
            step(at, &mut self.x, &self.outputs[at], &self.noises);
            self.check(&format!("latents.{at}"), &self.x);
        }
    }
}

fn stable_diffusion() -> TrainedNoise {
    TrainedNoise::scaled_linear(0.000_85, 0.012, false)
}

#[test]
fn flows_go_down_as_the_references_do() {
    let constant = FlowShift::Constant;
    let cases = [
        (
            "flow_euler_shift3",
            even_sigmas(6, constant(3.0)),
            constant(3.0),
            None,
        ),
        (
            "flow_euler_dynamic",
            linear_sigmas(6),
            FlowShift::Exponential(0.8),
            None,
        ),
        (
            "flow_euler_qwen",
            linear_sigmas(6),
            FlowShift::Exponential(0.65),
            Some(0.02),
        ),
        (
            "flow_euler_linear_shift",
            linear_sigmas(6),
            FlowShift::Linear(2.0),
            None,
        ),
        (
            "flow_euler_karras",
            karras_sigmas(1.0, 0.001, 6),
            constant(1.0),
            None,
        ),
        ("flow_map_euler", linear_sigmas(4), constant(5.0), None),
    ];
    for (case, grid, shift, terminal) in cases {
        let steps = Steps::of(case);
        let sigmas = flow_sigmas(&grid, shift, terminal).unwrap();
        steps.check("sigmas", &sigmas);
        let told: Vec<f32> = sigmas[..grid.len()].iter().map(|s| s * 1000.0).collect();
        steps.check("timesteps", &told);
        steps.run(|at, x, output, _| flow_step(x, output, sigmas[at], sigmas[at + 1]));
    }
}

#[test]
fn eulers_samplers_are_the_references() {
    let sd = stable_diffusion();
    let zero = TrainedNoise::scaled_linear(0.000_85, 0.012, true);
    let (noise, velocity) = (Prediction::Noise, Prediction::Velocity);
    for (case, run, kind) in [
        (
            "euler_leading",
            sd.euler_run(8, Spacing::Leading(1), false),
            noise,
        ),
        (
            "euler_karras_trailing",
            sd.euler_run(8, Spacing::Trailing, true),
            noise,
        ),
        (
            "euler_v_zero_snr",
            zero.euler_run(8, Spacing::Trailing, false),
            velocity,
        ),
    ] {
        let steps = Steps::of(case);
        steps.check_all("sigmas", &run.sigmas);
        steps.check_all("timesteps", &run.timesteps);
        let shown = run.euler_shown(0, &steps.x);
        steps.check("scaled.0", &shown);
        steps.run(|at, x, output, _| run.euler_step(at, kind, x, output));
    }
    let steps = Steps::of("euler_ancestral");
    let run = sd.euler_run(8, Spacing::Leading(1), false);
    steps.check_all("sigmas", &run.sigmas);
    steps.run(|at, x, output, noises| run.ancestral_step(at, x, output, &noises[at]));
}

#[test]
fn dpm_solvers_are_the_references() {
    let sd = stable_diffusion();
    for (case, run) in [
        ("dpmpp_2m", sd.dpm_run(8, false)),
        ("dpmpp_2m_karras", sd.dpm_run(8, true)),
        ("dpmpp_2m_sde_karras", sd.dpm_run(8, true)),
        ("dpmpp_flow", KRun::flow(8, 3.0)),
    ] {
        let steps = Steps::of(case);
        steps.check_all("sigmas", &run.sigmas);
        steps.check_all("timesteps", &run.timesteps);
        let mut solver = DpmSolver::new();
        steps.run(|at, x, output, noises| {
            let noise = noises.get(at).map(Vec::as_slice);
            solver.step(&run, at, x, (output, noise));
        });
    }
}

#[test]
fn ddim_and_latent_consistency_are_the_references() {
    let sd = stable_diffusion();
    let as_floats = |timesteps: &[usize]| timesteps.iter().map(|t| *t as f64).collect::<Vec<_>>();
    let steps = Steps::of("ddim");
    let timesteps = TrainedNoise::ddim_timesteps(6, 1);
    steps.check_all("timesteps", &as_floats(&timesteps));
    steps.run(|at, x, output, _| sd.ddim_step((timesteps[at], 6), x, output));
    let steps = Steps::of("lcm");
    let timesteps = TrainedNoise::lcm_timesteps(4);
    steps.check_all("timesteps", &as_floats(&timesteps));
    steps.run(|at, x, output, noises| {
        let next = timesteps.get(at + 1).map(|next| (*next, &noises[at][..]));
        sd.lcm_step(timesteps[at], x, output, next);
    });
}

#[test]
fn uni_pc_is_the_references() {
    let sd = stable_diffusion();
    for (case, run, order) in [
        ("unipc_flow_shift3", KRun::flow_from_noise(8, 3.0), 2),
        ("unipc_flow_order3", KRun::flow_from_noise(8, 5.0), 3),
        ("unipc_eps_bh2", sd.dpm_run(8, false), 2),
    ] {
        let steps = Steps::of(case);
        steps.check_all("sigmas", &run.sigmas);
        steps.check_all("timesteps", &run.timesteps);
        let mut walk = UniPc::new(order);
        steps.run(|at, x, output, _| walk.step(&run, at, x, output));
    }
}

#[test]
fn the_video_models_two_tables_are_the_references() {
    for (case, shift) in [("minimax_h3_video", 12.0), ("minimax_h3_audio", 3.0)] {
        let steps = Steps::of(case);
        let sigmas = h3_sigmas(9, shift);
        steps.check("sigmas", &sigmas);
        let told: Vec<f32> = sigmas[..8].iter().map(|sigma| 1.0 - sigma).collect();
        steps.check("timesteps", &told);
        steps.run(|at, x, output, _| h3_step(x, output, sigmas[at], sigmas[at + 1]));
    }
}
