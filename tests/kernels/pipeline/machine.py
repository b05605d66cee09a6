"""A machine that runs the actions of a pipeline one at a time, in any order that hardware allows.

It knows nothing of the order that decides pipelines (kernels/pipeline/order.py): it counts what
mbarriers and named barriers count, tags what lies in shared memory, and lets asynchronous steps end
at any later time. A wrong protocol ends in a `Wrong`, in some order of its moves.
"""

from collections import Counter
from itertools import chain

from cutedsl_gemm.kernels.pipeline import steps
from cutedsl_gemm.kernels.pipeline.actions import actions
from cutedsl_gemm.kernels.pipeline.steps import walk

WARP = 32
IDLE = None, 0, True  # of a buffer: its contents, the writes in flight, whether it has been read
FRONT = ("front",)  # the previous launch has ended


class Wrong(Exception):
    """The machine has done what it must not do."""


class Machine:
    """A state is a dictionary of everything that changes; a move makes a new one."""

    def __init__(self, pipeline, counts):
        self.pipeline, self.counts = pipeline, counts
        every = actions(pipeline, counts)
        self.warps, self.actions = [*every], [*every.values()]
        second = {agent.name for agent in pipeline.agents if agent.second_kernel}
        self.second = {i for i, warps in enumerate(self.warps) if warps.agent in second}
        elsewhere = {agent.name for agent in pipeline.agents if agent.other_gpu}
        others = self.second | {i for i, warps in enumerate(self.warps) if warps.agent in elsewhere}
        self.of_block = [
            [i for i, each in enumerate(self.warps) if each.block == block and i not in others]
            for block in range(pipeline.blocks)
        ]
        loads = [
            step
            for agent in pipeline.agents
            for step in walk(agent.program)
            if isinstance(step, steps.Load)
        ]
        self.slices = [  # a block → the slices that a k-tile of its stages consists of
            {
                (load.operand, load.slices[rank])
                for load in loads
                for rank in range(pipeline.blocks)
                if block in load.blocks[rank]
            }
            for block in range(pipeline.blocks)
        ]
        self.sums = sum(
            isinstance(each.step, steps.StoreAccumulator) for each in chain(*self.actions)
        )

    def start(self):
        """The state before anything has happened."""
        return self.settled({("at", i): 0 for i in range(len(self.warps))})

    # Moves

    def moves(self, state):
        """What may happen next: warps take a step, or an asynchronous step ends."""
        able = [("step", i) for i in range(len(self.warps)) if self.able(state, i)]
        able += [("load", each) for each in set(state.get(("loads",), ()))]
        able += [
            (kind, i)
            for kind in ("product", "store")
            for i in range(len(self.warps))
            if state.get((kind, i))
        ]
        return able if FRONT in state else [*able, FRONT]

    def able(self, state, i):
        """Whether warps may take their next step; a poll of a missing mbarrier is one."""
        action = self.next(state, i)
        if action is None or (("in", i) in state and not self.passed(state, i)):
            return False
        step = action.step
        if isinstance(step, steps.Wait):
            key = self.mbarrier(step, self.warps[i].block, action)
            ready = step.of_k_tile and state.get(("ready", i)) == action.k_tile
            return ready or key not in state or self.test(state, key, action) != step.flipped
        if isinstance(step, steps.MultiplyWait | steps.StoreWait):
            kind = "product" if isinstance(step, steps.MultiplyWait) else "store"
            return len(state.get((kind, i), ())) <= step.pending
        if isinstance(step, steps.WaitForRows):
            return self.rows(step, i, action) in state
        if isinstance(step, steps.GridWait):
            ready = FRONT in state
            return ready and (i not in self.second or self.first_kernel_ended(state))
        return True

    def move(self, state, move):
        """The state behind a move; Wrong if it must not be made."""
        state = dict(state)
        kind, *rest = move
        if kind == "front":
            state[FRONT] = True
        elif kind == "step":
            self.step(state, *rest)
        else:
            getattr(self, f"end_{kind}")(state, *rest)
        return self.settled(state)

    def settled(self, state):
        """The state when no warps can go on with what no others can notice."""
        unseen = steps.Registers | steps.GridLaunch | steps.MultiplyWait | steps.GridWait
        for i in range(len(self.warps)):
            while (action := self.next(state, i)) is not None and self.able(state, i):
                if ("in", i) not in state and not isinstance(action.step, unseen | steps.StoreWait):
                    break
                state.pop(("in", i), None)
                state["at", i] += 1
        return state

    def check_end(self, state):
        """Nothing can happen any more: all warps have ended, and everything has been used."""
        for i, warps in enumerate(self.warps):
            if self.next(state, i) is not None:
                raise Wrong(f"{warps} wait for ever: {self.next(state, i).step}")
        for key, value in state.items():
            if key[0] in ("stage", "panel", "accumulator") and not value[2]:
                raise Wrong(f"nobody reads {key}: {value}")
        if self.sums and ("reduced",) not in state:
            raise Wrong("nobody adds the partial sums")

    # What is where

    def next(self, state, i):
        at = state["at", i]
        return self.actions[i][at] if at < len(self.actions[i]) else None

    def mbarrier(self, step, block, action):
        return "mbarrier", step.barrier, block, action.phase(self.pipeline.stages)[0]

    def test(self, state, key, action):
        """Whether the parity of the action's phase is that of a completed one."""
        _, number = action.phase(self.pipeline.stages)
        return (state[key][0] - 1 - number) % 2 == 0

    def rows(self, step, i, action):
        return "rows", step.operand, self.warps[i].block, action.tile

    def passed(self, state, i):
        key, generation = state["in", i]
        return state[key][0] > generation

    def ended(self, state, block):
        return all(self.next(state, i) is None for i in self.of_block[block])

    def first_kernel_ended(self, state):
        flying = state.get(("loads",)) or any(
            state.get(("store", i)) for i in range(len(self.warps))
        )
        return not flying and all(self.ended(state, b) for b in range(self.pipeline.blocks))

    def shared_memory(self, state, block):
        if self.ended(state, block):
            raise Wrong(f"block {block} has ended")

    def global_memory(self, state):
        if FRONT not in state:
            raise Wrong("the previous launch has not ended")

    # Steps

    def step(self, state, i):
        action = self.next(state, i)
        if ("in", i) in state:
            del state["in", i]
            state["at", i] += 1
            return
        step = action.step
        if isinstance(step, steps.Sync | steps.ClusterSync):
            self.call(state, i, step)
            return
        state["at", i] += 1
        if isinstance(step, steps.SyncArrive):
            self.call(state, i, step)
        else:
            getattr(self, type(step).__name__.lower(), self.plain)(state, i, action)

    def plain(self, state, i, action):
        pass

    def call(self, state, i, step):
        """Warps are counted by a barrier of the block or the cluster, and wait for the others."""
        pipeline, block = self.pipeline, self.warps[i].block
        if isinstance(step, steps.ClusterSync):
            key, threads = (
                ("cluster",),
                WARP * sum(self.warps[j].size for each in self.of_block for j in each),
            )
        else:
            key, threads = (
                ("named", step.barrier, block),
                pipeline.named_barrier(step.barrier).threads,
            )
        generation, members = state.get(key, (0, frozenset()))
        if i in members:
            raise Wrong(f"{self.warps[i]} call {key} twice at once")
        members |= {i}
        count = WARP * sum(self.warps[each].size for each in members)
        if count > threads:
            raise Wrong(f"{count} threads call {key}, not {threads}")
        state[key] = (generation + 1, frozenset()) if count == threads else (generation, members)
        if not isinstance(step, steps.SyncArrive):
            state["in", i] = key, generation

    def initbarriers(self, state, i, action):
        for barrier in self.pipeline.mbarriers:
            if barrier.arrivals < 1:
                raise Wrong("mbarrier.init counts one arrival at least")
            for place in range(barrier.panels or self.pipeline.stages):
                key = "mbarrier", barrier.name, self.warps[i].block, place
                state[key] = 0, barrier.arrivals, 0

    def count(self, state, key, arrivals, more):
        """Arrivals on an mbarrier, and bytes that it expects (or, negative, that have come)."""
        self.shared_memory(state, key[2])
        if key not in state:
            raise Wrong(f"{key} is not initialised")
        done, pending, missing = state[key]
        missing += more
        for _ in range(arrivals or 1):
            pending -= bool(arrivals)
            if pending < 0:
                raise Wrong(f"too many arrivals on {key}")
            if not pending and not missing:
                done, pending = done + 1, self.pipeline.mbarrier(key[1]).arrivals
        state[key] = done, pending, missing

    def wait(self, state, i, action):
        if self.mbarrier(action.step, self.warps[i].block, action) not in state:
            raise Wrong("a wait for an mbarrier that is not initialised")

    def peek(self, state, i, action):
        self.wait(state, i, action)
        key = self.mbarrier(action.step, self.warps[i].block, action)
        if self.test(state, key, action):
            state["ready", i] = action.k_tile

    def arrive(self, state, i, action):
        warps = self.warps[i]
        for block in action.step.blocks[warps.block]:
            self.count(state, self.mbarrier(action.step, block, action), warps.size, 0)

    def expect(self, state, i, action):
        key = self.mbarrier(action.step, self.warps[i].block, action)
        self.count(state, key, 1, action.step.bytes)

    def sendrows(self, state, i, action):
        state[self.rows(action.step, i, action)] = True

    def load(self, state, i, action):
        self.global_memory(state)
        step, rank = action.step, self.warps[i].block
        sent = step.operand in self.pipeline.sent_operands
        if sent and self.rows(step, i, action) not in state:
            raise Wrong(f"{step} reads rows that have not come")
        for block in step.blocks[rank]:
            stage = action.k_tile % self.pipeline.stages
            key = "stage", block, stage, step.operand, step.slices[rank]
            contents, writes, read = state.get(key, IDLE)
            if writes or state.get(("readers", block, stage)):
                raise Wrong(f"{key} is overwritten while it is in use")
            if not read:
                raise Wrong(f"nobody has read {key}: {contents}")
            state[key] = contents, 1, True
            barrier = self.mbarrier(step, block, action)
            item = key, action.k_tile, barrier, step.bytes
            state["loads",] = (*state.get(("loads",), ()), item)

    def loadpanel(self, state, i, action):
        self.global_memory(state)
        step, block, agent = action.step, self.warps[i].block, self.warps[i].agent
        if state.get(("panel readers", block, agent, step.buffer)):
            raise Wrong("a panel is overwritten while TMA reads it")
        for j in self.members(i):
            key = "panel", block, agent, step.buffer, j
            _, writes, read = state.get(key, IDLE)
            if writes or not read:
                raise Wrong(f"{key} is overwritten while it is in use")
            state[key] = None, 1, True
        key = "panel", block, agent, step.buffer
        item = (
            key,
            ("operand", action.tile, step.panel, step.slot),
            self.mbarrier(step, block, action),
        )
        state["loads",] = (*state.get(("loads",), ()), (*item, step.bytes))

    def end_load(self, state, item):
        key, contents, barrier, bytes = item
        left = [*state["loads",]]
        left.remove(item)
        state["loads",] = tuple(sorted(left, key=repr))
        for part in self.parts(key):
            state[part] = contents, 0, False
        self.count(state, barrier, 0, -bytes)

    def parts(self, key):
        """The rows of each of an agent's warps in a buffer of panels; of a stage, all of it."""
        kind, block, agent, *_ = key
        if kind == "stage":
            return [key]
        return [(*key, j) for j in self.of_block[block] if self.warps[j].agent == agent]

    def members(self, i):
        """The warps of the same agent and block."""
        block, agent = self.warps[i].block, self.warps[i].agent
        return [j for j in self.of_block[block] if self.warps[j].agent == agent]

    def readpanel(self, state, i, action):
        key = "panel", self.warps[i].block, self.warps[i].agent, action.step.buffer, i
        wanted = "operand", action.tile, action.step.panel, action.step.slot
        if state.get(key, IDLE)[:2] != (wanted, 0):
            raise Wrong(f"{key} holds {state.get(key, IDLE)}, and {wanted} is read")
        state[key] = wanted, 0, True

    def multiply(self, state, i, action):
        block, stage = self.warps[i].block, action.k_tile % self.pipeline.stages
        for part in self.slices[block]:
            key = "stage", block, stage, *part
            contents, writes, _ = state.get(key, IDLE)
            if writes or contents != action.k_tile:
                raise Wrong(f"{key} holds {contents}, and {action.k_tile} is multiplied")
            state[key] = contents, 0, True
        state["readers", block, stage] = state.get(("readers", block, stage), 0) + 1
        state["product", i] = (*state.get(("product", i), ()), (action.tile, action.k_tile))

    def end_product(self, state, i):
        (tile, k_tile), *left = state["product", i]
        state["product", i] = tuple(left)
        state["readers", self.warps[i].block, k_tile % self.pipeline.stages] -= 1
        before, products, _ = state.get(("accumulator", i), (tile, 0, False))
        if before != tile and not state["accumulator", i][2]:
            raise Wrong(f"the accumulator of tile {before} has not been stored")
        state["accumulator", i] = tile, products + 1 if before == tile else 1, False

    def accumulated(self, state, i, action):
        if state.get(("product", i)):
            raise Wrong("an accumulator is read while a product is added to it")
        found = state.get(("accumulator", i), IDLE)
        if found[:2] != (action.tile, self.counts.k_tiles):
            raise Wrong(f"the accumulator is {found}")
        state["accumulator", i] = *found[:2], True

    def writepanel(self, state, i, action):
        self.accumulated(state, i, action)
        block, agent = self.warps[i].block, self.warps[i].agent
        buffer = action.step.buffer
        if state.get(("panel readers", block, agent, buffer)):
            raise Wrong("a panel is overwritten while TMA reads it")
        key = "panel", block, agent, buffer, i
        _, writes, read = state.get(key, IDLE)
        if writes or not read:
            raise Wrong("a panel is overwritten that has not been stored")
        state[key] = (action.tile, action.step.panel, action.step.slot), 0, False
        state["unfenced", i] = (*state.get(("unfenced", i), ()), buffer)

    def fence(self, state, i, action):
        state.pop(("unfenced", i), None)

    def storepanel(self, state, i, action):
        self.global_memory(state)
        block, agent, step = self.warps[i].block, self.warps[i].agent, action.step
        for j in self.members(i):
            key = "panel", block, agent, step.buffer, j
            if state.get(key, IDLE)[0] != (action.tile, step.panel, step.slot):
                raise Wrong(f"{key} holds {state.get(key, IDLE)[0]}")
            if step.asynchronous and step.buffer in state.get(("unfenced", j), ()):
                raise Wrong("TMA stores what no fence has shown to it")
            state[key] = state[key][0], 0, True
        if step.asynchronous:
            readers = "panel readers", block, agent, step.buffer
            state[readers] = state.get(readers, 0) + 1
            state["store", i] = (*state.get(("store", i), ()), step.buffer)

    def end_store(self, state, i):
        block, agent = self.warps[i].block, self.warps[i].agent
        self.shared_memory(state, block)
        buffer, *left = state["store", i]
        state["store", i] = tuple(left)
        state["panel readers", block, agent, buffer] -= 1

    def storeaccumulator(self, state, i, action):
        self.global_memory(state)
        self.accumulated(state, i, action)
        state["sums",] = state.get(("sums",), 0) + 1

    def reduce(self, state, i, action):
        if state.get(("sums",), 0) != self.sums:
            raise Wrong("partial sums are added that are not there")
        state["reduced",] = True


