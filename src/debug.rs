//! `Debug` of packed words.

/// Implements `Debug` for a packed word: its fields, by the methods that read them.
macro_rules! debug_fields {
    ($word:ident { $($field:ident),+ }) => {
        impl core::fmt::Debug for $word {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let mut fields = f.debug_struct(stringify!($word));
                $(fields.field(stringify!($field), &self.$field());)+
                fields.finish()
            }
        }
    };
}

pub(crate) use debug_fields;
