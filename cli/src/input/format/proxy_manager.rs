//! Access logs of Nginx Proxy Manager: lines of proxied hosts, and shorter lines of hosts that answer themselves, in one file.

use crate::failure::Failure;
use crate::input::format::columns::{Columns, Part, Standard};
use crate::input::format::words::split;
use crate::input::format::{LogFormat, Parsed, WantedFields};
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

const NAMES: [&str; 13] = [
    "time",
    "cache_status",
    "upstream_status",
    "status",
    "method",
    "scheme",
    "host",
    "request_uri",
    "client_ip",
    "length",
    "sent_to",
    "user_agent",
    "referer",
];

const STANDARD: &[Standard] = &[
    ("client", "client_ip", Part::Address),
    ("target", "request_uri", Part::Whole),
    ("path", "request_uri", Part::Path),
    ("size", "length", Part::Whole),
    ("agent", "user_agent", Part::Whole),
    ("vhost", "host", Part::Whole),
];

/// The beginning of the bracket with the client's address.
const CLIENT: &[u8] = b"Client ";

/// The words from the status to the target, which precede the client.
const BEFORE: usize = 6;

/// The access log of Nginx Proxy Manager.
#[derive(Debug)]
pub(crate) struct ProxyManager {
    columns: Columns,
    words: Vec<(usize, usize)>,
}

impl ProxyManager {
    /// # Errors
    ///
    /// When the format does not have a wanted field.
    pub(crate) fn new(wanted: &WantedFields) -> Result<Self, Failure> {
        let title = "an access log of Nginx Proxy Manager";
        Ok(Self {
            columns: Columns::new(title, &NAMES, STANDARD, &["time"], wanted)?.with_missing_dash(),
            words: Vec::new(),
        })
    }
}

impl LogFormat for ProxyManager {
    fn parse(
        &mut self,
        line: &[u8],
        timestamps: &mut TimestampParser,
        row: &mut Row,
    ) -> Result<Parsed, Unreadable> {
        // A word that is cut is left out.
        split(line, &mut self.words);
        let is_bracketed = |word: &(usize, usize)| word.0 > 0 && line[word.0 - 1] == b'[';
        let text = |word: &(usize, usize)| &line[word.0..word.1];
        // The client of a request chooses the words in quotation marks, and no words in brackets.
        let client = self
            .words
            .iter()
            .position(|word| is_bracketed(word) && text(word).starts_with(CLIENT));
        let client = client.filter(|client| *client > BEFORE && is_bracketed(&self.words[0]));
        let client =
            client.ok_or_else(|| Unreadable::line("no [time] and [Client ..] of Nginx Proxy Manager"))?;
        let mut values: [&[u8]; NAMES.len()] = [b"-"; NAMES.len()];
        values[0] = text(&self.words[0]);
        // The status of several upstream servers has spaces.
        let upstream = &self.words[1..client - BEFORE];
        if let [cache, rest @ ..] = upstream {
            values[1] = text(cache);
            if let (Some(first), Some(last)) = (rest.first(), rest.last()) {
                values[2] = &line[first.0..last.1];
            }
        }
        let [status, dash, method, scheme, host, target] =
            [0, 1, 2, 3, 4, 5].map(|number| text(&self.words[client - BEFORE + number]));
        if dash != b"-" {
            return Err(Unreadable::line(
                "no \"-\" after the status of Nginx Proxy Manager",
            ));
        }
        values[3..8].copy_from_slice(&[status, method, scheme, host, target]);
        values[8] = &text(&self.words[client])[CLIENT.len()..];
        let mut quoted = 11;
        for word in &self.words[client + 1..] {
            if is_bracketed(word) {
                let named: [(&[u8], usize); 2] = [(b"Length ", 9), (b"Sent-to ", 10)];
                for (name, place) in named {
                    if let Some(value) = text(word).strip_prefix(name) {
                        values[place] = value;
                    }
                }
            } else if quoted < NAMES.len() {
                values[quoted] = text(word);
                quoted += 1;
            }
        }
        self.columns
            .fill(|column| values.get(column).copied(), timestamps, row)?;
        Ok(Parsed::Request)
    }
}

#[cfg(test)]
mod tests {
    use super::ProxyManager;
    use crate::input::format::words::tests::{fields, wanted};

    #[test]
    fn lines_of_both_shapes_are_read() {
        let names = [
            "client",
            "status",
            "method",
            "path",
            "vhost",
            "size",
            "agent",
            "upstream_status",
        ];
        let mut format = ProxyManager::new(&wanted(&names)).expect("known fields");
        let at = 1_431_857_103_000_000_000;
        let values = |of: [&str; 8]| of.map(|value| (value != "-").then(|| value.to_owned())).to_vec();
        let short = r#"[17/May/2015:10:05:03 +0000] 444 - GET https example.com "/a?b" [Client 198.51.100.9] [Length 0] [Gzip -] "UA" "-""#;
        let expected = ["198.51.100.9", "444", "GET", "/a", "example.com", "0", "UA", "-"];
        assert_eq!(fields(&mut format, short, 8), Ok((at, values(expected))));
        let long = r#"[17/May/2015:10:05:03 +0000] - 502, 200 200 - GET https example.com "/a?b" [Client 2001:db8::1] [Length 61] [Gzip -] [Sent-to 10.0.0.2] "UA" "ref""#;
        let expected = [
            "2001:db8::1",
            "200",
            "GET",
            "/a",
            "example.com",
            "61",
            "UA",
            "502, 200",
        ];
        assert_eq!(fields(&mut format, long, 8), Ok((at, values(expected))));
        // The target and the agent do not become a client.
        let forged = short
            .replace("/a?b", "/ [Client 192.0.2.1] ")
            .replace("\"UA\"", "\"[Client 192.0.2.1]\"");
        let (_, found) = fields(&mut format, &forged, 8).expect("a line");
        assert_eq!(found[0].as_deref(), Some("198.51.100.9"));
        for other in [
            &short.replace("Client", "Klient"),
            &short.replace("198.51.100.9", "www.example.com"),
            &short.replace("[17/May", "[37/May"),
            &short.replace(" - GET", " GET"),
            &short[..60],
        ] {
            fields(&mut format, other, 8).expect_err(other);
        }
    }
}
