//! The exhaustive walk: every sequence of transitions from every small start.
#![forbid(unsafe_code)]

use super::{Duty, Refusal, Serve, State, Take};
use std::collections::HashSet;

const LIMIT_MAX: i64 = 3;
const LINE_MAX: u8 = 3;
const OVERTAKES_MAX: u16 = 2;

/// The word, and what the world around it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct World {
    state: State,
    limit: i64,
    taken: i64,
    line: u8,
    token: bool,
}

impl World {
    fn check(self, came_by: &str) {
        let w = format!("after {came_by}: {self:?}");
        assert!(self.state.is_sound(), "I1/I2 {w}");
        assert_eq!(i64::from(self.state.free()), self.limit - self.taken, "I4 {w}");
        assert!(self.taken >= 0, "I4 {w}");
        assert_eq!(self.state.is_waiting(), self.line > 0, "WAITING {w}");
        assert_eq!(self.state.is_waking(), self.token, "I5 {w}");
        assert!(self.state.overtakes() <= OVERTAKES_MAX, "overtakes {w}");
    }

    fn then(self, state: State, duty: Duty) -> Self {
        let made = duty == Duty::Attend;
        assert!(!(made && self.token), "I5: a second token, {self:?}");
        Self { state, token: self.token || made, ..self }
    }

    fn take(self) -> Option<Self> {
        match self.state.take(OVERTAKES_MAX) {
            Ok((state, how)) => {
                assert!(self.taken < self.limit, "G1 {self:?}");
                assert_eq!(how == Take::Overtook, self.line > 0);
                Some(Self { state, taken: self.taken + 1, ..self })
            }
            Err(Refusal::Closed) => {
                assert!(self.state.is_closed());
                None
            }
            Err(Refusal::Saturated) => {
                let better_claim = self.line > 0 && self.state.overtakes() == OVERTAKES_MAX;
                assert!(self.taken >= self.limit || better_claim, "G4 {self:?}");
                None
            }
        }
    }

    /// The head is served by whoever asks: with the token where `token` says so.
    fn serve(self, token: bool) -> Option<Self> {
        if self.line == 0 || (token && !self.token) {
            return None;
        }
        let more = self.line > 1;
        Some(match self.state.serve(more, token) {
            (state, Serve::Served(duty)) => {
                assert!(self.taken < self.limit, "G1 {self:?}");
                let token = if token { duty == Duty::Attend } else { self.token };
                Self { state, token, taken: self.taken + 1, line: self.line - 1, ..self }
            }
            (state, Serve::StoodDown) => {
                assert!(self.taken >= self.limit, "G3 {self:?}");
                Self { state, token: self.token && !token, ..self }
            }
        })
    }

    /// The head is served in two steps, or the token's holder finds no permit.
    fn in_two_steps(self) -> Vec<(&'static str, Self)> {
        let mut out = Vec::new();
        if self.line > 0 {
            match self.state.reserve() {
                Some(state) => out.push(("reserve", Self { state, taken: self.taken + 1, ..self })),
                None => assert!(self.taken >= self.limit, "G3 {self:?}"),
            }
        }
        for token in [false, self.token] {
            if self.line > 0 && self.taken > 0 {
                let (state, duty) = self.state.served(self.line > 1, token);
                let token = if token { duty == Duty::Attend } else { self.token };
                out.push(("served", Self { state, token, line: self.line - 1, ..self }));
            }
        }
        if self.token {
            let ended = self.state.end_if_saturated().map(|state| (state, false));
            let (state, token) = ended.unwrap_or((self.state, true));
            out.push(("end_if_saturated", Self { state, token, ..self }));
        }
        out
    }

