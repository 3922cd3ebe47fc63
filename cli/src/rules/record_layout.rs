//! The record of a request: the words that rules need of its fields.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use core::hash::Hasher;
use core::net::{IpAddr, Ipv6Addr};
use std::collections::HashMap;

use ringgate::Key;
use ringgate::rules::{Condition, Cost, TierOf};

use crate::input::client::{self, Prefixes};
use crate::input::row::{Row, Unreadable};
use crate::rules::condition::Test;
use crate::rules::key::hash;

/// A request for the rule set.
#[derive(Debug, Default)]
pub(crate) struct Event {
    pub(crate) record: Vec<u64>,
    pub(crate) tiers: Arc<[Box<str>]>,
}

/// The words before the first column: the time.
const COLUMNS: usize = 1;

/// Encodes a time as a word with the same order.
pub(crate) const fn word_of_time(nanos: i64) -> u64 {
    nanos.cast_unsigned() ^ (1 << 63)
}

/// Decodes the first word of a record.
pub(crate) const fn time_of_word(word: u64) -> i64 {
    (word ^ (1 << 63)).cast_signed()
}

/// One word of a record, with the places of its fields in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// A hash of the fields, by these prefixes of addresses.
    Key(Vec<usize>, Prefixes),
    /// The first or the last 64 bits of the address in a field, as one of IPv6; 0 for another text.
    Address(usize, Half),
    Cost(usize),
    /// The number of the tier from 1, or 0 for none.
    Tier(usize),
    /// A bit for each condition that holds.
    Conditions,
}

/// One half of the bits of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    First,
    Last,
}

/// The fields, columns and conditions that rules name.
#[derive(Debug, Default)]
pub(crate) struct RecordLayout {
    /// The wanted fields, in the order of their places in a row.
    pub(crate) fields: Vec<String>,
    pub(crate) columns: Vec<Column>,
    tests: Vec<Test>,
    /// The names of the tiers of all rules.
    pub(crate) tiers: Arc<[Box<str>]>,
    keys: HashMap<String, (usize, Key<Event>)>,
    conditions: HashMap<String, (Place, Condition<Event>)>,
    /// The places of the fields of rules that are replayed.
    used: BTreeSet<usize>,
    /// Whether a last word has the details of a request.
    pub(crate) details: bool,
    /// Whether records have the addresses of keys, for lists and prefixes.
    addresses: bool,
    /// The fields of names that are not fields.
    aliases: HashMap<String, String>,
    /// The field that an alias says is the client.
    client: Option<String>,
}

/// The name of the client's field.
pub(crate) const CLIENT: &str = "client";

/// The largest number of conditions of all rules.
const MOST_CONDITIONS: usize = 64;

impl RecordLayout {
    pub(crate) fn new(mut aliases: HashMap<String, String>) -> Self {
        // A list of fields is no client.
        let has_client = aliases.get(CLIENT).is_some_and(|field| !field.contains(','));
        let client = has_client.then(|| aliases.remove(CLIENT)).flatten();
        Self {
            aliases,
            client,
            ..Self::default()
        }
    }

    /// A layout whose records have the addresses of keys, for lists and prefixes.
    pub(crate) fn with_addresses(aliases: HashMap<String, String>) -> Self {
        Self {
            addresses: true,
            ..Self::new(aliases)
        }
    }

    /// The words of a record.
    pub(crate) fn words(&self) -> usize {
        COLUMNS + self.columns.len() + usize::from(self.details)
    }

    /// The word of a record with this key, whose name may end with prefixes of addresses, for a rule that is replayed.
    pub(crate) fn key_word(&mut self, name: &str) -> Option<usize> {
        let (word, prefixes) = match self.keys.get(name) {
            Some((word, _)) => (*word, Prefixes::DEFAULT),
            None => {
                let (base, prefixes) = Prefixes::of_name(name)?;
                (self.keys.get(base)?.0, prefixes)
            }
        };
        let Column::Key(fields, _) = &self.columns[word - COLUMNS] else {
            return None;
        };
        let fields = fields.clone();
        self.used.extend(&fields);
        Some(self.word(Column::Key(fields, prefixes)))
    }

    /// The bit of a record for this condition, for a rule that is replayed.
    pub(crate) fn condition_place(&mut self, name: &str) -> Option<Place> {
        let (place, _) = self.conditions.get(name)?;
        self.used.insert(self.tests[place.bit].field);
        Some(*place)
    }

    fn meant(&self, name: &str) -> String {
        self.aliases
            .get(name)
            .map_or(name, String::as_str)
            .trim()
            .to_string()
    }

