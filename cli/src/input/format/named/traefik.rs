//! Access logs of Traefik in JSON; its others are lines of the common format.

/// Fields that no other server writes together.
const FIELDS: [&str; 3] = ["ClientHost", "RequestMethod", "DownstreamStatus"];

/// Whether an object with these fields is a line of Traefik. Its fields have the names of [`NamedFields`].
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

    const LINE: &str = r#"{"ClientAddr":"198.51.100.9:52112","ClientHost":"198.51.100.9","ClientPort":"52112","ClientUsername":"-","DownstreamContentSize":19,"DownstreamStatus":404,"Duration":101200,"RequestCount":7,"RequestHost":"www.example.com","RequestMethod":"GET","RequestPath":"/a?b=1","RequestProtocol":"HTTP/1.1","RouterName":"web@docker","StartLocal":"2015-05-17T12:05:03.25+02:00","StartUTC":"2015-05-17T10:05:03.25Z","entryPointName":"web","level":"info","msg":"","request_User-Agent":"curl/8.0","time":"2015-05-17T12:05:04+02:00"}"#;

    #[test]
    fn the_fields_of_a_line_are_found() {
        assert!(super::is(&names(LINE.as_bytes())));
        assert!(!super::is(&names(br#"{"ts":1,"client":"a"}"#)));
        let wanted = [
            ("client", "198.51.100.9"),
            ("user", "-"),
            ("method", "GET"),
            ("path", "/a"),
            ("target", "/a?b=1"),
            ("protocol", "HTTP/1.1"),
            ("status", "404"),
            ("size", "19"),
            ("agent", "curl/8.0"),
            ("vhost", "www.example.com"),
            ("ClientAddr", "198.51.100.9:52112"),
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
