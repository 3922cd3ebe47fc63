use alloc::format;
use alloc::string::String;

use super::StateAlgorithms;
use super::word_layout::{RingForm, WordLayout};
use crate::algorithm::Algorithm;

impl StateAlgorithms {
    /// The algorithm and its tiers as text, without the rule's quotas.
    pub(crate) fn description(&self) -> String {
        let mut text = match &self.layout {
            WordLayout::Counter { form, .. } => match form {
                RingForm::Cells(kind, cells) => format!("{kind:?} of {cells} cells"),
                RingForm::Word { cells, unit } => format!("one word of {cells} cells in units of {unit}"),
            },
            WordLayout::Log(_) => String::from("Log"),
            WordLayout::Gcra { burst, .. } => format!("Gcra with burst {burst}"),
            WordLayout::Calendar { quota, .. } => format!("Calendar of {quota}"),
            WordLayout::InFlight => String::from("InFlight"),
            WordLayout::Violations => String::from("Violations"),
        };
        if self.unit() > 1 {
            text += &format!(" in units of {}", self.unit());
        }
        for tier in &self.tiers[1..] {
            text += &format!(", tier of {}", tier.bound());
        }
        text
    }
}
