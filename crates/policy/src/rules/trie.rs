//! A map from numbers that shares with the one it was made from whatever is the same in both.
//!
//! Theory. A radix tree of four bits a level, the highest first: a number's entry is where it is the
//! only one that begins so. A change copies the nodes on the way to its entry and nothing else, so
//! it costs the same whether the map has ten entries or ten thousand (four levels of up to sixteen
//! children, where the numbers are hashes), and whoever holds the map of before keeps it as it was.
//! Entries are in the order of their numbers.
//!
//! Source: Bagwell, Ideal Hash Trees (2001).

use std::sync::Arc;

/// The map.
#[derive(Debug)]
pub(super) struct Trie<V> {
    root: Option<Arc<Node<V>>>,
}

#[derive(Debug)]
enum Node<V> {
    Leaf {
        key: u64,
        value: V,
    },
    /// Never empty, and never a leaf alone.
    Branch {
        /// Ascending by the four bits that lead to them.
        children: Vec<(u8, Arc<Self>)>,
    },
}

/// The four highest bits lead to the children of the root.
const TOP: u32 = u64::BITS - BITS;

const BITS: u32 = 4;

impl<V> Default for Trie<V> {
    fn default() -> Self {
        Self { root: None }
    }
}

impl<V> Clone for Trie<V> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone() }
    }
}

impl<V> Trie<V> {
    pub(super) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    pub(super) fn get(&self, key: u64) -> Option<&V> {
        let mut node = self.root.as_deref()?;
        let mut shift = TOP;
        loop {
            match node {
                Node::Leaf { key: known, value } => return (*known == key).then_some(value),
                Node::Branch { children } => {
                    let at = place(children, bits(key, shift)).ok()?;
                    node = children.get(at).map(|(_, child)| &**child)?;
                    shift = shift.saturating_sub(BITS);
                }
            }
        }
    }

    /// The same with this entry, in the place of the one of that number.
    pub(super) fn with(&self, key: u64, value: V) -> Self {
        let leaf = Arc::new(Node::Leaf { key, value });
        Self { root: Some(put(self.root.as_ref(), TOP, (key, leaf))) }
    }

    /// The same without the entry of this number.
    pub(super) fn without(&self, key: u64) -> Self {
        Self { root: self.root.as_ref().and_then(|root| take_out(root, TOP, key)) }
    }

    /// The entries with a number of at least this one, ascending.
    pub(super) fn from(&self, least: u64) -> impl Iterator<Item = (u64, &V)> {
        let mut ahead: Vec<&Node<V>> = Vec::new();
        let mut node = self.root.as_deref();
        let mut shift = TOP;
        // Down to where the number would be, keeping what is behind it.
        while let Some(Node::Branch { children }) = node {
            let bits = bits(least, shift);
            ahead.extend(children.iter().rev().filter(|(at, _)| *at > bits).map(|(_, n)| &**n));
            node = children.iter().find(|(at, _)| *at == bits).map(|(_, child)| &**child);
            shift = shift.saturating_sub(BITS);
        }
        ahead.extend(node);
        std::iter::from_fn(move || {
            loop {
                match ahead.pop()? {
                    Node::Leaf { key, value } if *key >= least => return Some((*key, value)),
                    Node::Leaf { .. } => {}
                    Node::Branch { children } => {
                        ahead.extend(children.iter().rev().map(|(_, child)| &**child));
                    }
                }
            }
        })
    }
}

/// The bits that lead on at one level.
fn bits(key: u64, shift: u32) -> u8 {
    let [low, ..] = (key >> shift).to_le_bytes();
    low & 0xf
}

fn place<V>(children: &[(u8, Arc<Node<V>>)], bits: u8) -> Result<usize, usize> {
    children.binary_search_by_key(&bits, |(at, _)| *at)
}

