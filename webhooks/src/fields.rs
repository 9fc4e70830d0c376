//! A JSON object one level deep: names, and values as the bytes they were sent as.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};

use crate::review::Text;

/// Names in one object; more is no object of ours.
const LIMIT: usize = 1024;
/// What is reserved at once: no spec of ours has more names.
const USUAL: usize = 24;

/// The fields of an object; something else than an object has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields<'a> {
    entries: Vec<(Text<'a>, &'a RawValue)>,
    shape: Shape,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shape {
    #[default]
    Other,
    Object,
}

impl<'a> Fields<'a> {
    /// The fields of this value.
    pub(crate) fn of(value: &'a RawValue) -> Result<Self, serde_json::Error> {
        serde_json::from_str(value.get())
    }

    /// Whether it was an object.
    pub(crate) fn is_object(&self) -> bool {
        self.shape == Shape::Object
    }

    /// One field; `null` counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let (_, value) = self.entries.iter().find(|(key, _)| key.as_str() == name)?;
        (value.get() != "null").then_some(*value)
    }

    /// One field that is a text.
    pub(crate) fn text(&self, name: &str) -> Option<Text<'a>> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// One field as `T`; `None` where it is absent or something else.
    pub(crate) fn read<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// The names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    /// Whether both hold the same, the fields of `besides` left out.
    pub(crate) fn same_besides(&self, other: &Self, besides: &[&str]) -> bool {
        self.alike(other, besides) || (self.within(other, besides) && other.within(self, besides))
    }

    /// The same fields in the same order with the same bytes, as the API server sends what did not change.
    fn alike(&self, other: &Self, besides: &[&str]) -> bool {
        let mut one = self.entries.iter().filter(|(name, _)| !besides.contains(&name.as_str()));
        let mut other = other.entries.iter().filter(|(name, _)| !besides.contains(&name.as_str()));
        let is_same = |(name, value): &(Text<'a>, &'a RawValue)| {
            other.next().is_some_and(|(known, held)| known == name && same_bytes(value.get(), held.get()))
        };
        one.all(is_same) && other.next().is_none()
    }

    fn within(&self, other: &Self, besides: &[&str]) -> bool {
        let judged = self.entries.iter().filter(|(name, _)| !besides.contains(&name.as_str()));
        judged.into_iter().all(|(name, value)| same(Some(*value), other.get(name.as_str())) || value.get() == "null")
    }

    /// The whole as a tree.
    pub(crate) fn to_value(&self) -> Result<Value, serde_json::Error> {
        let entries = self.entries.iter().map(|(name, value)| Ok((name.as_str().to_owned(), tree(value)?)));
        entries.collect::<Result<Map<_, _>, _>>().map(Value::Object)
    }
}

/// Whether two values are the same: by their bytes (the API server writes both objects alike), else by their meaning.
pub(crate) fn same(one: Option<&RawValue>, other: Option<&RawValue>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            same_bytes(one.get(), other.get())
                || matches!((tree(one), tree(other)), (Ok(one), Ok(other)) if one == other)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// Word by word: musl's own comparison goes byte by byte, and would cost as much as the parser.
fn same_bytes(one: &str, other: &str) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let (ones, one_rest) = one.as_bytes().as_chunks::<32>();
    let (others, other_rest) = other.as_bytes().as_chunks::<32>();
    ones.iter().zip(others).all(|(one, other)| one == other) && one_rest == other_rest
}

fn tree(value: &RawValue) -> Result<Value, serde_json::Error> {
    serde_json::from_str(value.get())
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries: Vec<(Text<'de>, &'de RawValue)> = Vec::with_capacity(USUAL);
        while let Some((name, value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
            if entries.len() == LIMIT {
                return Err(de::Error::custom("an object has too many fields"));
            }
            if entries.iter().any(|(known, _)| *known == name) {
                return Err(de::Error::custom("an object has a field twice"));
            }
            entries.push((name, value));
        }
        Ok(Fields { entries, shape: Shape::Object })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Fields::default())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Fields::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Fields::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Fields::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Fields::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Fields::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Fields::default())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn fields(text: &str) -> Fields<'_> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn fields_are_the_same_whatever_their_order_and_whatever_is_left_out() {
        let one = fields(r#"{"a":{"x":1,"y":2},"b":1,"gone":null}"#);
        assert!(one.same_besides(&fields(r#"{"b":1,"a":{"y":2, "x":1}}"#), &[]));
        assert!(one.same_besides(&fields(r#"{"b":2,"a":{"y":2,"x":1},"c":1}"#), &["b", "c"]));
        assert!(!one.same_besides(&fields(r#"{"b":1,"a":{"y":2,"x":2}}"#), &[]));
        assert!(!one.same_besides(&fields(r#"{"b":1}"#), &[]));
        assert!(!fields(r#"{"b":1}"#).same_besides(&one, &[]));
    }

    #[test]
    fn a_difference_anywhere_shows() {
        for length in 0..100 {
            let text = "x".repeat(length);
            assert!(same_bytes(&text, &text.clone()) && !same_bytes(&text, &format!("{text}x")));
            for at in 0..length {
                let mut other = text.clone();
                other.replace_range(at..=at, "y");
                assert!(!same_bytes(&text, &other), "{at} of {length}");
            }
        }
        assert!(!fields(r#"{"a":1,"b":2}"#).same_besides(&fields(r#"{"a":1,"b":2,"c":3}"#), &[]));
        assert!(!fields(r#"{"a":1,"b":2,"c":3}"#).same_besides(&fields(r#"{"a":1,"b":2}"#), &[]));
    }

    #[test]
    fn what_is_no_object_has_no_fields() {
        for text in ["1", "-1", "1.5", "\"a\"", "null", "true", "[1,{}]"] {
            assert!(!fields(text).is_object(), "{text}");
        }
        assert!(fields("{}").is_object());
    }

    #[test]
    fn a_field_that_stands_twice_is_refused() {
        assert!(serde_json::from_str::<Fields<'_>>(r#"{"a":1,"\u0061":2}"#).is_err());
        let many = |names| serde_json::to_string(&(0..names).map(|n| (n, 1)).collect::<BTreeMap<_, _>>()).unwrap();
        assert!(serde_json::from_str::<Fields<'_>>(&many(LIMIT)).is_ok());
        assert!(serde_json::from_str::<Fields<'_>>(&many(LIMIT + 1)).is_err());
    }
}
