"""gdb and far memory: `far COMMAND` runs any gdb command and brings the far pages that it asks for.

    (gdb) source /usr/local/share/hinterland/hinterland-gdb.py
    (gdb) far print *list->next
    (gdb) far backtrace

The kernel gives debuggers no page that is far: "Cannot access memory at address". `far` has the program touch it (a
function of Hinterland's is called in the selected thread, and all threads run for that moment), and runs the command
again. For a picture of one moment use `hinterland core PID`.
"""

import re

import gdb

ADDRESS = re.compile(r"(?:address|memory at) (0x[0-9a-f]+)")
PAGE = 4096
TRIES = 10000


def bring(page):
    """Has the program touch the page. False when it is not far memory's."""
    call = "((unsigned long (*)(unsigned long, unsigned long)) hl_bring_in)"
    gdb.execute("set unwindonsignal on", to_string=True)
    try:
        return int(gdb.parse_and_eval(f"{call}({page:#x}ul, {PAGE}ul)")) != 0
    except gdb.error as error:
        raise gdb.GdbError(f"far: gdb cannot call functions in this program ({error}), so it cannot bring far pages "
                           "here. Debian 12's gdb cannot in any program where the processor has AMX (tile) registers. "
                           "Use a newer gdb, or hinterland core PID") from error
    finally:
        gdb.execute("set unwindonsignal off", to_string=True)


class Far(gdb.Command):
    """far COMMAND: run a gdb command, bringing the far pages that it needs."""

    def __init__(self):
        super().__init__("far", gdb.COMMAND_DATA, gdb.COMPLETE_COMMAND)

    def invoke(self, argument, from_tty):
        brought = set()
        for _ in range(TRIES):
            try:
                text = gdb.execute(argument, from_tty, to_string=True)
            except gdb.MemoryError as error:
                text, problem = "", str(error)
            except gdb.error as error:
                text, problem = "", str(error)
                if not ADDRESS.search(problem):
                    raise
            else:
                # Some commands print the error as a part of their answer.
                problem = text if "Cannot access memory" in text or "cannot access memory" in text else ""
            found = ADDRESS.search(problem)
            page = int(found.group(1), 16) & -PAGE if found else None
            if page is None or page in brought or not bring(page):
                if text:
                    gdb.write(text)
                    return
                raise gdb.GdbError(problem)
            brought.add(page)
        raise gdb.GdbError("far: the pages are evicted as fast as they come; use hinterland core")


Far()