    fn field(&mut self, name: &str) -> usize {
        let place = self.fields.iter().position(|field| field == name);
        place.unwrap_or_else(|| {
            self.fields.push(name.to_string());
            self.fields.len() - 1
        })
    }

    /// The field of a cost or a tier.
    fn value_field(&mut self, name: &str) -> Option<usize> {
        let meant = self.meant(name);
        let field = (!meant.is_empty()).then(|| self.field(&meant))?;
        self.used.insert(field);
        Some(field)
    }

    /// The word of a record with a column.
    fn word(&mut self, column: Column) -> usize {
        let place = self.columns.iter().position(|known| *known == column);
        let place = place.unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        });
        COLUMNS + place
    }

    /// The key of a field, or of several fields with commas between them.
    pub(crate) fn key(&mut self, name: &str) -> Option<Key<Event>> {
        if let Some((_, key)) = self.keys.get(name) {
            return Some(key.clone());
        }
        let meant = match self.aliases.get(name) {
            Some(meant) => meant.clone(),
            None => name
                .split(',')
                .map(|part| self.meant(part.trim()))
                .collect::<Vec<_>>()
                .join(","),
        };
        let names: Vec<&str> = meant.split(',').map(str::trim).collect();
        if names.iter().any(|name| name.is_empty()) {
            return None;
        }
        let parts = names.len();
        let fields: Vec<usize> = names.into_iter().map(|name| self.field(name)).collect();
        let only = fields.first().copied().filter(|_| parts == 1 && self.addresses);
        let word = self.word(Column::Key(fields, Prefixes::DEFAULT));
        let key = Key::new(name, move |event: &Event, key| key.write_u64(event.record[word]));
        // No rule of the tool is decided by a store. The parts only let `check --shared` build the rules.
        let key = key.shared_as(move |event, parts| {
            parts.part(event.record[word].to_le_bytes());
        });
        let key = key.parse_list_entry(move |text, key| {
            // As in the name of a key, spaces around a value are no part of it.
            let values: Vec<&str> = text.split(',').map(str::trim).collect();
            if values.len() != parts {
                return Err(format!(
                    "{parts} values with commas between them, one for each field"
                ));
            }
            // Only the key of one field reads addresses and networks, which no other text may look like.
            let has_spaces = parts == 1 && values[0] != text && client::is_address(values[0].as_bytes());
            if has_spaces {
                return Err("an address without spaces around it".into());
            }
            if values.iter().any(|value| client::is_network(value)) {
                return Err(match parts {
                    1 => "an address without bits after its prefix".into(),
                    _ => "values without networks, which only a key of one field has".into(),
                });
            }
            key.write_u64(hash(
                word - COLUMNS,
                Prefixes::DEFAULT,
                values.into_iter().map(Some),
            ));
            Ok(())
        });
        let key = match only {
            Some(field) => self.address_key(name, field).or(&key),
            None => key,
        };
        self.keys.insert(name.into(), (word, key.clone()));
        Some(key)
    }

    /// The key of the address in a field. Requests with another text lack it.
    fn address_key(&mut self, name: &str, field: usize) -> Key<Event> {
        let words = [Half::First, Half::Last].map(|half| self.word(Column::Address(field, half)));
        Key::address(name, move |event: &Event| {
            let [first, last] = words.map(|word| u128::from(event.record[word]));
            let bits = first << 64 | last;
            (bits != 0).then(|| Ipv6Addr::from_bits(bits).to_canonical())
        })
    }

    /// The cost in a field.
    pub(crate) fn cost(&mut self, name: &str) -> Option<Cost<Event>> {
        let word = self.cost_word(name)?;
        Some(Cost::new(name, move |event: &Event| event.record[word]))
    }

    /// The word of a record with the cost in a field.
    pub(crate) fn cost_word(&mut self, name: &str) -> Option<usize> {
        let field = self.value_field(name)?;
        Some(self.word(Column::Cost(field)))
    }

    /// The condition `field`, `field=value`, `field!=value` or `field=prefix*`.
    pub(crate) fn condition(&mut self, name: &str) -> Option<Condition<Event>> {
        if let Some((_, condition)) = self.conditions.get(name) {
            return Some(condition.clone());
        }
        let meant = self.meant(name);
        let (field, holds) = Test::parse(&meant).filter(|_| self.tests.len() < MOST_CONDITIONS)?;
        let field = match self.aliases.contains_key(name) {
            true => field.to_owned(),
            false => self.meant(field),
        };
        let field = self.field(&field);
        let place = Place {
            word: self.word(Column::Conditions),
            bit: self.tests.len(),
        };
        self.tests.push(Test { field, holds });
        let condition = Condition::new(name, move |event: &Event| holds_in(&event.record, place));
        self.conditions.insert(name.into(), (place, condition.clone()));
        Some(condition)
    }

    /// The tier in a field.
    pub(crate) fn tier_of(&mut self, name: &str) -> Option<TierOf<Event>> {
        let field = self.value_field(name)?;
        let word = self.word(Column::Tier(field));
        Some(TierOf::new(name, move |event: &Event| {
            let number = usize::try_from(event.record[word]).ok()?;
            event.tiers.get(number.checked_sub(1)?).map(|name| &**name)
        }))
    }

    /// Converts a row to a record.
    ///
    /// # Errors
    ///
    /// When a cost is not a whole number.
    #[inline]
    pub(crate) fn record(&self, row: &Row, record: &mut Vec<u64>) -> Result<(), Unreadable> {
        record.clear();
        record.push(word_of_time(row.time));
        for (number, column) in self.columns.iter().enumerate() {
            record.push(match column {
                Column::Key(fields, prefixes) => {
                    hash(number, *prefixes, fields.iter().map(|&field| row.get(field)))
                }
                Column::Address(field, half) => half.of(row.get(*field).and_then(client::plain)),
                Column::Cost(field) => self.whole(*field, row)?,
                Column::Tier(field) => self.tier(row.get(*field)),
                Column::Conditions => {
                    let tests = self.tests.iter().zip(0..);
                    tests.fold(0, |held, (test, bit)| {
                        held | u64::from(test.holds(row.get(test.field))) << bit
                    })
                }
            });
        }
        Ok(())
    }

    /// The fields that the replayed rules need, with their places in a row.
    pub(crate) fn wanted_fields(&self) -> impl Iterator<Item = (String, usize)> {
        let meant = |field: &String| match &self.client {
            Some(client) if field == CLIENT => client.clone(),
            _ => field.clone(),
        };
        let fields = self.fields.iter().map(meant).zip(0..);
        fields.filter(|(_, place)| self.used.contains(place))
    }

    /// The place of a field that an alias says is the client.
    pub(crate) fn client_place(&self) -> Option<usize> {
        let mut fields = self.fields.iter();
        fields
            .position(|field| field == CLIENT)
            .filter(|_| self.client.is_some())
    }

    /// The places of the costs in a row.
    pub(crate) fn cost_places(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().filter_map(|column| match column {
            Column::Cost(field) => Some(*field),
            Column::Key(..) | Column::Address(..) | Column::Tier(_) | Column::Conditions => None,
        })
    }

    /// The columns that are keys: their words in a record, their fields, and the prefixes of addresses.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (usize, &[usize], Prefixes)> {
        let columns = self.columns.iter().zip(COLUMNS..);
        columns.filter_map(|(column, word)| match column {
            Column::Key(fields, prefixes) => Some((word, &fields[..], *prefixes)),
            Column::Address(..) | Column::Cost(_) | Column::Tier(_) | Column::Conditions => None,
        })
    }

    fn whole(&self, field: usize, row: &Row) -> Result<u64, Unreadable> {
        const EXPECTED: &str = "a whole number, or \"-\" for 0";
        let wrong = |given| Unreadable::field(&self.fields[field], given, EXPECTED);
        match row.get(field) {
            None => Err(Unreadable::missing(&self.fields[field], EXPECTED)),
            Some(b"-") => Ok(0),
            Some(text) => {
                let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
                let number = str::from_utf8(text).ok().filter(|_| digits);
                let number = number.and_then(|digits| digits.parse().ok());
                number.ok_or_else(|| wrong(text))
            }
        }
    }

    fn tier(&self, name: Option<&[u8]>) -> u64 {
        let Some(name) = name else { return 0 };
        let place = self.tiers.iter().position(|tier| tier.as_bytes() == name);
        place.map_or(0, |place| place as u64 + 1)
    }
}

