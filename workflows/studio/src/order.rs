//! Order keys: texts that sort between their neighbours, so that moving one row changes one row.

/// Lowest and highest digit: lower-case letters, so that keys sort the same everywhere.
const LOW: u8 = b'a';
const HIGH: u8 = b'z';

/// A key that sorts after `before` and ahead of `after`; `None` means the start or the end.
/// Keys never end in `a`, so that there is always room ahead of one.
pub(crate) fn between(before: Option<&str>, after: Option<&str>) -> String {
    let low = before.unwrap_or("").as_bytes();
    let mut high = after.map(str::as_bytes);
    let mut key = Vec::new();
    for at in 0.. {
        let floor = low.get(at).copied().unwrap_or(LOW - 1).max(LOW - 1);
        let ceiling = high.map_or(HIGH + 1, |high| high.get(at).copied().unwrap_or(HIGH + 1));
        // A digit strictly between the two ends the key, unless it is the lowest.
        let middle = floor + (ceiling.saturating_sub(floor)) / 2;
        if middle > floor && middle < ceiling && middle > LOW {
            key.push(middle);
            break;
        }
        let digit = floor.max(LOW);
        key.push(digit);
        if digit < ceiling {
            // Already below the upper neighbour: only the lower one counts from here.
            high = None;
        }
    }
    String::from_utf8(key).unwrap_or_default()
}

/// `count` keys in rising order, all of the same length, with room between them.
pub(crate) fn spread(count: usize) -> Vec<String> {
    let base = usize::from(HIGH - LOW);
    let mut width = 1;
    while base.pow(width) < count + 1 {
        width += 1;
    }
    let step = base.pow(width) / (count + 1);
    (1..=count)
        .map(|nth| {
            let mut rest = nth * step;
            let mut key = vec![0u8; width as usize];
            for digit in key.iter_mut().rev() {
                *digit = LOW + 1 + (rest % base) as u8;
                rest /= base;
            }
            String::from_utf8(key).unwrap_or_default()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_always_room() {
        let mut keys = spread(3);
        assert!(keys.is_sorted());
        // Always between the same two, a thousand times, from both sides.
        for round in 0..1000 {
            let at = 1 + round % 2;
            let key = between(Some(&keys[at - 1]), Some(&keys[at]));
            assert!(
                keys[at - 1] < key && key < keys[at],
                "{:?} {key:?} {:?}",
                keys[at - 1],
                keys[at]
            );
            keys.insert(at, key);
        }
        let first = between(None, Some(&keys[0]));
        let last = between(keys.last().map(String::as_str), None);
        assert!(first < keys[0] && keys.last().is_some_and(|key| *key < last));
        assert!(keys.is_sorted());
    }

    #[test]
    fn spread_keys_rise_and_differ() {
        for count in [0, 1, 24, 25, 26, 700, 20_000] {
            let keys = spread(count);
            assert_eq!(keys.len(), count);
            assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{count}");
        }
    }

    #[test]
    fn ends_can_be_extended_ten_thousand_times() {
        let mut first = between(None, None);
        let mut last = first.clone();
        for _ in 0..2000 {
            let lower = between(None, Some(&first));
            assert!(lower < first, "{lower:?} {first:?}");
            first = lower;
            let upper = between(Some(&last), None);
            assert!(upper > last, "{upper:?} {last:?}");
            last = upper;
        }
    }
}
