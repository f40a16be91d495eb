//! Predictions from the nearest thing that was measured.

use std::collections::BTreeMap;

use engine_base::ContentHash;
use serde::{Deserialize, Serialize};

use super::cell::{Cell, CostRow, ln_secs, median};
use crate::job::Job;
use crate::names::DeviceClass;

/// How cost grows with size where one size was measured: published studio estimates use 0.95 to
/// 1.3 in the length of a clip, by engine.
const EXPONENT: f64 = 1.1;

/// Fitted exponents are held to this range: attention alone grows with the square of the rows.
const EXPONENT_RANGE: (f64, f64) = (0.5, 2.0);

/// Seconds assumed of work of which nothing at all is known.
const UNKNOWN_SECS: f64 = 60.0;

/// A piece of work, as costs see it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// Node type in which the time goes.
    pub node_type: String,
    /// Content hash of the model, if one is run.
    pub model: Option<ContentHash>,
    /// How much there is to do, in the node type's own unit.
    pub size: u64,
}

impl Work {
    /// The work of a job.
    pub fn of(job: &Job) -> Self {
        Self {
            node_type: job.main_type().to_owned(),
            model: job.model.map(|need| need.model),
            size: job.size,
        }
    }
}

/// What a prediction rests on, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostBasis {
    /// The same work on the same class of device, this often.
    Measured,
    /// The same work in other sizes on the same class.
    OtherSize,
    /// The same work on other classes, by the ratio of their speeds.
    OtherDevice,
    /// The same node type with other models.
    OtherModel,
    /// What the node type's author declared.
    Declared,
    /// Nothing.
    Unknown,
}

impl CostBasis {
    /// How far off such a prediction may be, added to the measured spread of the logarithm.
    const fn doubt(self) -> f64 {
        match self {
            Self::Measured => 0.0,
            Self::OtherSize => 0.2,
            Self::OtherDevice => 0.4,
            Self::OtherModel => 0.6,
            Self::Declared => 0.8,
            Self::Unknown => 1.2,
        }
    }
}

/// What a piece of work will take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// As likely longer as shorter, in seconds.
    pub median_secs: f64,
    /// Standard deviation of the logarithm of the time.
    pub sigma: f64,
    /// What it rests on.
    pub basis: CostBasis,
    /// Measurements behind it.
    pub count: u64,
}

impl Prediction {
    /// Expected time of a log-normal distribution, in seconds: long jobs weigh more than short
    /// ones gain.
    pub fn mean_secs(&self) -> f64 {
        let sigma = self.sigma.min(1.5);
        self.median_secs * (sigma * sigma / 2.0).exp()
    }
}

/// Size class of a size, in half octaves.
fn size_class(size: u64) -> i32 {
    (2.0 * (size.max(1) as f64).log2()).round() as i32
}

/// Natural logarithm of the size in the middle of a size class.
fn centre_ln(size_class: i32) -> f64 {
    f64::from(size_class) / 2.0 * std::f64::consts::LN_2
}

/// One node type with one model on one class of device, by size class.
#[derive(Debug, Clone, Default, PartialEq)]
struct Curve {
    cells: BTreeMap<i32, Cell>,
}

/// A guess of a logarithm of seconds with its spread.
#[derive(Debug, Clone, Copy)]
struct Guess {
    ln: f64,
    sigma: f64,
    count: u64,
}

impl Curve {
    /// Slope of log cost over log size, weighted by measurements.
    fn exponent(&self) -> f64 {
        let points = || {
            self.cells.iter().map(|(class, cell)| {
                (
                    centre_ln(*class),
                    cell.centre(),
                    cell.count().min(15) as f64,
                )
            })
        };
        let weight: f64 = points().map(|(_, _, w)| w).sum();
        if self.cells.len() < 2 || weight <= 0.0 {
            return EXPONENT;
        }
        let mean_x = points().map(|(x, _, w)| x * w).sum::<f64>() / weight;
        let mean_y = points().map(|(_, y, w)| y * w).sum::<f64>() / weight;
        let over: f64 = points()
            .map(|(x, y, w)| w * (x - mean_x) * (y - mean_y))
            .sum();
        let under: f64 = points().map(|(x, _, w)| w * (x - mean_x).powi(2)).sum();
        if under <= 0.0 {
            return EXPONENT;
        }
        (over / under).clamp(EXPONENT_RANGE.0, EXPONENT_RANGE.1)
    }