fn put<V>(node: Option<&Arc<Node<V>>>, shift: u32, entry: (u64, Arc<Node<V>>)) -> Arc<Node<V>> {
    let (key, leaf) = entry;
    let Some(node) = node else { return leaf };
    let mut children = match &**node {
        Node::Leaf { key: known, .. } if *known == key => return leaf,
        Node::Leaf { key: known, .. } => vec![(bits(*known, shift), node.clone())],
        Node::Branch { children } => children.clone(),
    };
    let bits = bits(key, shift);
    match place(&children, bits) {
        Ok(at) => {
            if let Some((_, child)) = children.get_mut(at) {
                *child = put(Some(child), shift.saturating_sub(BITS), (key, leaf));
            }
        }
        Err(at) => children.insert(at, (bits, leaf)),
    }
    Arc::new(Node::Branch { children })
}

fn take_out<V>(node: &Arc<Node<V>>, shift: u32, key: u64) -> Option<Arc<Node<V>>> {
    let children = match &**node {
        Node::Leaf { key: known, .. } => return (*known != key).then(|| node.clone()),
        Node::Branch { children } => children,
    };
    let bits = bits(key, shift);
    let Ok(at) = place(children, bits) else { return Some(node.clone()) };
    let mut left = children.clone();
    let (_, child) = left.remove(at);
    if let Some(child) = take_out(&child, shift.saturating_sub(BITS), key) {
        left.insert(at, (bits, child));
    }
    // With its brother the one that is left would stand higher.
    match left.as_slice() {
        [] => None,
        [(_, only)] if matches!(**only, Node::Leaf { .. }) => Some(only.clone()),
        _ => Some(Arc::new(Node::Branch { children: left })),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::{BTreeMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    impl<V> Trie<V> {
        /// How many nodes are in this one only.
        pub(in crate::rules) fn made_beside(&self, before: &Self) -> usize {
            self.nodes().difference(&before.nodes()).count()
        }

        fn nodes(&self) -> HashSet<*const Node<V>> {
            let mut nodes = HashSet::new();
            let mut ahead: Vec<&Arc<Node<V>>> = self.root.iter().collect();
            while let Some(node) = ahead.pop() {
                nodes.insert(Arc::as_ptr(node));
                if let Node::Branch { children } = &**node {
                    ahead.extend(children.iter().map(|(_, child)| child));
                }
            }
            nodes
        }
    }

    fn keys() -> impl Strategy<Value = u64> {
        prop_oneof![0..20_u64, any::<u64>(), (0..20_u64).prop_map(|n| n << 60 | 7)]
    }

    proptest! {
        #[test]
        fn it_is_a_map_in_the_order_of_its_numbers_and_the_one_before_stays_as_it_was(
            changes in prop::collection::vec((keys(), prop::option::of(0..9_u8)), 0..60),
            least in keys(),
        ) {
            let mut trie = Trie::default();
            let mut map = BTreeMap::new();
            for (key, value) in changes {
                let (before, known) = (trie.clone(), map.clone());
                match value {
                    Some(value) => {
                        trie = trie.with(key, value);
                        map.insert(key, value);
                    }
                    None => {
                        trie = trie.without(key);
                        map.remove(&key);
                    }
                }
                prop_assert_eq!(trie.get(key), map.get(&key));
                prop_assert!(before.from(0).eq(known.iter().map(|(key, value)| (*key, value))));
            }
            prop_assert!(trie.from(0).eq(map.iter().map(|(key, value)| (*key, value))));
            prop_assert!(trie.from(least).eq(map.range(least..).map(|(k, v)| (*k, v))));
            prop_assert_eq!(trie.is_empty(), map.is_empty());
            let built = map.iter().fold(Trie::default(), |trie, (key, value)| trie.with(*key, *value));
            prop_assert_eq!(built.nodes().len(), trie.nodes().len(), "no trace of what has left");
        }
    }

    #[test]
    fn a_change_makes_as_many_nodes_among_ten_thousand_as_it_is_levels_deep() {
        let hash = |n: u64| crate::fnv::hash(&[&n.to_le_bytes()]);
        let trie = (0..10_000).fold(Trie::default(), |trie, n| trie.with(hash(n), n));
        for n in 10_000..10_100 {
            let more = trie.with(hash(n), n).made_beside(&trie);
            let fewer = trie.without(hash(n - 10_000)).made_beside(&trie);
            assert!(more <= 8 && fewer <= 8, "{n}: {more}, {fewer}");
        }
    }
}
