"""Replaying: a schedule that was worked out on one store, run against another, with the promises held against that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

from batchstate.storage import Storage
from batchstate.testing.explorer.actors import Actor, Scope
from batchstate.testing.explorer.graph import prepare
from batchstate.testing.explorer.promises import PROMISES, Promises
from batchstate.testing.explorer.running import LOST, Ending, Running, judge, perform
from batchstate.testing.explorer.schedules import Act, Schedule, Turn, Violation
from batchstate.testing.explorer.stores import READS
from batchstate.testing.explorer.telling import Told, tell
from batchstate.testing.explorer.watching import Due
from batchstate.testing.explorer.world import World, look
from batchstate.testing.forwarding import Call

if TYPE_CHECKING:
    from batchstate.testing.explorer.actors import Message
    from batchstate.testing.explorer.running import Answer

__all__ = ["replay"]

ROUNDS = 50
"""How often an actor is handed its messages again, after the schedule, before that is held to be for ever."""


def replay(schedule: Schedule, scope: Scope, store: Storage, promises: Promises = PROMISES) -> None:
    """Run a scope on a storage, its actors taking turns as the schedule says, and hold the promises against it.

    Where this storage makes an actor need more calls than the one on which the schedule was worked
    out, or fewer, its turns are used as far as they go; in the end every actor comes to its end.

    Args:
        schedule: who acts when; from `interleavings`, or from a `Violation`.
        scope: the same scope.
        store: an empty storage of the queue that the scope's batches belong to.
        promises: what must hold after every write, and at the end.

    Raises:
        Violation: a promise is broken; it tells the steps that led there.
    """
    _Replay(schedule, scope, store, promises).run()


@define(eq=False)
class _Player:
    """One actor on its way through its messages."""

    actor: Actor
    store: Storage
    message: int = 0
    life: int = 0
    asked: Call | Ending | None = None
    begun: bool = False
    running: Running | None = None

    def deliver(self) -> None:
        """Hand it the message it has come to, if there is one more; it stands before its first call then."""
        self.begun = False
        self.asked = self.running = None
        if self.message < len(self.actor.messages):
            marks = f"{self.actor.name}-{self.message}-{self.life}"
            self.running = Running(self.store, self.actor, self.current, marks)
            self.asked = self.running.start()

    @property
    def current(self) -> Message:
        return self.actor.messages[self.message]

    def answer(self, answer: Answer) -> None:
        if self.running is not None:
            self.asked = self.running.answer(answer)


@define(eq=False)
class _Replay:
    schedule: Schedule
    scope: Scope
    store: Storage
    promises: Promises
    players: dict[str, _Player] = field(factory=dict)
    acknowledged: set[str] = field(factory=set)
    told: list[Told] = field(factory=list)
    due: Due | None = None
    start: str = ""
    world: World = field(init=False)
    """The store as it was after the last write: nobody else writes to it."""

    def run(self) -> None:
        prepare(self.store, self.scope)
        self.acknowledged = {batch.id for batch in self.scope.existing}
        self._look()
        self.start = str(self.world)
        self._hold(self.promises.broken(self.world))
        self.players = {actor.name: _Player(actor, self.store) for actor in self.scope.actors}
        for player in self.players.values():
            player.deliver()
        for turn in self.schedule.turns:
            self._take(turn)
        self._finish()
        self._hold(self.promises.broken_at_rest(self.world))

    def _finish(self) -> None:
        """Let every actor come to its end, in turn."""
        for _ in range(ROUNDS):
            for player in self._unfinished():
                if self._may_begin(player):
                    self._take(Turn(player.actor.name, Act.ACKNOWLEDGE))
        for player in self._unfinished():
            self._fail(f"{player.actor.name} does not come to an end: {player.current.text!r} comes again for ever")

    def _unfinished(self) -> list[_Player]:
        return [player for player in self.players.values() if player.asked is not None]

    def _may_begin(self, player: _Player) -> bool:
        ended = all(self.players[name].asked is None for name in player.actor.after)
        return player.begun or (ended and not any(self.players[name].begun for name in player.actor.idle))

    def _take(self, turn: Turn) -> None:
        player = self.players[turn.actor]
        if turn.act is Act.ACKNOWLEDGE:
            while isinstance(player.asked, Call):
                self._call(player, player.asked, Act.CALL)
            self._acknowledge(player)
        elif turn.act is Act.CRASH:
            if player.asked is not None:
                self.told.append(Told(turn.actor, turn.act, player.current))
                self._give_back(player)
        elif isinstance(player.asked, Call):
            self._call(player, player.asked, turn.act)

    def _call(self, player: _Player, call: Call, act: Act) -> None:
        message, begins = player.current, not player.begun
        before = self.world
        if begins and message.watch is not None:
            self.due = message.watch.begin(before)
        answer = perform(self.store, call)
        player.begun = True
        if call.method not in READS:
            self._look()
        changed = str(before) != str(self.world)
        self.told.append(
            Told(
                player.actor.name,
                act,
                message,
                begins=begins,
                call=call,
                answer=answer,
                changed=changed,
                world=str(self.world),
            )
        )
        if call.method not in READS:
            self._owe(player, changed=changed)
            self._hold(self.promises.broken(self.world) or self.promises.broken_between(before, self.world))
        if act is Act.CALL:
            player.answer(answer)
        elif act is Act.LOSE:
            player.answer(LOST)
        if isinstance(player.asked, Ending) and message.watch is not None and self.due is not None:
            self._hold(message.watch.missing(self.due, player.asked.value))
            self.due = None

    def _owe(self, player: _Player, *, changed: bool) -> None:
        """Let the listing under way owe what is left of it after a step of another."""
        watch = next(
            (
                each.current.watch
                for each in self.players.values()
                if each.asked is not None and each.current.watch is not None
            ),
            None,
        )
        if watch is not None and self.due is not None and changed:
            number = list(self.players.values()).index(player)
            self.due = watch.step(self.due, self.world, (number, player.message))

    def _acknowledge(self, player: _Player) -> None:
        ending = player.asked
        if not isinstance(ending, Ending):
            return
        verdict, fault = judge(player.actor, player.current, ending)
        again = verdict == "again"
        self.told.append(Told(player.actor.name, Act.ACKNOWLEDGE, player.current, ending=ending, again=again))
        self._hold(fault)
        if again:
            self._give_back(player)
            return
        if verdict == "done" and player.current.creates:
            self.acknowledged.add(player.current.creates)
            self._look()
            self._hold(self.promises.broken(self.world))
        player.message, player.life = player.message + 1, 0
        player.deliver()

    def _give_back(self, player: _Player) -> None:
        if player.current.watch is not None:
            self.due = None
        player.life += 1
        player.deliver()

    def _look(self) -> None:
        self.world = look(self.store, self.scope.lifecycle, self.scope.batch_ids, frozenset(self.acknowledged))

    def _hold(self, broken: str | None) -> None:
        if broken is not None:
            self._fail(broken)

    def _fail(self, problem: str) -> None:
        raise Violation(problem, self.schedule, tell(self.start, self.told))