    /// From the nearest size class; the flag says whether it is the work's own.
    fn guess(&self, size: u64) -> Option<(Guess, bool)> {
        let own = size_class(size);
        let (class, cell) = self
            .cells
            .iter()
            .min_by_key(|(class, _)| class.abs_diff(own))?;
        let along = (size.max(1) as f64).ln() - centre_ln(*class);
        // Inside a size class the default exponent brought measurements to its centre.
        let exponent = if *class == own {
            EXPONENT
        } else {
            self.exponent()
        };
        let guess = Guess {
            ln: cell.centre() + exponent * along,
            sigma: cell.sigma(),
            count: cell.count(),
        };
        Some((guess, *class == own))
    }
}

type Curves = BTreeMap<DeviceClass, Curve>;

/// Costs of work by node type, model, size and class of device.
#[derive(Debug, Clone, Default)]
pub struct CostModel {
    curves: BTreeMap<String, BTreeMap<Option<ContentHash>, Curves>>,
    declared: BTreeMap<String, (f64, u64)>,
    speeds: BTreeMap<DeviceClass, f64>,
    changes: u64,
}

impl CostModel {
    /// Nothing known.
    pub fn new() -> Self {
        Self::default()
    }

    /// What these rows know. A later row replaces an earlier one of the same work; rows without
    /// a usable number are left out.
    pub fn of_rows(rows: &[CostRow]) -> Self {
        let mut model = Self::new();
        for row in rows {
            let cells = &mut model.curve_mut(&row.node_type, row.model, &row.class).cells;
            if let Some(cell) = Cell::of_row(row) {
                cells.insert(row.size_class, cell);
            }
        }
        model
    }

    /// A first guess for a node type: `secs` for `size` on a device of speed 1.
    pub fn declare(&mut self, node_type: &str, secs: f64, size: u64) {
        if let Some(ln) = ln_secs(secs) {
            self.declared.insert(node_type.to_owned(), (ln, size));
            self.changes += 1;
        }
    }

    /// How fast a class is said to be beside a device of speed 1; measurements overrule it.
    pub fn declare_speed(&mut self, class: &DeviceClass, speed: f64) {
        if speed.is_finite() && speed > 0.0 {
            self.speeds.insert(class.clone(), speed);
            self.changes += 1;
        }
    }

