"""How a test ends other than well."""


class Skip(Exception):
    """The program, or what the kernel must allow, cannot be had here; the text says why."""


class Failure(Exception):
    """The program did not do under far memory what it does natively; the text says what."""


class Interrupted(BaseException):
    """Somebody wants us to end: everything started is taken down on the way out."""
