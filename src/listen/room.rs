//! The connections of a port: a bounded number of them, and which one leaves when one more comes.
//!
//! The API server must never find the room full: of those that are not being answered, one that has asked for nothing
//! goes before one that has, one that is still asking after those, and the one that has been at it longest first.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use tokio::sync::Notify;

/// Seats for connections.
#[derive(Clone)]
pub(super) struct Room(Arc<Shared>);

struct Shared {
    limit: usize,
    seats: Mutex<Seats>,
    left: Notify,
}

#[derive(Default)]
struct Seats {
    taken: BTreeMap<u64, Taken>,
    /// Counts what happens: the order of events without a clock.
    tick: u64,
}

struct Taken {
    doing: Doing,
    since: u64,
    leave: Arc<Leave>,
}

/// Told to a connection that is to end.
#[derive(Default)]
struct Leave {
    notice: Notify,
    how: OnceLock<Farewell>,
}

impl Leave {
    fn tell(&self, how: Farewell) {
        // The first word counts.
        let _ = self.how.set(how);
        self.notice.notify_one();
    }
}

/// How a connection ends that has to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Farewell {
    /// An answer on its way is finished.
    AfterAnswer,
    /// What it is still sending is not waited for.
    AtOnce,
}

/// In the order in which they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Doing {
    /// It has asked for nothing yet: in its handshake, or silent since.
    Silent,
    /// Between two requests.
    Resting,
    /// A request's body has not come whole: it may never.
    Receiving,
    /// A request is being answered; nobody takes its seat.
    Answered,
}

impl Seats {
    fn tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }

    fn sit(&mut self) -> (u64, Arc<Leave>) {
        let (id, leave) = (self.tick(), Arc::new(Leave::default()));
        self.taken.insert(id, Taken { doing: Doing::Silent, since: id, leave: Arc::clone(&leave) });
        (id, leave)
    }

    /// Sends away whoever can be missed most; whether there was one.
    fn make_way(&mut self) -> bool {
        let idle = self.taken.iter().filter(|(_, taken)| taken.doing != Doing::Answered);
        let Some(id) = idle.min_by_key(|(_, taken)| (taken.doing, taken.since)).map(|(id, _)| *id) else {
            return false;
        };
        if let Some(taken) = self.taken.remove(&id) {
            taken.leave.tell(match taken.doing {
                Doing::Receiving => Farewell::AtOnce,
                Doing::Silent | Doing::Resting | Doing::Answered => Farewell::AfterAnswer,
            });
        }
        true
    }
}

impl Shared {
    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sets(&self, id: u64, doing: Doing) {
        let mut seats = self.seats();
        let since = seats.tick();
        if let Some(taken) = seats.taken.get_mut(&id) {
            (taken.doing, taken.since) = (doing, since);
        }
    }
}

impl Room {
    /// A room of so many seats.
    pub(super) fn new(limit: usize) -> Self {
        Self(Arc::new(Shared { limit, seats: Mutex::default(), left: Notify::new() }))
    }

    /// A seat, at once where anybody can be missed, else when an answer is done. One waits at a time.
    pub(super) async fn seat(&self) -> Seat {
        loop {
            if let Some(seat) = self.try_seat() {
                return seat;
            }
            self.0.left.notified().await;
        }
    }

    fn try_seat(&self) -> Option<Seat> {
        let mut seats = self.0.seats();
        if seats.taken.len() >= self.0.limit && !seats.make_way() {
            return None;
        }
        let (id, leave) = seats.sit();
        Some(Seat { room: Arc::clone(&self.0), id, leave })
    }

    /// Asks everybody to leave, and waits until all have.
    pub(super) async fn close(&self) {
        for taken in self.0.seats().taken.values() {
            taken.leave.tell(Farewell::AfterAnswer);
        }
        while !self.0.seats().taken.is_empty() {
            self.0.left.notified().await;
        }
    }
}

/// One connection's seat, given up with it.
pub(super) struct Seat {
    room: Arc<Shared>,
    id: u64,
    leave: Arc<Leave>,
}

impl Seat {
    /// Returns when this connection shall end, and how.
    pub(super) async fn leave(&self) -> Farewell {
        self.leave.notice.notified().await;
        self.leave.how.get().copied().unwrap_or(Farewell::AfterAnswer)
    }

    /// From the head of a request on, until it is answered.
    pub(super) fn receives(&self) -> Answers<'_> {
        self.room.sets(self.id, Doing::Receiving);
        Answers(self)
    }

    /// The request has come whole: from now on it is answered.
    pub(super) fn has_received(&self) {
        self.room.sets(self.id, Doing::Answered);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.room.seats().taken.remove(&self.id);
        self.room.left.notify_one();
    }
}

/// A request on its way.
pub(super) struct Answers<'s>(&'s Seat);

impl Drop for Answers<'_> {
    fn drop(&mut self) {
        self.0.room.sets(self.0.id, Doing::Resting);
        // Whoever waits may have this seat now.
        self.0.room.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn is_asked_to_leave(seat: &Seat) -> bool {
        seat.leave().now_or_never().is_some()
    }

    fn answers(seat: &Seat) -> Answers<'_> {
        let answers = seat.receives();
        seat.has_received();
        answers
    }

    #[tokio::test]
    async fn the_silent_go_before_those_who_asked_and_the_longest_idle_first() {
        let room = Room::new(3);
        let (asked, early, late) = (room.seat().await, room.seat().await, room.seat().await);
        drop(answers(&asked));
        let fourth = room.seat().await;
        assert!(is_asked_to_leave(&early) && !is_asked_to_leave(&late) && !is_asked_to_leave(&asked));
        drop(answers(&fourth));
        let _fifth = room.seat().await;
        assert!(is_asked_to_leave(&late));
        let sixth = room.seat().await;
        drop(sixth);
        assert!(!is_asked_to_leave(&asked), "the fifth was silent, and there was room again");
    }

    #[tokio::test]
    async fn nobody_leaves_who_is_being_answered_and_the_next_one_waits_for_the_answer() {
        let room = Room::new(1);
        let busy = room.seat().await;
        let answering = answers(&busy);
        assert!(room.seat().now_or_never().is_none());
        assert!(!is_asked_to_leave(&busy));
        drop(answering);
        assert!(room.seat().now_or_never().is_some());
        assert!(is_asked_to_leave(&busy));
    }

    #[tokio::test]
    async fn who_sends_without_end_leaves_at_once_but_after_those_who_rest() {
        let room = Room::new(3);
        let (early, late, resting) = (room.seat().await, room.seat().await, room.seat().await);
        let _sending = [early.receives(), late.receives()];
        drop(answers(&resting));
        let fourth = room.seat().await;
        let _answering = answers(&fourth);
        assert_eq!(resting.leave().now_or_never(), Some(Farewell::AfterAnswer));
        assert!(!is_asked_to_leave(&early));
        let _fifth = room.seat().await;
        assert_eq!(early.leave().now_or_never(), Some(Farewell::AtOnce));
        assert!(!is_asked_to_leave(&late));
    }

    #[tokio::test]
    async fn a_room_is_closed_when_the_last_one_has_left() {
        let room = Room::new(2);
        let (one, other) = (room.seat().await, room.seat().await);
        assert!(room.close().now_or_never().is_none());
        assert!(is_asked_to_leave(&one) && is_asked_to_leave(&other));
        drop(one);
        assert!(room.close().now_or_never().is_none());
        drop(other);
        assert!(room.close().now_or_never().is_some());
    }
}