    fn steps(self) -> Vec<(&'static str, Self)> {
        let mut out = Vec::new();
        out.extend(self.take().map(|w| ("take", w)));
        if self.taken > 0 {
            let (state, duty) = self.state.give();
            out.push(("give", Self { taken: self.taken - 1, ..self.then(state, duty) }));
        }
        if self.line < LINE_MAX && !self.state.is_closed() {
            let (state, duty) = self.state.line_up();
            out.push(("line_up", Self { line: self.line + 1, ..self.then(state, duty) }));
        }
        out.extend(self.serve(true).map(|w| ("serve with the token", w)));
        out.extend(self.serve(false).map(|w| ("serve without", w)));
        out.extend(self.in_two_steps());
        if self.line == 0 && self.token {
            out.push(("stand_down", Self { state: self.state.stand_down(), token: false, ..self }));
        }
        if self.line > 0 && self.taken > 0 {
            match self.state.hand_on(self.line > 1) {
                Some(state) => out.push(("hand_on", Self { state, line: self.line - 1, ..self })),
                None => assert!(self.taken > self.limit),
            }
        }
        match self.line {
            0 => {}
            1 => out.push(("clear_line", Self { state: self.state.clear_line(), line: 0, ..self })),
            n => out.push(("remove one of many", Self { line: n - 1, ..self })),
        }
        for limit in 0..=LIMIT_MAX {
            let (state, duty) = self.state.resize(limit - self.limit);
            out.push(("resize", Self { limit, ..self.then(state, duty) }));
        }
        out.push(("close", Self { state: self.state.close(), ..self }));
        out
    }
}

#[test]
fn every_reachable_state_is_sound() {
    let mut seen = HashSet::new();
    let mut todo = Vec::new();
    let mut edges = 0_u32;
    for limit in 0..=LIMIT_MAX {
        let state = State::new(limit as usize);
        todo.push(World { state, limit, taken: 0, line: 0, token: false });
    }
    while let Some(world) = todo.pop() {
        if !seen.insert(world) {
            continue;
        }
        for (name, next) in world.steps() {
            edges += 1;
            next.check(name);
            if name == "close" {
                assert!(next.state.is_closed(), "I3");
            }
            assert!(next.state.is_closed() >= world.state.is_closed(), "I3 after {name}");
            todo.push(next);
        }
    }
    // A walk that stops early would prove nothing.
    assert_eq!((seen.len(), edges), (WALKED_STATES, WALKED_EDGES));
}

const WALKED_STATES: usize = 532;
const WALKED_EDGES: u32 = 5924;

#[test]
fn from_every_state_the_line_drains() {
    // G3 as liveness: giving and serving alone, no new call, empties the line wherever the limit allows it.
    for limit in 1..=LIMIT_MAX {
        for taken in 0..=limit {
            for line in 1..=LINE_MAX {
                let mut w = World {
                    state: State::new((limit - taken) as usize),
                    limit,
                    taken,
                    line: 0,
                    token: false,
                };
                for _ in 0..line {
                    let (state, duty) = w.state.line_up();
                    w = World { line: w.line + 1, ..w.then(state, duty) };
                }
                for _ in 0..20 {
                    w = match w.serve(true) {
                        Some(next) => next,
                        None if w.taken > 0 => {
                            let (state, duty) = w.state.give();
                            World { taken: w.taken - 1, ..w.then(state, duty) }
                        }
                        None => break,
                    };
                    w.check("drain");
                }
                assert_eq!((w.line, w.token), (0, false), "{w:?}");
            }
        }
    }
}

#[test]
fn fields_keep_to_their_bits() {
    for limit in [0, 1, 2, 1 << 20, super::MAX_LIMIT] {
        let state = State::new(limit);
        assert_eq!(state.free() as usize, limit);
        let (lowered, duty) = state.resize(-(limit as i64));
        assert_eq!((lowered.free(), duty), (0, Duty::Nothing));
        let (below, _) = lowered.close().resize(-(super::MAX_LIMIT as i64));
        assert_eq!(below.free(), -(super::MAX_LIMIT as i32));
        assert!(below.is_closed() && !below.is_waiting() && !below.is_waking());
        let (waiting, _) = below.line_up();
        assert_eq!((waiting.free(), waiting.overtakes()), (below.free(), 0));
        assert_eq!(State::from_bits(waiting.bits()), waiting);
    }
}

#[test]
fn debug_shows_fields_not_only_bits() {
    let text = format!("{:?}", State::new(3).close());
    assert!(text.contains("free: 3") && text.contains("closed: true"), "{text}");
}