impl Half {
    /// This half of the bits of an address. No address but the unspecified one has only zeros.
    fn of(self, address: Option<IpAddr>) -> u64 {
        let bits = address.map_or(0, |address| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
            IpAddr::V6(address) => address.to_bits(),
        });
        let half = match self {
            Self::First => bits >> 64,
            Self::Last => bits & u128::from(u64::MAX),
        };
        u64::try_from(half).unwrap_or(u64::MAX)
    }
}

/// The bit of a record for a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    word: usize,
    bit: usize,
}

/// Whether a condition holds for a record.
#[inline]
pub(crate) fn holds_in(record: &[u64], place: Place) -> bool {
    record[place.word] & (1 << place.bit) != 0
}

#[cfg(test)]
mod tests {
    use super::{Event, RecordLayout, holds_in, time_of_word, word_of_time};
    use crate::input::client::Prefixes;
    use crate::input::row::Row;
    use crate::rules::key::name;

    fn row(values: &[Option<&str>]) -> Row {
        let mut row = Row::default();
        for (place, value) in values.iter().enumerate() {
            if let Some(value) = value {
                row.set(place, value.as_bytes());
            }
        }
        row
    }

    #[test]
    fn times_as_words_keep_their_order() {
        let times = [i64::MIN, -1, 0, 1, i64::MAX];
        let words = times.map(word_of_time);
        assert!(words.is_sorted());
        assert_eq!(words.map(time_of_word), times);
    }

