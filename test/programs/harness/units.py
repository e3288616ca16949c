"""Sizes and figures as people write and read them."""

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
PAGE_BYTES = 4096


def parse_size(text):
    """Bytes of `64M`, `1.5G`, `4096`. ValueError says what is wrong."""
    units = {"K": KIB, "M": MIB, "G": GIB}
    number, unit = text, 1
    if text and text[-1].upper() in units:
        number, unit = text[:-1], units[text[-1].upper()]
    try:
        size = int(float(number) * unit)
    except ValueError:
        raise ValueError(f"'{text}' is not a size: write bytes, or a number with K, M or G") from None
    if size <= 0:
        raise ValueError(f"'{text}' is not a size above zero")
    return size


def mib(size):
    return f"{size / MIB:.0f} MiB" if size >= 10 * MIB else f"{size / MIB:.1f} MiB"