    /// Counts changes: equal numbers, equal predictions.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    fn curve_mut(
        &mut self,
        node_type: &str,
        model: Option<ContentHash>,
        class: &DeviceClass,
    ) -> &mut Curve {
        let models = self.curves.entry(node_type.to_owned()).or_default();
        let curves = models.entry(model).or_default();
        curves.entry(class.clone()).or_default()
    }

    /// Take in that `work` took `secs` on a device of `class`, without loading and transfer.
    /// Gives the row to keep; `None` when `secs` is no time.
    pub fn note(&mut self, work: &Work, class: &DeviceClass, secs: f64) -> Option<CostRow> {
        let ln = ln_secs(secs)?;
        let own = size_class(work.size);
        let along = (work.size.max(1) as f64).ln() - centre_ln(own);
        let curve = self.curve_mut(&work.node_type, work.model, class);
        let cell = curve.cells.entry(own).or_default();
        cell.note(ln - EXPONENT * along);
        let row = CostRow {
            node_type: work.node_type.clone(),
            model: work.model,
            class: class.clone(),
            size_class: own,
            count: cell.count(),
            recent_ln_secs: cell.recent().to_vec(),
        };
        self.changes += 1;
        Some(row)
    }

    /// Logarithm of the time on `to` over the time on `from`: the median over all work measured
    /// on both, else by declared speeds, else nothing.
    fn ratio_ln(&self, from: &DeviceClass, to: &DeviceClass) -> f64 {
        let mut both = Vec::new();
        for curves in self.curves.values().flat_map(BTreeMap::values) {
            if let (Some(from), Some(to)) = (curves.get(from), curves.get(to)) {
                for (class, cell) in &from.cells {
                    both.extend(to.cells.get(class).map(|to| to.centre() - cell.centre()));
                }
            }
        }
        let speed = |class| self.speeds.get(class).copied().unwrap_or(1.0);
        median(&both).unwrap_or_else(|| (speed(from) / speed(to)).ln())
    }

    /// From curves of one model: the class's own, else the best measured other class.
    fn of_curves(
        &self,
        curves: &Curves,
        size: u64,
        class: &DeviceClass,
    ) -> Option<(Guess, CostBasis)> {
        if let Some((guess, own)) = curves.get(class).and_then(|curve| curve.guess(size)) {
            let basis = if own {
                CostBasis::Measured
            } else {
                CostBasis::OtherSize
            };
            return Some((guess, basis));
        }
        let others = curves.iter().filter(|(other, _)| *other != class);
        let guesses = others.filter_map(|(other, curve)| Some((other, curve.guess(size)?)));
        // The first of equals, so that the choice follows from names and not from history.
        let (other, (guess, _)) = guesses.reduce(|best, next| {
            if next.1.0.count > best.1.0.count {
                next
            } else {
                best
            }
        })?;
        let ln = guess.ln + self.ratio_ln(other, class);
        Some((Guess { ln, ..guess }, CostBasis::OtherDevice))
    }

    /// What `work` will take on a device of `class`, without loading and transfer.
    pub fn predict(&self, work: &Work, class: &DeviceClass) -> Prediction {
        let (guess, basis) = self.guess(work, class);
        Prediction {
            median_secs: guess.ln.clamp(-10.0, 20.0).exp(),
            sigma: guess.sigma + basis.doubt(),
            basis,
            count: guess.count,
        }
    }

    fn guess(&self, work: &Work, class: &DeviceClass) -> (Guess, CostBasis) {
        let models = self.curves.get(&work.node_type);
        let own = models.and_then(|models| models.get(&work.model));
        if let Some(found) = own.and_then(|curves| self.of_curves(curves, work.size, class)) {
            return found;
        }
        let others: Vec<Guess> = models
            .into_iter()
            .flat_map(BTreeMap::values)
            .filter_map(|curves| self.of_curves(curves, work.size, class))
            .map(|(guess, _)| guess)
            .collect();
        let lns: Vec<f64> = others.iter().map(|guess| guess.ln).collect();
        if let Some(ln) = median(&lns) {
            let sigma = others.iter().map(|guess| guess.sigma).fold(0.0, f64::max);
            let count = others.iter().map(|guess| guess.count).sum();
            return (Guess { ln, sigma, count }, CostBasis::OtherModel);
        }
        let slower = -self.speeds.get(class).copied().unwrap_or(1.0).ln();
        let none = |ln| Guess {
            ln,
            sigma: 0.0,
            count: 0,
        };
        match self.declared.get(&work.node_type) {
            Some((ln, size)) => {
                let along = (work.size.max(1) as f64 / (*size).max(1) as f64).ln();
                (none(ln + EXPONENT * along + slower), CostBasis::Declared)
            }
            None => (none(UNKNOWN_SECS.ln() + slower), CostBasis::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str) -> DeviceClass {
        DeviceClass::new(name).unwrap()
    }

    fn clip(size: u64) -> Work {
        Work {
            node_type: "video.generate".to_owned(),
            model: Some(ContentHash::of(b"h3")),
            size,
        }
    }

    fn close(got: f64, expected: f64) {
        assert!(
            (got / expected - 1.0).abs() < 0.02,
            "expected about {expected} s, got {got} s"
        );
    }

    #[test]
    fn what_was_measured_is_predicted() {
        let mut costs = CostModel::new();
        let spark = class("gb10");
        assert_eq!(costs.predict(&clip(124), &spark).basis, CostBasis::Unknown);
        for secs in [70.0, 73.0, 400.0, 75.0, 72.0] {
            costs.note(&clip(124), &spark, secs);
        }
        let now = costs.predict(&clip(124), &spark);
        assert_eq!((now.basis, now.count), (CostBasis::Measured, 5));
        close(now.median_secs, 73.0);
        assert!(costs.note(&clip(124), &spark, f64::NAN).is_none());
        assert!(costs.note(&clip(124), &spark, -1.0).is_none());
        assert_eq!(costs.predict(&clip(124), &spark), now);
    }

    #[test]
    fn another_size_follows_the_fitted_power() {
        let mut costs = CostModel::new();
        let spark = class("gb10");
        for size in [100, 400] {
            costs.note(&clip(size), &spark, 0.01 * (size as f64).powf(1.5));
        }
        let far = costs.predict(&clip(1600), &spark);
        assert_eq!(far.basis, CostBasis::OtherSize);
        assert!((far.median_secs / 640.0 - 1.0).abs() < 0.15, "{far:?}");
        // The published pair of one Spark: 5 s take 73 s, so 15 s take about 3 to 4.2 times that.
        let mut costs = CostModel::new();
        costs.note(&clip(124), &spark, 73.0);
        let long = costs.predict(&clip(362), &spark).median_secs;
        assert!(
            (200.0..320.0).contains(&long),
            "published 304 s, got {long}"
        );
    }

    #[test]
    fn another_class_follows_the_ratio() {
        let (spark, rtx, laptop) = (class("gb10"), class("rtx-pro-6000"), class("laptop"));
        let mut costs = CostModel::new();
        let still = Work {
            node_type: "image.generate".to_owned(),
            model: None,
            size: 1000,
        };
        costs.note(&still, &spark, 10.0);
        costs.note(&still, &rtx, 4.0);
        costs.note(&clip(124), &spark, 73.0);
        let guess = costs.predict(&clip(124), &rtx);
        assert_eq!(guess.basis, CostBasis::OtherDevice);
        close(guess.median_secs, 29.2);
        costs.declare_speed(&laptop, 0.1);
        close(costs.predict(&clip(124), &laptop).median_secs, 730.0);
    }

    #[test]
    fn another_model_and_declarations_come_last() {
        let spark = class("gb10");
        let mut costs = CostModel::new();
        costs.declare("video.generate", 100.0, 124);
        let declared = costs.predict(&clip(124), &spark);
        assert_eq!(declared.basis, CostBasis::Declared);
        close(declared.median_secs, 100.0);
        let other = Work {
            model: Some(ContentHash::of(b"ltx")),
            ..clip(124)
        };
        costs.note(&other, &spark, 40.0);
        let guess = costs.predict(&clip(124), &spark);
        assert_eq!(guess.basis, CostBasis::OtherModel);
        close(guess.median_secs, 40.0);
        assert!(guess.mean_secs() > guess.median_secs);
    }

    #[test]
    fn rows_bring_back_the_same_predictions() {
        use crate::cost::{CostStore as _, MemoryCosts};
        let spark = class("gb10");
        let (mut costs, mut store) = (CostModel::new(), MemoryCosts::default());
        for at in 0..40_u64 {
            let row = costs.note(&clip(100 + 7 * at), &spark, 60.0 + at as f64);
            store.save(&row.unwrap()).unwrap();
        }
        let text = serde_json::to_string(&store.load().unwrap()).unwrap();
        let rows: Vec<CostRow> = serde_json::from_str(&text).unwrap();
        let again = CostModel::of_rows(&rows);
        for size in [50, 124, 362, 9000] {
            assert_eq!(
                again.predict(&clip(size), &spark),
                costs.predict(&clip(size), &spark)
            );
        }
    }

    #[test]
    fn rows_without_numbers_are_left_out() {
        let row = CostRow {
            node_type: "x".to_owned(),
            model: None,
            class: class("gb10"),
            size_class: 0,
            count: 9,
            recent_ln_secs: vec![f64::INFINITY],
        };
        let work = Work {
            node_type: "x".to_owned(),
            model: None,
            size: 1,
        };
        let costs = CostModel::of_rows(&[row]);
        assert_eq!(
            costs.predict(&work, &class("gb10")).basis,
            CostBasis::Unknown
        );
    }
}
