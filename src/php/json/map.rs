//! An object that keeps the order of its keys.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::Value;

/// A key: from a file, or a constant of this program.
pub type Key = Cow<'static, str>;

/// The entries of a JSON object in order, with unique keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map(Vec<(Key, Value)>);

/// With more entries than this, duplicate keys are found by an index instead of comparing all pairs. The objects of the
/// data files have fewer, and are compared without an allocation.
const FEW: usize = 16;

impl Map {
    /// A map of `entries`. Of duplicate keys the last value counts, at the position of the first, as in PHP.
    pub fn from_entries(entries: Vec<(Key, Value)>) -> Map {
        let is_unique = |(index, (key, _)): (usize, &(Key, Value))| {
            entries[..index].iter().all(|(earlier, _)| earlier != key)
        };
        if entries.len() <= FEW && entries.iter().enumerate().all(is_unique) {
            return Map(entries);
        }
        let mut unique: Vec<(Key, Value)> = Vec::with_capacity(entries.len());
        let mut positions: BTreeMap<Key, usize> = BTreeMap::new();
        for (key, value) in entries {
            match positions.entry(key.clone()) {
                Entry::Occupied(position) => unique[*position.get()].1 = value,
                Entry::Vacant(position) => {
                    position.insert(unique.len());
                    unique.push((key, value));
                }
            }
        }
        Map(unique)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, value)| value)
    }

    /// The value of `key`, appended as null if it is absent.
    pub fn entry(&mut self, key: impl Into<Key>) -> &mut Value {
        let key = key.into();
        let index = self
            .0
            .iter()
            .position(|(known, _)| *known == key)
            .unwrap_or(self.0.len());
        if index == self.0.len() {
            self.0.push((key, Value::Null));
        }
        &mut self.0[index].1
    }

    /// Moves `key` to the position `index`, or inserts it there as null. There must be at least `index`
    /// entries, and `key` must not be one of the first `index`.
    pub fn move_to(&mut self, index: usize, key: &'static str) -> &mut Value {
        match self.0[index..].iter().position(|(known, _)| known == key) {
            Some(found) => self.0[index..=index + found].rotate_right(1),
            None => self.0.insert(index, (key.into(), Value::Null)),
        }
        &mut self.0[index].1
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Value)> {
        self.0.iter_mut().map(|(key, value)| (&**key, value))
    }

    pub fn into_values(self) -> impl Iterator<Item = Value> {
        self.0.into_iter().map(|(_, value)| value)
    }

    /// Whether PHP writes this map as a list: it is empty, or its keys are exactly 0, 1, 2 … in order.
    pub fn is_list(&self) -> bool {
        self.0.iter().enumerate().all(|(index, (key, _))| {
            key.starts_with(|c: char| c.is_ascii_digit()) && *key == index.to_string()
        })
    }
}

impl<const N: usize> From<[(&'static str, Value); N]> for Map {
    fn from(entries: [(&'static str, Value); N]) -> Map {
        Map(entries.map(|(key, value)| (key.into(), value)).into())
    }
}

/// A map with the keys 0, 1, 2 …: PHP does not distinguish it from a list.
impl From<Vec<Value>> for Map {
    fn from(list: Vec<Value>) -> Map {
        let keyed = list.into_iter().enumerate();
        Map(keyed
            .map(|(index, value)| (index.to_string().into(), value))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As few as the keys of a menu, and more.
    #[test]
    fn the_last_value_of_a_duplicate_key_is_at_the_position_of_the_first() {
        for others in [0, 1, 2 * FEW] {
            let others = (0..others).map(|n| (Key::from(format!("key {n}")), Value::Null));
            let duplicates = [("a", 1), ("a", 2)].map(|(key, n)| (Key::from(key), Value::Int(n)));
            let [first, last] = duplicates;
            let entries: Vec<_> = [first]
                .into_iter()
                .chain(others.clone())
                .chain([last])
                .collect();
            let expected: Vec<_> = [("a".into(), Value::Int(2))]
                .into_iter()
                .chain(others)
                .collect();
            assert_eq!(Map::from_entries(entries), Map(expected));
        }
    }
}