    #[test]
    fn keys_are_equal_if_all_values_are() {
        let mut layout = RecordLayout::default();
        assert!(layout.key("a, b").is_some() && layout.key("a,").is_none());
        let mut hashes = Vec::new();
        let rows = [
            [Some("ab"), Some("c")],
            [Some("a"), Some("bc")],
            [Some("a"), None],
            [Some("a"), Some("")],
            [None, Some("a")],
        ];
        for values in rows {
            let mut record = Vec::new();
            assert_eq!(layout.record(&row(&values), &mut record), Ok(()));
            hashes.push(record[1]);
        }
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), rows.len());
        assert_eq!(
            name(&row(&[Some("x\n"), None]), &[0, 1], Prefixes::DEFAULT),
            "x\\n,(none)"
        );
        assert_eq!(
            name(
                &row(&[Some("y".repeat(90).as_str()); 3]),
                &[0, 1, 2],
                Prefixes::DEFAULT
            )
            .chars()
            .count(),
            201
        );
    }

    #[test]
    fn conditions_are_evaluated() {
        let names = ["f", "f=1", "f!=1", "f=ab*", "f=", "is it", "f=-", "f!=-"];
        let mut layout = RecordLayout::new([("is it".into(), "f!=ab*".into())].into());
        assert!(names.iter().all(|name| layout.condition(name).is_some()));
        assert!(layout.condition("=1").is_none());
        assert_eq!(layout.fields, ["f"]);
        for (value, expected) in [
            (None, [false, false, true, false, false, true, true, false]),
            (Some(""), [false, false, true, false, true, true, false, true]),
            (Some("-"), [false, false, true, false, false, true, true, false]),
            (Some("1"), [true, true, false, false, false, true, false, true]),
            (Some("abc"), [true, false, true, true, false, false, false, true]),
        ] {
            let mut record = Vec::new();
            assert_eq!(layout.record(&row(&[value]), &mut record), Ok(()));
            let seen = names.map(|name| {
                layout
                    .condition_place(name)
                    .is_some_and(|place| holds_in(&record, place))
            });
            assert_eq!(seen, expected, "{value:?}");
        }
    }

    #[test]
    fn costs_are_whole_numbers() {
        let mut layout = RecordLayout::default();
        assert!(layout.cost("bytes").is_some());
        let mut record = Vec::new();
        for (text, cost) in [("17", 17), ("0", 0), ("-", 0), ("18446744073709551615", u64::MAX)] {
            assert_eq!(layout.record(&row(&[Some(text)]), &mut record), Ok(()));
            assert_eq!(record[1], cost);
        }
        for text in ["", "1.5", "-1", "+1", "x", "18446744073709551616"] {
            let error = layout.record(&row(&[Some(text)]), &mut record).expect_err(text);
            assert_eq!(
                error.to_string(),
                format!("invalid \"bytes\": \"{text}\" (expected a whole number, or \"-\" for 0)")
            );
        }
        assert!(layout.record(&row(&[None]), &mut record).is_err());
    }

    #[test]
    fn tiers_have_the_numbers_of_their_names() {
        let mut layout = RecordLayout::default();
        assert!(layout.tier_of("plan").is_some());
        layout.tiers = ["free".into(), "paid".into()].into();
        let mut event = Event {
            record: Vec::new(),
            tiers: layout.tiers.clone(),
        };
        for (value, number) in [(Some("paid"), 2), (Some("free"), 1), (Some("x"), 0), (None, 0)] {
            assert_eq!(layout.record(&row(&[value]), &mut event.record), Ok(()));
            assert_eq!(event.record[1], number);
        }
    }
}
