//! The fields of JSON objects that rules and details name.

/// The wanted fields, with their places in a row.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) all: Vec<Path>,
    /// The paths of details, which never make a line unreadable.
    pub(crate) details: Open,
}

/// A path to a field: its whole name, or the parts of a name with dots as fields of fields.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) steps: Vec<Box<str>>,
    pub(crate) place: usize,
}

/// A set of paths, with a bit for each.
pub(crate) type Open = u64;

impl Paths {
    /// The largest number of fields.
    pub(crate) const MOST: usize = 32;

    /// The paths of names with their places in a row.
    pub(crate) fn new<N: AsRef<str>>(names: impl Iterator<Item = (N, usize)>) -> Self {
        let mut paths = Vec::new();
        for (name, place) in names {
            let name = name.as_ref();
            let steps = vec![name.into()];
            paths.push(Path { steps, place });
            if name.contains('.') {
                let steps = name.split('.').map(Into::into).collect();
                paths.push(Path { steps, place });
            }
        }
        debug_assert!(paths.len() <= 2 * Self::MOST, "of {} bits", Open::BITS);
        Self {
            all: paths,
            details: 0,
        }
    }

    /// The place for the value of an object's field, or the paths that continue inside of it.
    pub(crate) fn step(&self, open: Open, depth: usize, name: &[u8]) -> PathStep {
        let mut step = PathStep {
            here: None,
            path: 0,
            deeper: 0,
        };
        for (number, path) in self.all.iter().enumerate() {
            if open & (1 << number) != 0 && path.steps.get(depth).is_some_and(|step| step.as_bytes() == name)
            {
                if path.steps.len() == depth + 1 {
                    step.here = Some(path.place);
                    step.path = number;
                } else {
                    step.deeper |= 1 << number;
                }
            }
        }
        step
    }
}

/// The paths that continue after one name.
#[derive(Debug)]
pub(crate) struct PathStep {
    pub(crate) here: Option<usize>,
    /// The number of the path that ends here.
    pub(crate) path: usize,
    pub(crate) deeper: Open,
}
