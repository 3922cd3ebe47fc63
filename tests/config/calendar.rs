//! The fields `calendar` and `time_zone`.

use ringgate::rules::{Extractors, FileFormat, RuleSetBuilder};

/// The error of a rule with these fields, as TOML.
fn error(fields: &str) -> String {
    let text = format!("[[rules]]\nname = 'it'\n{fields}");
    let read = RuleSetBuilder::<str>::from_text(&text, FileFormat::Toml, &Extractors::new());
    read.expect_err(fields).to_string()
}

#[cfg(not(feature = "calendar"))]
#[test]
fn a_program_without_the_feature_says_so() {
    assert_eq!(
        error("calendar = '9/month'\ntime_zone = 'Europe/Berlin'"),
        "line 4, column 13: rule \"it\": invalid time_zone: \"Europe/Berlin\" (expected UTC: this program was built without the \
         feature `calendar` of ringgate)"
    );
}

#[cfg(feature = "calendar")]
mod with_feature {
    use core::time::Duration;
    use std::time::SystemTime;

    use ringgate::algorithm::CalendarQuota;
    use ringgate::rules::{Condition, Cost, TierOf};
    use ringgate::{Key, ManualClock};

    use super::*;

    /// The rules of a file whose only rule has these fields.
    fn read(fields: &str, format: FileFormat) -> RuleSetBuilder<str> {
        let text = match format {
            FileFormat::Toml => format!("[[rules]]\nname = 'it'\n{fields}"),
            FileFormat::Json => format!("{{\"rules\": [{{\"name\": \"it\", {fields}}}]}}"),
            _ => format!("rules:\n- name: it\n  {fields}"),
        };
        let extractors = Extractors::new()
            .key(Key::new("user", |request: &str, key| {
                core::hash::Hash::hash(request, key)
            }))
            .and_then(|it| it.cost(Cost::new("bytes", |request: &str| request.len() as u64)))
            .and_then(|it| it.condition(Condition::new("long", |request: &str| request.len() > 9)))
            .and_then(|it| it.tier_of(TierOf::new("plan", |_: &str| Some("paid"))))
            .expect("different names");
        RuleSetBuilder::from_text(&text, format, &extractors).expect("a valid file")
    }

    #[test]
    fn calendars_are_read() {
        let month: CalendarQuota = "50_000/month from the 5th".parse().expect("a quota");
        let berlin = month.clone().in_zone("Europe/Berlin").expect("a zone");
        for (toml, json, yaml, expected) in [
            (
                "calendar = '50_000/month from the 5th'",
                r#""calendar": "50_000/month from the 5th""#,
                "calendar: 50_000/month from the 5th",
                &month,
            ),
            (
                "calendar = '50_000 per month from 5'\ntime_zone = 'Europe/Berlin'",
                r#""time_zone": "Europe/Berlin", "calendar": "50_000 per month from 5""#,
                "calendar: 50_000 per month from 5\n  time_zone: Europe/Berlin",
                &berlin,
            ),
        ] {
            for (fields, format) in [
                (toml, FileFormat::Toml),
                (json, FileFormat::Json),
                (yaml, FileFormat::Yaml),
            ] {
                let rules = read(fields, format);
                assert_eq!(rules.rules()[0].view().calendar, Some(expected), "{fields}");
            }
        }
    }

    #[test]
    fn all_other_fields_apply() {
        let fields = "calendar = '5/day'\nkey = 'user'\ncost = 'bytes'\nwhen = 'long'\ncapacity = 9\non_full = 'deny'\n\
                      allow = []\n[rules.tiers]\nby = 'plan'\nlimits = { paid = 20 }";
        let origin = SystemTime::UNIX_EPOCH + Duration::from_secs(20 * 3600);
        let rules = read(fields, FileFormat::Toml).origin(origin);
        let rules = rules
            .build_with(ManualClock::new(), [1, 2, 3, 4])
            .expect("valid rules");
        assert!(rules.check("short").is_ok());
        assert!(rules.check("twelve bytes").is_ok());
        let denied = rules.check("twelve bytes").expect_err("eight are left");
        assert_eq!(denied.retry_after(), Some(Duration::from_secs(4 * 3600)));
    }

    /// Errors of time zones. `errors.txt` has those of calendars.
    #[test]
    fn errors_state_the_field_and_the_accepted_values() {
        for (fields, expected) in [
            (
                "calendar = '5/day'\ntime_zone = 'Berlin'",
                "\"Berlin\" (expected UTC, or a name of the time zone database, such as Europe/Berlin)",
            ),
            (
                "calendar = '5/day'\ntime_zone = 1",
                "1 (expected text such as \"Europe/Berlin\")",
            ),
            (
                "quota = '5/s'\ntime_zone = 'UTC'",
                "given beside quota (expected a rule with calendar)",
            ),
        ] {
            let expected = format!("line 4, column 13: rule \"it\": invalid time_zone: {expected}");
            assert_eq!(error(fields), expected, "{fields}");
        }
    }
}
