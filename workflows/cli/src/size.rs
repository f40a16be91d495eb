//! Sizes as people write them.

use engine_base::Code;
use flow_studio::StudioError;

const UNITS: [(&str, u64); 9] = [
    ("TIB", 1 << 40),
    ("GIB", 1 << 30),
    ("MIB", 1 << 20),
    ("KIB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

/// `10GB`, `1.5 GiB`, `500mb`, `0`.
pub(crate) fn parse(text: &str) -> Result<u64, StudioError> {
    let refused = || {
        let message = format!("cannot read {text:?} as a size: expected forms like 500MB or 10GiB");
        StudioError::new(Code::BadInput, message)
    };
    let upper = text.trim().to_ascii_uppercase();
    let unit = UNITS.iter().find(|(unit, _)| upper.ends_with(unit));
    let (number, factor) = match unit {
        Some((unit, factor)) => (upper[..upper.len() - unit.len()].trim(), *factor),
        None => (upper.as_str(), 1),
    };
    let number: f64 = number.parse().map_err(|_not_a_number| refused())?;
    let bytes = number * factor as f64;
    if !(0.0..1e18).contains(&bytes) {
        return Err(refused());
    }
    Ok(bytes.round() as u64)
}

/// Bytes in the largest unit that keeps at least one digit ahead of the point.
pub(crate) fn show(bytes: u64) -> String {
    let unit = UNITS[4..].iter().find(|(_, factor)| bytes >= *factor);
    match unit {
        Some((unit, factor)) if *factor > 1 => {
            let unit = unit.replace("KB", "kB");
            format!("{:.1} {unit}", bytes as f64 / *factor as f64)
        }
        _ => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, bytes) in [
            ("10GB", 10_000_000_000),
            ("1.5 GiB", 1_610_612_736),
            ("500mb", 500_000_000),
            ("7", 7),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "GB", "-1", "ten", "nan", "1e40"] {
            assert!(parse(wrong).is_err(), "{wrong:?} was read");
        }
        assert_eq!(
            (show(999), show(12_345_678)),
            ("999 B".into(), "12.3 MB".into())
        );
    }
}
