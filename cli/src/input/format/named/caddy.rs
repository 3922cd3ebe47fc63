//! Access logs of Caddy: JSON with the request as an object.

/// Fields that no other server writes together.
const FIELDS: [&str; 3] = ["request", "logger", "status"];

/// Whether an object with these fields is a line of Caddy. Its fields have the names of [`NamedFields`].
///
/// [`NamedFields`]: super::fields::NamedFields
pub(crate) fn is(names: &[String]) -> bool {
    FIELDS.iter().all(|field| names.iter().any(|name| name == field))
}

#[cfg(test)]
mod tests {
    use crate::input::format::named::json::{Json, names};
    use crate::input::format::{LogFormat, Parsed, WantedFields};
    use crate::input::row::Row;
    use crate::input::time::infer_year::YearInference;
    use crate::input::time::timestamp::{TimestampFormat, TimestampParser};

    const LINE: &str = r#"{"level":"info","ts":1431857103.25,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"203.0.113.7","remote_port":"41342","client_ip":"198.51.100.9","proto":"HTTP/2.0","method":"GET","host":"www.example.com","uri":"/a?b=1","headers":{"User-Agent":["curl/8.0"],"Accept":["*/*"]}},"bytes_read":0,"user_id":"ann","duration":0.0009,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}"#;

    #[test]
    fn the_fields_of_a_line_are_found() {
        assert!(super::is(&names(LINE.as_bytes())));
        assert!(!super::is(&names(br#"{"ts":1,"client":"a"}"#)));
        let wanted = [
            ("client", "198.51.100.9"),
            ("user", "ann"),
            ("method", "GET"),
            ("path", "/a"),
            ("target", "/a?b=1"),
            ("protocol", "HTTP/2.0"),
            ("status", "200"),
            ("size", "10900"),
            ("agent", "curl/8.0"),
            ("vhost", "www.example.com"),
            ("request.remote_ip", "203.0.113.7"),
        ];
        let fields = wanted
            .iter()
            .zip(0..)
            .map(|((name, _), place)| ((*name).to_owned(), place));
        let wanted_fields = WantedFields {
            fields: fields.collect(),
            time_place: wanted.len(),
            time: None,
        };
        let lines = [(1, LINE.as_bytes().to_vec())];
        let mut format = Json::new(&lines, &wanted_fields).expect("a format");
        let mut row = Row::new(wanted.len() + 1);
        let mut timestamps = TimestampParser::new(TimestampFormat::Auto, YearInference::new(None, 0), 0);
        let parsed = format.parse(LINE.as_bytes(), &mut timestamps, &mut row);
        assert_eq!(parsed, Ok(Parsed::Request));
        assert_eq!(row.time, 1_431_857_103_250_000_000);
        for ((name, value), place) in wanted.into_iter().zip(0..) {
            assert_eq!(row.get(place), Some(value.as_bytes()), "{name}");
        }
    }
}
