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
    Number(Number),
    Other,
}

/// An integer or a decimal (RFC 9651, section 3.3).
#[derive(Clone, Copy)]
struct Number {
    is_negative: bool,
    /// The digits before the point.
    whole: u64,
    /// Whether a digit after the point is not 0.
    has_fraction: bool,
}

impl Number {
    fn parse(text: &[u8]) -> Option<Self> {
        let (is_negative, digits) = match text {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        let point = digits.iter().position(|&byte| byte == b'.');
        let (whole, fraction) = match point {
            Some(point) => (digits.get(..point)?, digits.get(point + 1..)?),
            None => (digits, &b"0"[..]),
        };
        number(fraction)?;
        let whole = number(whole)?;
        let has_fraction = fraction.iter().any(|&digit| digit != b'0');
        Some(Self {
            // -0 is 0.
            is_negative: is_negative && (whole > 0 || has_fraction),
            whole,
            has_fraction,
        })
    }

    /// A number of permits. `None` if it is negative.
    fn down(self) -> Option<u64> {
        (!self.is_negative).then_some(self.whole)
    }

    /// A time. `None` if it is negative.
    fn up(self) -> Option<u64> {
        let up = self.whole.saturating_add(self.has_fraction.into());
        (!self.is_negative).then_some(up)
    }
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
            // The last parameter of several with one key counts.
            match key {
                b"q" => item.limit = number.and_then(Number::down),
                b"w" => item.window = number.and_then(Number::up),
                b"r" => item.remaining = number.map(|number| number.down().unwrap_or(0)),
                b"t" => item.reset = number.and_then(Number::up),
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
        match Number::parse(text) {
            Some(number) => Some(Value::Number(number)),
            None => (!text.is_empty()).then_some(Value::Other),
        }
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