# Explorers


def explored(machine, limit):
    """How many states there are, over every interleaving; Wrong if one is wrong.

    None if there are more than `limit`.
    """
    start = machine.start()
    seen, ahead = {frozenset(start.items())}, [start]
    while ahead:
        state = ahead.pop()
        moves = machine.moves(state)
        if not moves:
            machine.check_end(state)
        for move in moves:
            state_behind = machine.move(state, move)
            key = frozenset(state_behind.items())
            if key not in seen:
                if len(seen) > limit:
                    return None
                seen.add(key)
                ahead.append(state_behind)
    return len(seen)


def run(machine, random, changes=3, late=None):
    """One interleaving: the move of the highest priority, and some priorities change on the way.

    That of Burckhardt et al., A Randomized Scheduler with Probabilistic Guarantees of Finding
    Bugs, ASPLOS 2010: few changes of priority find most errors. What is `late` ("load", "product",
    "store", "front") ends only when nothing else can happen.
    """
    state, priorities = machine.start(), {}
    total = sum(map(len, machine.actions))
    change_at = Counter(random.randrange(2 * total) for _ in range(changes))
    number = 0
    while moves := machine.moves(state):
        for each in moves:
            priorities.setdefault(kind_of(each), random.random() - (each[0] == late))
        best = max(moves, key=lambda each: priorities[kind_of(each)])
        if change_at[number]:
            priorities[kind_of(best)] = -number
            best = random.choice(moves)
        state = machine.move(state, best)
        number += 1
    machine.check_end(state)


def kind_of(move):
    """What has a priority: warps, and the engine that ends what they have in flight."""
    kind, *rest = move
    return (kind, rest[0][0]) if kind == "load" else move
