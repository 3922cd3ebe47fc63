//! Access logs of AWS S3.

use crate::input::format::columns::Part;
use crate::input::format::words::Layout;

pub(crate) const S3: Layout = Layout {
    title: "an access log of AWS S3",
    names: &[
        "bucket_owner",
        "bucket",
        "time",
        "remote_ip",
        "requester",
        "request_id",
        "operation",
        "key",
        "request_uri",
        "http_status",
        "error_code",
        "bytes_sent",
        "object_size",
        "total_time",
        "turn_around_time",
        "referer",
        "user_agent",
        "version_id",
        "host_id",
        "signature_version",
        "cipher_suite",
        "authentication_type",
        "host_header",
        "tls_version",
        "access_point_arn",
        "acl_required",
    ],
    standard: &[
        ("client", "remote_ip", Part::Address),
        ("user", "requester", Part::Whole),
        ("request", "request_uri", Part::Whole),
        ("method", "request_uri", Part::Word(0)),
        ("target", "request_uri", Part::Word(1)),
        ("path", "request_uri", Part::PathOfRequest),
        ("protocol", "request_uri", Part::Word(2)),
        ("status", "http_status", Part::Whole),
        ("size", "bytes_sent", Part::Whole),
        ("agent", "user_agent", Part::Whole),
        ("vhost", "host_header", Part::Whole),
    ],
    times: &["time"],
    least: 17,
    most: usize::MAX,
    is: |words| {
        let is_operation = |word: &[u8]| {
            let kind = word.split(|&byte| byte == b'.').next();
            matches!(kind, Some(b"REST" | b"SOAP" | b"WEBSITE" | b"BATCH" | b"S3"))
        };
        is_operation(words[6])
    },
};

#[cfg(test)]
mod tests {
    use super::S3;
    use crate::input::format::words::tests::check;

    #[test]
    fn lines_are_read() {
        let line = r#"79a59df900b949e5 mybucket [17/May/2015:10:05:03 +0000] 198.51.100.9 arn:aws:iam::123456789012:user/ann 3E57427F3EXAMPLE REST.GET.OBJECT a/b.txt "GET /mybucket/a/b.txt?x=1 HTTP/1.1" 200 - 113 113 7 5 "-" "S3Console/0.4" - s9lzHYrFp76ZVxRcpX9+5cjAnEH2ROuNkd2BHfIa6UkFVdtjf5mKR3/eTPFvsiP/XV/VLi31234= SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader mybucket.s3.us-west-1.amazonaws.com TLSV1.2 - -"#;
        let expected = [
            ("client", Some("198.51.100.9")),
            ("user", Some("arn:aws:iam::123456789012:user/ann")),
            ("method", Some("GET")),
            ("path", Some("/mybucket/a/b.txt")),
            ("status", Some("200")),
            ("size", Some("113")),
            ("referer", None),
            ("agent", Some("S3Console/0.4")),
            ("bucket", Some("mybucket")),
        ];
        let neighbours = [
            line.replace("198.51.100.9", "www.example.com"),
            line.replace("REST.GET.OBJECT", "GET"),
            line.replace("[17/May", "[37/May"),
            line["79a59df900b949e5 ".len()..].to_owned(),
        ];
        check(
            S3,
            (line, 1_431_857_103_000_000_000),
            &expected,
            &neighbours.each_ref().map(String::as_str),
        );
        // Operations of the service itself have no address.
        let internal = line.replace("198.51.100.9", "-");
        let missing = expected.map(|(name, value)| (name, value.filter(|_| name != "client")));
        check(S3, (&internal, 1_431_857_103_000_000_000), &missing, &[]);
    }
}
