"""What `sda convert` does: a file of messages in another format."""

from pathlib import Path

from sda_platform.formats.conversion import Conversion, ConversionError, converted, target_named
from sda_platform.formats.registry import UnknownFormat
from sda_platform.landing.contents import UnreadableContent, read_chunks
from sda_platform.landing.first_lines import NO_MAPPINGS, Mappings
from sda_platform.landing.partner_files import identify

_SHOWN = 5


def convert_file(
    path: Path, target: str, *, source: str | None = None, skip_bad: bool = False, mappings: Mappings = NO_MAPPINGS
) -> Conversion:
    """Return the file at ``path``, compressed or not, in the format ``target``; ``mappings`` are of sensors' own CSV
    files.

    Raises ConversionError: the file cannot be read, or (unless ``skip_bad``) one of its records; and PartnerFileError,
    where its format is not known.
    """
    file = identify(path, segment_format=source, mappings=mappings)
    try:
        data = b"".join(read_chunks(path, file.format, _ignore, first_line=file.first_line))
        done = converted(data, file.format, target_named(target, file.format))
    except (ConversionError, UnknownFormat, UnreadableContent) as error:
        raise ConversionError(f"{path}: {error}") from None
    if done.refused and not skip_bad:
        more = f"; and {len(done.refused) - _SHOWN:,} more" if len(done.refused) > _SHOWN else ""
        reasons = "; ".join(done.refused[:_SHOWN])
        raise ConversionError(f"{path}: {reasons}{more}. --skip-bad converts the other {done.records:,} records")
    return done


def _ignore(position: int) -> None:
    """The position in a file that is small enough not to be shown."""
    del position
