//! One session: partitions in the order in which they are read, and what was told of each.

use std::collections::{BTreeMap, HashMap};

use super::{
    Answered, Ask, Content, INITIAL_EPOCH, Naming, PartitionKey, Told, TopicKey, next_epoch,
};
use crate::kafka::codec::Str;

/// What a partition takes in memory besides its topic's name: its place in both maps, half empty
/// as they may be.
const PARTITION_BYTES: usize = 2 * (size_of::<Cached>() + size_of::<(PartitionKey, u64)>());

/// One partition of a session.
#[derive(Debug)]
struct Cached {
    ask: Ask,
    told: Told,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Session {
    naming: Naming,
    /// What the next request has to say.
    epoch: i32,
    places: HashMap<PartitionKey, u64>,
    /// In the order of reading.
    partitions: BTreeMap<u64, Cached>,
    next_place: u64,
    bytes: usize,
}

impl Session {
    /// A session whose client was told `answered` of each partition, in the order of the answer.
    pub(super) fn new(naming: Naming, answered: Vec<(Ask, Told)>) -> Self {
        let mut session = Self {
            naming,
            epoch: next_epoch(INITIAL_EPOCH),
            places: HashMap::new(),
            partitions: BTreeMap::new(),
            next_place: 0,
            bytes: 0,
        };
        for (ask, told) in answered {
            session.add(Cached { ask, told });
        }
        session
    }

    pub(super) fn naming(&self) -> Naming {
        self.naming
    }

    pub(super) fn epoch(&self) -> i32 {
        self.epoch
    }

    #[cfg(test)]
    pub(super) fn set_epoch(&mut self, epoch: i32) {
        self.epoch = epoch;
    }

    /// Goes on to the next request.
    pub(super) fn advance(&mut self) {
        self.epoch = next_epoch(self.epoch);
    }

    /// How many partitions there are.
    pub(super) fn len(&self) -> usize {
        self.partitions.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes over what is asked now, and drops what is asked no more.
    pub(super) fn update(&mut self, asks: &[Ask], forgotten: &[PartitionKey]) {
        for ask in asks {
            let held = self.places.get(&ask.key).and_then(|place| self.partitions.get_mut(place));
            match held {
                Some(held) => {
                    // What the topic was called is not the client's to change.
                    let name = held.ask.name.take().or_else(|| ask.name.clone());
                    held.ask = Ask { name, ..ask.clone() };
                }
                None => self.add(Cached { ask: ask.clone(), told: Told::NOTHING }),
            }
        }
        for key in forgotten {
            if let Some(cached) =
                self.places.remove(key).and_then(|place| self.partitions.remove(&place))
            {
                self.bytes -= bytes_of(&cached.ask);
            }
        }
    }

    /// Everything that is asked, and what was told of it, in the order of reading. Topics whose
    /// name was not known are looked up with `name_of` again.
    pub(super) fn asks(&mut self, name_of: impl Fn(&TopicKey) -> Option<Str>) -> Vec<(Ask, Told)> {
        let cached = self.partitions.values_mut().map(|cached| {
            if cached.ask.name.is_none() {
                cached.ask.name = name_of(&cached.ask.key.topic);
            }
            (cached.ask.clone(), cached.told)
        });
        cached.collect()
    }

    /// Takes note of what is told now. Partitions with records go to the end, so that those that
    /// found no room in the answer come first in the next.
    pub(super) fn told<'a>(
        &mut self,
        answered: impl Iterator<Item = (&'a PartitionKey, Answered)>,
    ) {
        for (key, answered) in answered {
            let Some(place) = self.places.get(key).copied() else { continue };
            let Some(cached) = self.partitions.get_mut(&place) else { continue };
            cached.told = answered.told;
            match answered.content {
                // Once the error has gone, its end is news.
                Content::Error => cached.told.high_watermark = Told::NOTHING.high_watermark,
                Content::Records => self.move_to_end(key, place),
                Content::Nothing | Content::Divergence => {}
            }
        }
    }

    fn move_to_end(&mut self, key: &PartitionKey, place: u64) {
        let Some(cached) = self.partitions.remove(&place) else { return };
        if let Some(held) = self.places.get_mut(key) {
            *held = self.next_place;
        }
        self.partitions.insert(self.next_place, cached);
        self.next_place += 1;
    }

    fn add(&mut self, cached: Cached) {
        self.bytes += bytes_of(&cached.ask);
        self.places.insert(cached.ask.key.clone(), self.next_place);
        self.partitions.insert(self.next_place, cached);
        self.next_place += 1;
    }
}

/// About what `ask` takes in a session.
pub(super) fn bytes_of(ask: &Ask) -> usize {
    let name = match &ask.key.topic {
        TopicKey::Name(name) => name.len(),
        // The name is the image's own.
        TopicKey::Id(_) => 0,
    };
    PARTITION_BYTES + name
}
