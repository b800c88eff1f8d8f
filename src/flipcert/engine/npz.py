"""Archives of arrays (NumPy's npz) that anybody may have written, changed or damaged."""

from __future__ import annotations

import math
import zipfile
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from flipcert.engine.memory import available_memory


def read_arrays(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    """All arrays of an archive; whatever is wrong with it is a ValueError that says so.

    Nothing is unpickled. An array is unpacked if the archive has as many bytes for it as its header asks for, and if
    there is memory for all of them.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            if len(members) < len(archive.infolist()):
                raise _Unfit("it holds two arrays of the same name")
            size, room = sum(member.file_size for member in members.values()), available_memory()
            if size > room:
                raise _Unfit(f"its arrays take {size / 2**30:,.1f} GiB, and {room / 2**30:,.1f} GiB of memory are left")
            return {name: _read(archive, member) for name, member in members.items()}
    except _Unfit as error:
        raise ValueError(str(error)) from None
    except MemoryError as error:
        raise ValueError("there is not enough memory left for its arrays") from error
    except Exception as error:
        # Parsers of archives, of headers and of what is packed fail in a dozen ways on bytes that make no sense.
        raise ValueError("it is not an npz archive, or a damaged one") from error


class _Unfit(Exception):
    """An archive that could be read, but should not."""


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as stream:
        version = npy.read_magic(stream)
        header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, by_columns, dtype = header(stream)
        size = member.file_size - stream.tell()
        if dtype.hasobject or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size:
            raise ValueError(f"{member.filename} does not hold what its header says")
        # Reading to the end also compares the checksum.
        content = bytearray(stream.read())
    array: NDArray[Any] = np.ndarray(shape, dtype, content, order="F" if by_columns else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)
