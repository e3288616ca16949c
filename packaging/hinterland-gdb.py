"""gdb and far memory: `far COMMAND` runs any gdb command and brings the far pages that it asks for.

    (gdb) source /usr/local/share/hinterland/hinterland-gdb.py
    (gdb) far print *list->next
    (gdb) far backtrace

The kernel gives debuggers no page that is far: "Cannot access memory at address". `far` has the program touch it (a
function of Hinterland's is called in the selected thread, and all threads run for that moment), and runs the command
again. For a picture of one moment use `hinterland core PID`.

    (gdb) fibers

lists the fibers of a program that uses them, in a core file, too: number, name, what they do, and the calls that they are in.
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


class Fibers(gdb.Command):
    """fibers: list all fibers with number, name, what they do, and the calls that they are in."""

    # Where Boost.Context's switch keeps them on the stack that it leaves (x86-64).
    SAVED_RBP, SAVED_RIP = 0x30, 0x38
    DOES = {"yields": "is ready", "parks": "waits", "hints": "waits for pages", "arrival": "waits for an object",
            "ends": "has ended"}
    CALLS = 8

    def __init__(self):
        super().__init__("fibers", gdb.COMMAND_STACK)

    @staticmethod
    def word(address):
        return int.from_bytes(gdb.selected_inferior().read_memory(address, 8).tobytes(), "little")

    def calls(self, registers):
        """The names of the functions that a fiber is in, innermost first, as far as they keep frame pointers."""
        names, at, frame = [], self.word(registers + self.SAVED_RIP), self.word(registers + self.SAVED_RBP)
        while len(names) < self.CALLS:
            symbol = re.match(r"(.+?) (\+ \d+ )?in section", gdb.execute(f"info symbol {at:#x}", to_string=True))
            if symbol is None:  # the first frame, or code without frame pointers
                break
            name = symbol.group(1)
            # What all fibers that are away have in common says nothing.
            if not name.startswith("hinterland::fiber::"):
                names.append(name)
            if not registers < frame < registers + (1 << 30):
                break
            try:
                frame, at = self.word(frame), self.word(frame + 8)
            except gdb.MemoryError:
                break
        return names

    def show(self, control):
        fiber = gdb.Value(control).cast(gdb.lookup_type("hl::fibers::detail::control").pointer())
        running = any(int(worker) == control for worker in self.current)
        does = "runs" if running else self.DOES.get(str(fiber["leaving"]).split("::")[-1], "?")
        registers = int(fiber["context"]["registers"])
        calls = [] if running or not registers else self.calls(registers)
        gdb.write(f"{int(fiber['id']):6} {fiber['name'].string():32}{does:18}{' < '.join(calls)}\n")

    def running(self):
        """The fibers that the workers are in."""
        found = set()
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            try:
                worker = gdb.parse_and_eval("'hinterland::fiber::(anonymous namespace)::t_worker'")
                if int(worker) != 0 and int(worker["current"]) != 0:
                    found.add(int(worker["current"]))
            except gdb.error:
                continue
        return found

    def invoke(self, argument, from_tty):
        try:
            slab = gdb.parse_and_eval("hl_fiber_slabs")
        except gdb.error as error:
            raise gdb.GdbError(f"fibers: this program has none, or libhinterland-fiber.so has no symbols ({error})") from error
        selected = gdb.selected_thread()
        self.current = self.running()
        if selected is not None:
            selected.switch()
        controls = []
        while int(slab) != 0:
            top, end, stride = int(slab["first"]) + int(slab["stride"]), int(slab["end"]), int(slab["stride"])
            while top <= end:
                control = self.word(top - 8)
                if control != 0:
                    controls.append(control)
                top += stride
            slab = slab["next"]
        for control in controls:
            self.show(control)
        if not controls:
            gdb.write("no fibers\n")


Fibers()
