//! Numbers in the answers of servers, whatever type the server gave them.

use std::str::FromStr;

use mysql_async::{Row, Value};

/// A value as a number; `None` for NULL and for what is not one. The text protocol sends digits.
pub(crate) fn number<T: FromStr>(value: &Value) -> Option<T> {
    match value {
        Value::Bytes(digits) => std::str::from_utf8(digits).ok()?.trim().parse().ok(),
        Value::Int(number) => number.to_string().parse().ok(),
        Value::UInt(number) => number.to_string().parse().ok(),
        Value::Float(number) => number.to_string().parse().ok(),
        Value::Double(number) => number.to_string().parse().ok(),
        Value::NULL | Value::Date(..) | Value::Time(..) => None,
    }
}

/// A value as text; `None` for NULL.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::Int(number) => Some(number.to_string()),
        Value::UInt(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Double(number) => Some(number.to_string()),
        Value::NULL | Value::Date(..) | Value::Time(..) => None,
    }
}

/// Whether a variable that may be a word or a number is on.
pub(crate) fn is_on(value: &str) -> bool {
    !matches!(value.to_ascii_uppercase().as_str(), "0" | "OFF" | "")
}

/// The value of the first of these columns that the row has.
pub(crate) fn column<'r>(row: &'r Row, names: &[&str]) -> Option<&'r Value> {
    names.iter().find_map(|name| {
        let index = row.columns_ref().iter().position(|column| column.name_str() == *name)?;
        row.as_ref(index)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_on_unless_it_says_that_it_is_off() {
        assert!(["1", "ON", "on", "NO_LOCK_NO_ADMIN"].into_iter().all(is_on));
        assert!(!["0", "OFF", "off", ""].into_iter().any(is_on));
    }

    #[test]
    fn digits_of_any_type_are_numbers_and_null_is_not() {
        assert_eq!(number::<f64>(&Value::Bytes(b" 12.5 ".to_vec())), Some(12.5));
        assert_eq!(number::<u64>(&Value::Bytes(b"18446744073709551615".to_vec())), Some(u64::MAX));
        assert_eq!(number::<f64>(&Value::Int(-3)), Some(-3.0));
        assert_eq!(number::<f64>(&Value::Double(0.5)), Some(0.5));
        assert_eq!(number::<f64>(&Value::NULL), None);
        assert_eq!(number::<f64>(&Value::Bytes(b"ON".to_vec())), None);
    }
}
