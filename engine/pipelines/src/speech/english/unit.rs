//! Numbers with units, percents, temperatures and heights.

use super::Accent;
use super::cursor::Cursor;
use super::number::Number;
use super::scan::At;

/// A unit as it is written, one and many of it.
type Unit = (&'static str, &'static str, &'static str);

/// Longer signs stand before those that begin them.
const UNITS: [Unit; 95] = [
    ("%", "percent", "percent"),
    ("‰", "per mille", "per mille"),
    ("°C", "degree Celsius", "degrees Celsius"),
    ("°F", "degree Fahrenheit", "degrees Fahrenheit"),
    ("º C", "degree Celsius", "degrees Celsius"),
    ("° C", "degree Celsius", "degrees Celsius"),
    ("° F", "degree Fahrenheit", "degrees Fahrenheit"),
    ("℃", "degree Celsius", "degrees Celsius"),
    ("℉", "degree Fahrenheit", "degrees Fahrenheit"),
    ("°", "degree", "degrees"),
    ("km²", "square kilometer", "square kilometers"),
    ("cm²", "square centimeter", "square centimeters"),
    ("mm²", "square millimeter", "square millimeters"),
    ("m²", "square meter", "square meters"),
    ("ft²", "square foot", "square feet"),
    ("km³", "cubic kilometer", "cubic kilometers"),
    ("cm³", "cubic centimeter", "cubic centimeters"),
    ("m³", "cubic meter", "cubic meters"),
    ("sq ft", "square foot", "square feet"),
    ("sq km", "square kilometer", "square kilometers"),
    ("sq m", "square meter", "square meters"),
    ("sq mi", "square mile", "square miles"),
    ("km", "kilometer", "kilometers"),
    ("cm", "centimeter", "centimeters"),
    ("mm", "millimeter", "millimeters"),
    ("µm", "micrometer", "micrometers"),
    ("μm", "micrometer", "micrometers"),
    ("nm", "nanometer", "nanometers"),
    ("m", "meter", "meters"),
    ("mi", "mile", "miles"),
    ("ft", "foot", "feet"),
    ("yd", "yard", "yards"),
    ("kg", "kilogram", "kilograms"),
    ("mg", "milligram", "milligrams"),
    ("µg", "microgram", "micrograms"),
    ("g", "gram", "grams"),
    ("lbs", "pound", "pounds"),
    ("lb", "pound", "pounds"),
    ("oz", "ounce", "ounces"),
    ("tsp", "teaspoon", "teaspoons"),
    ("tbsp", "tablespoon", "tablespoons"),
    ("ml", "milliliter", "milliliters"),
    ("mL", "milliliter", "milliliters"),
    ("cl", "centiliter", "centiliters"),
    ("l", "liter", "liters"),
    ("L", "liter", "liters"),
    ("gal", "gallon", "gallons"),
    ("ha", "hectare", "hectares"),
    ("mph", "mile per hour", "miles per hour"),
    ("kph", "kilometer per hour", "kilometers per hour"),
    ("kmh", "kilometer per hour", "kilometers per hour"),
    ("fps", "frame per second", "frames per second"),
    ("rpm", "revolution per minute", "revolutions per minute"),
    ("bpm", "beat per minute", "beats per minute"),
    ("dpi", "dot per inch", "dots per inch"),
    ("px", "pixel", "pixels"),
    ("hr", "hour", "hours"),
    ("hrs", "hour", "hours"),
    ("h", "hour", "hours"),
    ("min", "minute", "minutes"),
    ("mins", "minute", "minutes"),
    ("secs", "second", "seconds"),
    ("sec", "second", "seconds"),
    ("ms", "millisecond", "milliseconds"),
    ("µs", "microsecond", "microseconds"),
    ("s", "second", "seconds"),
    ("yrs", "year", "years"),
    ("yr", "year", "years"),
    ("kHz", "kilohertz", "kilohertz"),
    ("MHz", "megahertz", "megahertz"),
    ("GHz", "gigahertz", "gigahertz"),
    ("Hz", "hertz", "hertz"),
    ("dB", "decibel", "decibels"),
    ("kB", "kilobyte", "kilobytes"),
    ("KB", "kilobyte", "kilobytes"),
    ("MB", "megabyte", "megabytes"),
    ("GB", "gigabyte", "gigabytes"),
    ("TB", "terabyte", "terabytes"),
    ("GiB", "gibibyte", "gibibytes"),
    ("MiB", "mebibyte", "mebibytes"),
    ("Mbps", "megabit per second", "megabits per second"),
    ("Gbps", "gigabit per second", "gigabits per second"),
    ("kWh", "kilowatt hour", "kilowatt hours"),
    ("kW", "kilowatt", "kilowatts"),
    ("MW", "megawatt", "megawatts"),
    ("GW", "gigawatt", "gigawatts"),
    ("W", "watt", "watts"),
    ("kV", "kilovolt", "kilovolts"),
    ("V", "volt", "volts"),
    ("mA", "milliamp", "milliamps"),
    ("kPa", "kilopascal", "kilopascals"),
    ("hPa", "hectopascal", "hectopascals"),
    ("kcal", "kilocalorie", "kilocalories"),
    ("cal", "calorie", "calories"),
    ("hp", "horsepower", "horsepower"),
];

/// Units with names of two lengths in the two spellings sound the same; British text shows its own.
fn spelled(name: &str, accent: Accent) -> String {
    match accent {
        Accent::Us => name.to_owned(),
        Accent::Gb => name.replace("meter", "metre").replace("liter", "litre"),
    }
}

fn unit(cursor: &mut Cursor<'_>) -> Option<(Unit, bool)> {
    let mut ahead = *cursor;
    let apart = ahead.blanks();
    for row in UNITS {
        let mut sign = ahead;
        if !sign.eat(row.0) {
            continue;
        }
        let mut square = sign;
        if matches!(row.0, "m" | "km" | "cm" | "ft" | "mi")
            && square.eat_any("²2").is_some()
            && square.at_word_end()
        {
            *cursor = square;
            return Some((row, true));
        }
        let ended = sign.at_word_end() || row.0.ends_with('%');
        // "45 °" without a scale is a slip, "30s" a decade or a plural.
        if !ended || apart && row.0 == "°" || !apart && row.0 == "s" {
            continue;
        }
        *cursor = sign;
        return Some((row, false));
    }
    None
}

/// "5 km", "12 °C", "60 mph", "3 km/h", "10 m²", "50%", "5–7 kg", "20-30%".
pub(super) fn measure(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let first = Number::read(&mut cursor)?;
    let mut said = first.say(at.accent);
    let mut last = first;
    let mut own = cursor;
    let own_unit = unit(&mut own).map(|(row, _)| row.0);
    let mut ranged = if own_unit.is_some() { own } else { cursor };
    if ranged.range_dash()
        && let Some(to) = Number::read(&mut ranged)
    {
        let mut ahead = ranged;
        let same = unit(&mut ahead).map(|(row, _)| row.0);
        if same.is_some() && (own_unit.is_none() || own_unit == same) {
            said = format!("{said} to {}", to.say(at.accent));
            last = to;
            cursor = ranged;
        }
    }
    let ((_, one, many), squared) = unit(&mut cursor)?;
    let singular = last.is_one() && !said.contains(" to ");
    // Before a noun the unit is one: "a 5 km walk".
    let mut noun = cursor;
    let before_noun = matches!(at.last, "a" | "an" | "A" | "An")
        && noun.blanks()
        && noun.peek().is_some_and(char::is_lowercase);
    let name = if singular || before_noun { one } else { many };
    let name = spelled(name, at.accent);
    let square = if squared { "square " } else { "" };
    let mut per = cursor;
    let mut rate = String::new();
    if per.eat("/")
        && let Some(((_, one, _), _)) = unit(&mut per)
    {
        rate = format!(" per {}", spelled(one, at.accent));
        cursor = per;
    }
    Some((cursor.taken(), format!("{said} {square}{name}{rate}")))
}

/// "5'10\"", "6'": feet and inches.
pub(super) fn height(at: &At<'_>) -> Option<(usize, String)> {
    let mut cursor = Cursor::new(at.rest);
    let feet = Number::read(&mut cursor)?;
    if !cursor.eat("'") {
        return None;
    }
    let mut ahead = cursor;
    ahead.blanks();
    let inches = ahead.digits(1, 2)?;
    let closed = ahead.eat("\"") || ahead.eat("''");
    let n: u64 = inches.parse().ok()?;
    if n > 11 || !closed || !feet.is_whole() {
        return None;
    }
    let inches = super::number::cardinal(n, at.accent);
    Some((
        ahead.taken(),
        format!("{} foot {inches}", feet.say(at.accent)),
    ))
}

/// "4K", "3D", "2x", "B-52"-like endings are in other places; this reads "10x" and "5in".
pub(super) fn attached(at: &At<'_>) -> Option<(usize, String)> {
    const ENDINGS: [(&str, &str); 5] = [
        ("x", "times"),
        ("×", "times"),
        ("in", "inches"),
        ("\"", "inches"),
        ("K", "\u{1}K"),
    ];
    let mut cursor = Cursor::new(at.rest);
    let number = Number::read(&mut cursor)?;
    // A quote after a number is of inches only where none is open.
    let quoted = at.before.matches('"').count() % 2 == 1;
    for (ending, said) in ENDINGS {
        let mut ahead = cursor;
        if ahead.eat(ending) && ahead.at_word_end() && !(quoted && ending == "\"") {
            let said = match (said, number.is_one()) {
                ("inches", true) => "inch",
                _ => said,
            };
            return Some((ahead.taken(), format!("{} {said}", number.say(at.accent))));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::{Accent, scan::said};

    #[test]
    fn measures_are_said() {
        let cases = [
            ("5 km", "five kilometers"),
            ("1 km", "one kilometer"),
            ("a 5 km walk", "a five kilometer walk"),
            ("12 °C", "twelve degrees Celsius"),
            ("-5°C", "minus five degrees Celsius"),
            ("a 45° turn", "a forty five degree turn"),
            ("60 mph", "sixty miles per hour"),
            ("3 km/h", "three kilometers per hour"),
            ("10 m²", "ten square meters"),
            ("10 m2", "ten square meters"),
            ("3 kg.", "three kilograms."),
            ("50%", "fifty percent"),
            ("12.5 %", "twelve point five percent"),
            ("20-30%", "twenty to thirty percent"),
            ("5–7 kg", "five to seven kilograms"),
            ("5'11\"", "five foot eleven"),
            ("5' 10\"", "five foot ten"),
            ("10x faster", "ten times faster"),
            ("24 fps @ 4K", "twenty four frames per second at four K"),
            ("5 in the morning", "five in the morning"),
            ("3 minutes", "three minutes"),
            ("44.1 kHz", "forty four point one kilohertz"),
        ];
        for (text, words) in cases {
            assert_eq!(said(text, Accent::Us), words, "{text}");
        }
        assert_eq!(said("5 km", Accent::Gb), "five kilometres");
    }
}
