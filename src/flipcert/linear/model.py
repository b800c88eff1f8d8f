"""The label-linear model: weights and training labels, and all that follows from them. A value, no estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.blocks import (
    SMALLEST_BLOCK,
    block_height,
    block_rows,
    filled,
    map_blocks,
    map_threads,
    one_blas_thread,
    watched_blocks,
)
from flipcert.engine.buffers import Buffers
from flipcert.engine.magnitude import refuse_underflow, told_with
from flipcert.engine.rounding import SAFETY, row_norms
from flipcert.engine.sparse import dense, reason_for
from flipcert.engine.tiles import tiles
from flipcert.engine.watch import Watcher
from flipcert.flips._jit.ladder import UNDECIDED
from flipcert.flips._jit.reach import BEST
from flipcert.flips.against import attack_against, costs_against, rows_against
from flipcert.flips.new_rows import NewRows
from flipcert.flips.source_rows import SourceRows
from flipcert.flips.streamed_rows import StreamedRows
from flipcert.flips.streamed_tiles import Tiles, TileSource
from flipcert.flips.whole_rows import Rows, WholeRows
from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS, SOURCES, Threat
from flipcert.linear.class_sums import ClassSums, in_their_places
from flipcert.linear.insertions import Insertions
from flipcert.linear.weights import Weights
from flipcert.results.certificates import Certificates
from flipcert.results.flip_costs import FlipCosts
from flipcert.results.witness import Witness

# Seconds to find the flips of an attack whose cost is known already.
_REPLAY_TIME = 60.0


class Block(NamedTuple):
    """A block of rows: their features, the weights of all training samples, what no label has a part in, the inputs."""

    features: NDArray[Any]
    weights: NDArray[Any]
    offset: NDArray[np.float64]
    inputs: NDArray[Any]


@dataclass(frozen=True)
class LabelLinearModel:
    r"""A classifier with scores :math:`s_c(t) = b_c(t) + \sum_i w_i(t) [y_i = c]`, ties to the smaller class.

    Inputs are arrays that were checked; classes are indices.

    Attributes
    ----------
    labels : Labels
        Training labels.
    weights : Weights
        How inputs become weights.
    n_jobs : int or None
        Threads; all cores by default.
    insertions : Insertions or None
        What new training rows can weigh; None where weights depend on which rows there are.
    class_sums : ClassSums or None
        What predicts most rows without their weights, where these are a product.
    """

    labels: Labels
    weights: Weights
    n_jobs: int | None = None
    insertions: Insertions | None = None
    class_sums: ClassSums | None = None

    def predictions(self, X: NDArray[Any]) -> NDArray[np.int64]:
        """The class of each row, as ``scores`` has it; weights are formed only of near ties."""
        if self.class_sums is None:
            return self.scores(X)[1]
        sums, height = self.class_sums.ready(), self._height(X)

        def block(rows: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
            features = self.weights.features(rows)[:n_rows]
            refuse_underflow(self.weights.lost(features, lambda: row_norms(features)))
            return sums.predict(features)

        with told_with(partial(reason_for, self.weights.why, X)):
            parts = map_blocks(block, X, X.dtype.itemsize * X.shape[1], self.n_jobs, height=height)
        winners = np.concatenate(parts)
        near_ties = np.flatnonzero(winners == UNDECIDED)
        if near_ties.size:
            held, where = in_their_places(near_ties, height)
            winners[near_ties] = self.scores(X[held], height)[1][where]
        return winners

    def scores(self, X: NDArray[Any], height: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Scores (rounded, in the unit of users) and predictions (exact); blocks of a larger job have its height."""

        def block(_: Any, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
            scores, prediction = rows.scores()
            return self.weights.in_unit_of_users(scores, rows.weights), prediction

        parts = self.map_rows(X, block, height=height)
        return np.concatenate([scores for scores, _ in parts]), np.concatenate([winners for _, winners in parts])

    def radii(self, X: NDArray[Any], watcher: Watcher | None = None, threat: Threat = FLIPS) -> list[Certificates]:
        """Exact radii of all rows against a threat, in class indices, block by block."""
        return self.map_rows(X, partial(self.radii_of, threat), watcher, threat)

    def radii_of(self, threat: Threat, features: NDArray[Any], rows: Rows) -> Certificates:
        """Exact radii of one block of rows, which are those against the threat."""
        radii = rows.radii()
        tolerance = SAFETY * self.weights.rounding(features, rows.weights)
        return Certificates(
            prediction=radii.prediction,
            radius=radii.cost - 1,
            radius_upper=radii.known - 1,
            blackbox_radius=None,
            runner_up=radii.runner_up,
            target=np.ma.masked_less(radii.target, 0),
            rounding_sensitive=(tolerance > 0) & (radii.margin <= tolerance),
            n_labels=self.labels.n_labels,
            n_attackable=self.labels.n_movable,
            threat=threat.name,
            n_sources=self.labels.n_sources,
        )

    def costs(
        self,
        X: NDArray[Any],
        kind: int = BEST,
        time_limit: float | None = None,
        refine: Callable[[Block, FlipCosts], FlipCosts] | None = None,
        threat: Threat = FLIPS,
    ) -> FlipCosts:
        """Costs of all classes against a threat, as if the label space were fixed, and the attacks behind them.

        With a time limit, bounds that differ are closed by integer programs. ``refine(block, costs)`` may change what
        is known of a block.
        """
        labels = self.labels

        def of_block(block: Block) -> FlipCosts:
            tolerance = SAFETY * self.weights.rounding(block.features, block.weights)
            new_rows = self._new_rows(threat, block.inputs)
            costs = costs_against(threat, block.weights, labels, block.offset, kind, tolerance, time_limit, new_rows)
            return costs if refine is None else refine(block, costs)

        # Weights of the whole block that a row was in: the same to the bit.
        height = block_height(X, self.weights.bytes_per_row)
        formed = lru_cache(maxsize=1)(lambda start: self._formed_block(X[start : start + height], height))

        def attack(row: int, target: int) -> Witness:
            block, place = formed(row - row % height), row % height
            cost = int(found.upper[row, target])
            new_rows = self._new_rows(threat, block.inputs)
            return attack_against(
                threat, block.weights[place], labels, block.offset[place], target, cost, _REPLAY_TIME,
                None if new_rows is None else new_rows.of(slice(place, place + 1)),
            )  # fmt: skip

        found = FlipCosts.joined(self.map_weights(X, of_block), attack)
        return found

    def witnesses(
        self, X: NDArray[Any], watcher: Watcher | None = None, threat: Threat = FLIPS
    ) -> list[Witness | None]:
        """Smallest attacks that change each prediction; None where nothing does."""
        parts = self.map_rows(X, lambda _, rows: rows.witnesses(), watcher, threat)
        return [witness for part in parts for witness in part]

    def powers(self, X: NDArray[Any], watcher: Watcher | None = None) -> NDArray[np.int64]:
        """Number of rows whose prediction each source could change alone, exactly."""

        def of_block(_: Any, rows: Rows) -> NDArray[np.int64]:
            assert isinstance(rows, SourceRows)
            return np.count_nonzero(rows.powers(), axis=0)

        return np.sum(self.map_rows(X, of_block, watcher, SOURCES), axis=0, dtype=np.int64)

    def replay(self, X: NDArray[Any], flips: Witness) -> NDArray[np.float64]:
        """Scores of one point before the first flip and after each, of shape (n_flips + 1, n_classes)."""

        def scores_and_weights(_: Any, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            scores, _ = rows.scores()
            moved = rows.at(flips.indices).astype(np.float64)
            shown = self.weights.in_unit_of_users
            return shown(scores, rows.weights)[0], shown(moved, rows.weights)[0]

        ((scores, moved),) = self.map_rows(X, scores_and_weights)
        path = np.zeros((len(flips) + 1, self.labels.n_classes))
        path[0] = scores
        steps = np.arange(1, len(flips) + 1)
        path[steps, flips.labels] += moved
        path[steps, self.labels.codes[flips.indices]] -= moved
        return path.cumsum(axis=0)

    def map_rows(
        self,
        X: NDArray[Any],
        function: Callable[[NDArray[Any], Rows], Any],
        watcher: Watcher | None = None,
        threat: Threat = FLIPS,
        height: int | None = None,
    ) -> list[Any]:
        """Call ``function`` on each block of rows; where their weights are too many to be held, they come in tiles.

        Whoever asks what happens if training rows come and go holds at least one row of weights.
        """
        labels, weights = self.labels, self.weights
        if not self._streams or threat.changes_rows:
            return self.map_weights(
                X, lambda block: function(block.features, self.held_rows(block, threat)), watcher, height
            )
        height = height or self._height(X)
        source = TileSource(weights.tile_writer, labels.coded, np.dtype(weights.dtype), self.n_jobs)

        def block(rows: NDArray[Any]) -> Any:
            n_rows = rows.shape[0]
            with one_blas_thread:
                features = weights.features(filled(rows, height))
                offset = weights.offset(features, labels.n_classes)[:n_rows]
            streamed = StreamedRows(Tiles(source, features, n_rows), labels, offset)
            refuse_underflow(weights.lost(features[:n_rows], streamed.totals))
            return function(features[:n_rows], rows_against(threat, streamed, labels, offset))

        with told_with(partial(reason_for, weights.why, X)):
            return watched_blocks(block, X, height, watcher or Watcher(), spreads=True)

    def map_weights(
        self,
        X: NDArray[Any],
        function: Callable[[Block], Any],
        watcher: Watcher | None = None,
        height: int | None = None,
    ) -> list[Any]:
        """Call ``function`` on each block of rows, all of whose weights are held; they are lent."""
        buffers = Buffers()
        # Tiles of a product are the same numbers wherever they are formed: a block that is alone keeps all cores busy.
        product, alone = self.weights.product, X.shape[0] <= (height or self._height(X))

        def block(rows: NDArray[Any], n_rows: int) -> Any:
            with buffers.borrow((rows.shape[0], self.labels.n_labels), self.weights.dtype) as weights:
                features = self.weights.features(rows)
                if product is not None and alone:
                    write = product.tile_writer(features)
                    map_threads(lambda tile: write(tile, weights[:, tile]), tiles(weights.shape[1]), self.n_jobs)
                else:
                    self.weights.form(features, weights)
                lost = self.weights.lost(features[:n_rows], lambda: np.abs(weights[:n_rows]).max(axis=1))
                refuse_underflow(lost)
                offset = self.weights.offset(features, self.labels.n_classes)
                return function(Block(features[:n_rows], weights[:n_rows], offset[:n_rows], rows[:n_rows]))

        try:
            with told_with(partial(reason_for, self.weights.why, X)):
                return map_blocks(block, X, self.weights.bytes_per_row, self.n_jobs, watcher, height=height)
        finally:
            buffers.close()

    def held_rows(self, block: Block, threat: Threat = FLIPS) -> Rows:
        """A block of rows as what can be asked about it, in the label space that the labels have."""
        rows = WholeRows(block.weights, self.labels, block.offset)
        return rows_against(threat, rows, self.labels, block.offset, self._new_rows(threat, block.inputs))

    def _new_rows(self, threat: Threat, inputs: NDArray[Any]) -> NewRows | None:
        """What new training rows weigh for these rows, where training rows come and go."""
        if not threat.changes_rows:
            return None
        assert self.insertions is not None, "refused before"
        return self.insertions.new_rows(threat, inputs)

    def formed(self, X: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        """The very weights that a job on all of X uses for some of its rows, of shape (n_rows, n_samples).

        A product may round differently in another block, so whole blocks of the job are formed.
        """
        weights = np.empty((rows.size, self.labels.n_labels), self.weights.dtype)
        for asked, places, block in self._whole_blocks(X, rows):
            for samples, values in self._pieces(block):
                weights[asked, samples] = values[places]
        return weights

    def formed_offset(self, X: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The same of what no label has a part in, of shape (n_rows, n_classes)."""
        offset = np.empty((rows.size, self.labels.n_classes))
        for asked, places, block in self._whole_blocks(X, rows):
            offset[asked] = self.weights.offset(self.weights.features(block), self.labels.n_classes)[places]
        return offset

    def block_starts(self, X: NDArray[Any], rows: NDArray[np.int64]) -> list[int]:
        """Where, among some rows of X in ascending order, those of another block begin; and where the last ends."""
        block = rows // self._height(X)
        return [*np.flatnonzero(np.diff(block, prepend=-1)).tolist(), rows.size]

    def _whole_blocks(
        self, X: NDArray[Any], rows: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]]:
        """Blocks of a job on X that hold some rows: which of these rows, their places in the block, and its inputs."""
        height = self._height(X)
        for start in np.unique(rows // height * height).tolist():
            asked = np.flatnonzero((rows >= start) & (rows < start + height))
            with one_blas_thread:
                block = filled(np.ascontiguousarray(dense(X[start : start + height]), self.weights.dtype), height)
                yield asked, rows[asked] - start, block

    def _pieces(self, block: NDArray[Any]) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Weights of all rows of a block: some samples at a time, or all of them."""
        n_samples, dtype = self.labels.n_labels, self.weights.dtype
        block = self.weights.features(block)
        if not self.weights.comes_in_tiles:
            self.weights.form(block, whole := np.empty((block.shape[0], n_samples), dtype))
            yield slice(None), whole
            return
        write = self.weights.tile_writer(block)
        for samples in tiles(n_samples):
            write(samples, tile := np.empty((block.shape[0], samples.stop - samples.start), dtype))
            yield samples, tile

    def _formed_block(self, X: NDArray[Any], height: int) -> Block:
        """One block of rows, filled up as in a job."""
        with one_blas_thread:
            inputs = filled(X, height)
            block = self.weights.features(inputs)
            self.weights.form(block, weights := np.empty((height, self.labels.n_labels), self.weights.dtype))
            return Block(block, weights, self.weights.offset(block, self.labels.n_classes), inputs)

    @property
    def _streams(self) -> bool:
        """Whether whole rows are too long for blocks of a fair size, and need not be held."""
        too_long = block_rows(1, self.weights.bytes_per_row) < SMALLEST_BLOCK
        return self.weights.comes_in_tiles and too_long and len(tiles(self.labels.n_labels)) > 1

    def _height(self, X: NDArray[Any]) -> int:
        """Rows of a block, which depends on the job only."""
        tile = tiles(self.labels.n_labels)[0].stop * np.dtype(self.weights.dtype).itemsize
        return block_height(X, tile if self._streams else self.weights.bytes_per_row)
