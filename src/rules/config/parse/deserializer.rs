use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::node::{Field, Node, Value};
use super::position::Position;

/// Reads the root value from any deserializer, without positions.
pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
    Depth(1).deserialize(deserializer)
}

/// Reads a value at this depth of nesting.
#[derive(Clone, Copy)]
struct Depth(usize);

impl Depth {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.0 >= Node::MAX_DEPTH {
            return Err(E::custom("values are nested too deep"));
        }
        Ok(Self(self.0 + 1))
    }
}

impl<'de> DeserializeSeed<'de> for Depth {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

fn node(value: Value) -> Node {
    Node {
        at: Position::START,
        value,
    }
}

impl<'de> Visitor<'de> for Depth {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rules")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(node(Value::Bool(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(node(Value::Whole(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        let other = |_| Value::Other(value.to_string());
        Ok(node(u64::try_from(value).map_or_else(other, Value::Whole)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        Ok(node(Value::Other(format!("{value:?}"))))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        Ok(node(Value::Text(text.to_owned())))
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(node(Value::Other(String::from("null"))))
    }

    fn visit_none<E: Error>(self) -> Result<Node, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        self.deeper()?.deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        self.deeper()?.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let deeper = self.deeper()?;
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element_seed(deeper)? {
            nodes.push(node);
        }
        Ok(node(Value::List(nodes)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let deeper = self.deeper()?;
        let mut fields = Vec::new();
        while let Some(name) = map.next_key()? {
            fields.push(Field {
                name,
                at: Position::START,
                node: map.next_value_seed(deeper)?,
            });
        }
        Node::map(Position::START, fields).map_err(|error| A::Error::custom(error.without_position()))
    }
}
