use smallvec::SmallVec;

/// An item of `RateLimit` or `RateLimit-Policy`: a string, and the parameters that the two fields define.
///
/// A parameter that is missing, or is no number, is `None`. Permits are rounded down, and times up. A negative number of remaining permits
/// is 0, and other negative numbers are `None`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Item<'a> {
    /// The text between the quotes. Two strings are equal exactly if these texts are, because no character has two spellings.
    pub(super) name: &'a [u8],
    pub(super) limit: Option<u64>,
    pub(super) window: Option<u64>,
    pub(super) remaining: Option<u64>,
    pub(super) reset: Option<u64>,
}

/// The items of one response. Up to four need no allocation.
pub(super) type Items<'a> = SmallVec<[Item<'a>; 4]>;

/// Adds the items of one line of a structured list (RFC 9651, section 3.1), except those that are no strings.
///
/// A line that is no list adds nothing. The values of tokens, dates and byte sequences are not validated, because they are
/// not used. Inner lists are not read: a line with one is no list.
pub(super) fn add_items<'a>(line: &'a [u8], items: &mut Items<'a>) {
    let before = items.len();
    let mut reader = Reader {
        rest: line.trim_ascii(),
    };
    if !reader.rest.is_empty() && reader.read_items(items).is_none() {
        items.truncate(before);
    }
}

/// Returns the number that decimal digits state. A number above `u64::MAX` is `u64::MAX`.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let append = |number: u64, digit: &u8| number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(digits.iter().fold(0, append))
}

/// The text that is still to be read. Each method returns `None` if the text is no list.
struct Reader<'a> {
    rest: &'a [u8],
}

/// A bare item of a structured list (RFC 9651, section 3.3).
enum Value<'a> {
    String(&'a [u8]),
    /// An integer or a decimal, rounded down and up. `None` if it is negative.
    Number(Option<(u64, u64)>),
    Other,
}

/// Reads an integer or a decimal.
fn decimal(text: &[u8]) -> Option<Value<'static>> {
    let digits = text.strip_prefix(b"-");
    let mut parts = digits.unwrap_or(text).splitn(2, |&byte| byte == b'.');
    let whole = number(parts.next()?)?;
    let fraction = parts.next().unwrap_or(b"0");
    number(fraction)?;
    let up = whole.saturating_add(fraction.iter().any(|&digit| digit != b'0').into());
    // -0 is 0.
    let is_negative = digits.is_some() && up > 0;
    Some(Value::Number((!is_negative).then_some((whole, up))))
}

impl<'a> Reader<'a> {
    fn read_items(&mut self, items: &mut Items<'a>) -> Option<()> {
        loop {
            let value = self.value()?;
            let mut item = Item::default();
            self.read_parameters(&mut item)?;
            if let Value::String(name) = value {
                items.push(Item { name, ..item });
            }
            self.skip(|byte| matches!(byte, b' ' | b'\t'));
            if self.rest.is_empty() {
                return Some(());
            }
            if !self.take(b',') {
                return None;
            }
            self.skip(|byte| matches!(byte, b' ' | b'\t'));
        }
    }

    fn read_parameters(&mut self, item: &mut Item<'a>) -> Option<()> {
        while self.take(b';') {
            self.skip(|byte| byte == b' ');
            let key = self.skip(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*'));
            if !matches!(key.first(), Some(b'a'..=b'z' | b'*')) {
                return None;
            }
            let value = if self.take(b'=') {
                self.value()?
            } else {
                Value::Other
            };
            let number = match value {
                Value::Number(number) => Some(number),
                Value::String(_) | Value::Other => None,
            };
            let (down, up) = number.flatten().unzip();
            // The last parameter of several with one key counts.
            match key {
                b"q" => item.limit = down,
                b"w" => item.window = up,
                b"r" => item.remaining = number.map(|_| down.unwrap_or(0)),
                b"t" => item.reset = up,
                _ => {}
            }
        }
        Some(())
    }

    fn value(&mut self) -> Option<Value<'a>> {
        if self.take(b'"') {
            return self.string(true).map(Value::String);
        }
        let text = self.skip(|byte| matches!(byte, b'!'..=b'~') && !b"\"(),;".contains(&byte));
        // A display string (RFC 9651, section 3.3.8) has no escapes with a backslash.
        if text == b"%" && self.take(b'"') {
            return self.string(false).map(|_| Value::Other);
        }
        decimal(text).or_else(|| (!text.is_empty()).then_some(Value::Other))
    }

    /// Reads a string after its opening quote.
    fn string(&mut self, escapes: bool) -> Option<&'a [u8]> {
        let start = self.rest;
        loop {
            self.skip(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && !(escapes && byte == b'\\'));
            let length = start.len() - self.rest.len();
            if self.take(b'"') {
                return start.get(..length);
            }
            // Fails at the end of the text, and at a byte that is not printable.
            if !self.take(b'\\') || !(self.take(b'"') || self.take(b'\\')) {
                return None;
            }
        }
    }

    /// Returns the longest prefix of such bytes, which is skipped.
    fn skip(&mut self, included: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().position(|&byte| !included(byte));
        let (prefix, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        prefix
    }

    fn take(&mut self, byte: u8) -> bool {
        let rest = self.rest.strip_prefix(&[byte]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}
