//! What may be on the disk after a power cut: a model of a folder, by what POSIX allows.
//!
//! The model looks at the folder after each system call of a program, so it needs to know none of the calls that change
//! files, only the flushes (fsync(2)). What was flushed stays. Until then:
//!
//! - a file is as it was at its last flush (a new one: empty), or as it was at any time since then, or it has half of
//!   such a content;
//! - an entry of a folder is as it was at the last flush of the folder, or as at any time since then, each entry
//!   by itself. A rename changes two entries. The states of a journal, which keeps the order, are among these.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

/// A possible content of the disk: its files by their paths, and folders, which have no content.
pub type Tree = BTreeMap<PathBuf, Option<Rc<[u8]>>>;

/// A file or folder, whatever its name: its index in [`Disk::nodes`].
type Id = usize;
type Inode = (u64, u64);

/// What each may be after a power cut: as it was at the last flush, and as it was at each change since then.
enum Node {
    File(Vec<Rc<[u8]>>),
    Folder(BTreeMap<String, Vec<Option<Id>>>),
}

pub struct Disk {
    root: PathBuf,
    nodes: Vec<Node>,
    /// Those that have a name. The number of an inode is used again after the file is deleted.
    named: BTreeMap<Inode, Id>,
}

impl Disk {
    /// A folder whose content was flushed.
    pub fn flushed(root: &Path) -> Disk {
        let mut disk = Disk {
            root: root.to_owned(),
            nodes: Vec::new(),
            named: BTreeMap::new(),
        };
        disk.look();
        (0..disk.nodes.len()).for_each(|id| disk.flush_node(id));
        disk
    }

    /// Sees what has changed since the last look; returns whether anything has.
    pub fn look(&mut self) -> bool {
        let (mut named, mut has_changed) = (BTreeMap::new(), false);
        self.look_at(&self.root.clone(), &mut named, &mut has_changed);
        self.named = named;
        has_changed
    }

    fn look_at(&mut self, path: &Path, named: &mut BTreeMap<Inode, Id>, changed: &mut bool) -> Id {
        let metadata = fs::symlink_metadata(path).unwrap();
        let inode = (metadata.dev(), metadata.ino());
        let id = self
            .named
            .get(&inode)
            .or(named.get(&inode))
            .copied()
            .unwrap_or_else(|| {
                let file = || Node::File(vec![Rc::default()]);
                let folder = || Node::Folder(BTreeMap::new());
                self.nodes
                    .push(if metadata.is_dir() { folder() } else { file() });
                self.nodes.len() - 1
            });
        named.insert(inode, id);
        let mut entries = BTreeMap::new();
        if metadata.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let child = self.look_at(&path.join(&name), named, changed);
                entries.insert(name, child);
            }
        }
        match &mut self.nodes[id] {
            Node::File(contents) => {
                let content = fs::read(path).unwrap();
                if **contents.last().unwrap() != *content {
                    contents.push(content[..content.len() / 2].into());
                    contents.push(content.into());
                    *changed = true;
                }
            }
            Node::Folder(known) => {
                for name in entries.keys() {
                    known.entry(name.clone()).or_insert_with(|| vec![None]);
                }
                for (name, values) in known {
                    let now = entries.get(name).copied();
                    if *values.last().unwrap() != now {
                        values.push(now);
                        *changed = true;
                    }
                }
            }
        }
        id
    }

    /// The file or folder that has been opened as `descriptor`, a path in /proc, was flushed.
    pub fn flush(&mut self, descriptor: &Path) {
        let metadata = fs::metadata(descriptor).unwrap();
        if let Some(&id) = self.named.get(&(metadata.dev(), metadata.ino())) {
            self.flush_node(id);
        }
    }

    fn flush_node(&mut self, id: Id) {
        match &mut self.nodes[id] {
            Node::File(contents) => drop(contents.drain(..contents.len() - 1)),
            Node::Folder(entries) => {
                for values in entries.values_mut() {
                    values.drain(..values.len() - 1);
                }
            }
        }
    }

    /// All that may be on the disk after a power cut at this moment.
    pub fn states(&self) -> BTreeSet<Tree> {
        let mut open = BTreeMap::new();
        for (id, node) in self.nodes.iter().enumerate() {
            match node {
                Node::File(contents) => _ = open.insert((id, ""), contents.len()),
                Node::Folder(entries) => {
                    open.extend(
                        entries
                            .iter()
                            .map(|(name, values)| ((id, &**name), values.len())),
                    );
                }
            }
        }
        open.retain(|_, count| *count > 1);
        let number: usize = open.values().product();
        assert!(number < 1_000_000, "{number} combinations");
        let state = |mut number| {
            let chosen = open.iter().map(|(&place, count)| {
                let choice = number % count;
                number /= count;
                (place, choice)
            });
            let (chosen, mut tree) = (chosen.collect(), Tree::new());
            self.lay(0, Path::new(""), &chosen, &mut tree);
            tree
        };
        (0..number).map(state).collect()
    }

    fn lay(&self, id: Id, path: &Path, chosen: &BTreeMap<(Id, &str), usize>, tree: &mut Tree) {
        let choice = |name| chosen.get(&(id, name)).copied().unwrap_or(0);
        match &self.nodes[id] {
            Node::File(contents) => {
                _ = tree.insert(path.into(), Some(contents[choice("")].clone()))
            }
            Node::Folder(entries) => {
                tree.insert(path.into(), None);
                for (name, values) in entries {
                    if let Some(child) = values[choice(name)] {
                        self.lay(child, &path.join(name), chosen, tree);
                    }
                }
            }
        }
    }
}

/// Puts `tree` in the place of the folder `root`. A machine that boots again takes its time, so the files are an hour
/// old: an empty one does not count as one that PHP is writing.
pub fn restore(tree: &Tree, root: &Path) {
    let old = SystemTime::now() - Duration::from_secs(3600);
    _ = fs::remove_dir_all(root);
    for (path, content) in tree {
        let path = if path == "" {
            root.to_owned()
        } else {
            root.join(path)
        };
        match content {
            None => fs::create_dir(&path).unwrap(),
            Some(content) => {
                fs::write(&path, content).unwrap();
                fs::File::open(&path).unwrap().set_modified(old).unwrap();
            }
        }
    }
}
