"""The process that merges files of a table: ``python -m sda_platform.lake.merge_process REQUEST``; see `lake.merging`.

It prints how many files it replaced. It imports little, since one is started for each table. It has a low priority,
and ends with the process that started it.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote

from deltalake import ColumnProperties, DeltaTable, PostCommitHookProperties, WriterProperties

from sda_platform.lake import hadoop_checksums
from sda_platform.lake.object_store import delta_options, is_object_store

Codec = Literal["ZSTD"]
Encoding = Literal["PLAIN", "DICTIONARY", "DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"]
Span = tuple[int, int]
_SEQUENCE: Final = "commit_sequence"
_LESS_URGENT: Final = 10
_POLL_S: Final = 1.0
# The platform writes Delta's checkpoints (`delta_checkpoints`), and its maintenance removes log files.
_COMMIT_ALONE: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


@dataclass(frozen=True)
class FileFormat:
    """How files are written; ``encodings`` are those of all columns."""

    codec: Codec
    codec_level: int
    row_group_rows: int
    encodings: Mapping[str, Encoding]


@dataclass(frozen=True)
class MergeRequest:
    """What is to be merged in the table at ``uri``.

    The files of each of ``spans``, first and last commit sequence, become one file, of ``target_bytes`` at most. Of a
    span that is None, all files of the table of at most ``target_bytes`` become as few as possible.
    """

    uri: str
    spans: Sequence[Span | None]
    target_bytes: int
    file_format: FileFormat

    def to_json(self) -> str:
        """As the argument of the process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "MergeRequest":
        """Return the inverse of `to_json`."""
        fields = json.loads(text)
        return cls(**{**fields, "file_format": FileFormat(**fields["file_format"])})


def main(arguments: Sequence[str]) -> None:
    """Merge what the argument requests."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    os.nice(_LESS_URGENT)
    sys.stdout.write(f"{merge(MergeRequest.from_json(arguments[0]))}\n")


def merge(request: MergeRequest) -> int:
    """Merge the files of each span, and commit them by themselves; returns how many files were replaced.

    On a local disk each new file has Hadoop's checksums, since delta-rs, unlike Spark, writes none with the pages.
    """
    table = DeltaTable(request.uri, storage_options=delta_options(request.uri))
    replaced = 0
    for span in request.spans:
        before = table.version()
        done = table.optimize.compact(
            # The bounds that the log has of a column select files; the rows of a selected file stay together.
            [(_SEQUENCE, ">=", span[0]), (_SEQUENCE, "<=", span[1])] if span else None,
            target_size=request.target_bytes,
            max_concurrent_tasks=1,
            min_commit_interval=0,
            writer_properties=writer_properties(request.file_format),
            post_commithook_properties=_COMMIT_ALONE,
        )
        replaced += int(done["numFilesRemoved"])
        if not is_object_store(request.uri):
            _keep_checksums(Path(request.uri), range(before + 1, table.version() + 1))
    return replaced


def writer_properties(file_format: FileFormat) -> WriterProperties:
    """Return the format as delta-rs takes it."""
    return WriterProperties(
        compression=file_format.codec,
        compression_level=file_format.codec_level,
        max_row_group_size=file_format.row_group_rows,
        column_properties={
            name: ColumnProperties(dictionary_enabled=True)
            if encoding == "DICTIONARY"
            else ColumnProperties(dictionary_enabled=False, encoding=encoding)
            for name, encoding in file_format.encodings.items()
        },
    )


def _keep_checksums(table: Path, versions: range) -> None:
    """Keep checksums of the data files that these versions added and that are still there."""
    for version in versions:
        for line in (table / "_delta_log" / f"{version:020d}.json").read_text().split("\n"):
            if line.startswith('{"add"'):
                file = table / unquote(json.loads(line)["add"]["path"])
                if file.exists():
                    hadoop_checksums.keep(file)


def _end_with(parent: int) -> None:
    """End this process, within a second of the end of its parent."""
    while os.getppid() == parent:
        time.sleep(_POLL_S)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
