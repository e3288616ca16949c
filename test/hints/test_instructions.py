#!/usr/bin/env python3
"""A hint on a page that is there costs at most 8 instructions, a sequential one on the page of last time at most 4.

test_instructions.py OBJDUMP OBJECT GOLDEN

Counts the instructions of each loop in OBJECT, less those of the loop without a hint. GOLDEN has the loops as GCC 12
makes them, so that a change of the header shows here what it does to them; write it again with --write.
"""
import re
import subprocess
import sys

MOST = {"resident_read": 8, "resident_write": 8, "same_page": 4}


def functions(objdump, path):
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", "-j", ".text", path], check=True, capture_output=True,
                          text=True).stdout
    for block in re.split(r"\n\n", text):
        head = re.match(r"\s*[0-9a-f]+ <(\w+)>:\n", block)
        if head:
            lines = [line.split("\t") for line in block[head.end():].splitlines() if "\t" in line]
            yield head.group(1), [(int(line[0].strip(" :"), 16), line[1].split("#")[0].split()) for line in lines]


def loop_of(instructions):
    """From the target of the jump back to that jump: what runs once a round, when all pages are there."""
    for at, (address, words) in enumerate(instructions):
        if words[0].startswith("j") and re.fullmatch(r"[0-9a-f]+", words[1]) and int(words[1], 16) < address:
            target = int(words[1], 16)
            return [w for a, w in instructions[:at + 1] if a >= target]
    return None


def compiler_of(objdump, path):
    text = subprocess.run([objdump, "-s", "-j", ".comment", path], check=True, capture_output=True, text=True).stdout
    return "".join(line[-16:].strip() for line in text.splitlines() if re.match(r" [0-9a-f]{4} ", line))


def main():
    write = "--write" in sys.argv
    objdump, path, golden_path = [a for a in sys.argv[1:] if a != "--write"]
    loops = {name: loop_of(body) for name, body in functions(objdump, path) if name in MOST or name == "no_hint"}
    wrong = [f"{name}: no loop found" for name in [*MOST, "no_hint"] if not loops.get(name)]
    if wrong:
        print("\n".join(wrong))
        return 1
    for name, most in MOST.items():
        cost = len(loops[name]) - len(loops["no_hint"])
        print(f"{name}: {cost} instructions, at most {most}")
        if cost > most or cost < 3:  # fewer: this is not the hint
            wrong.append(f"{name}: {cost} instructions")
        reads_of_map = [w for w in loops[name] if w[0].startswith("test") and "(" in w[-1]]
        if name != "same_page" and len(reads_of_map) != 1:
            wrong.append(f"{name}: {len(reads_of_map)} looks at the map, should be one")
    shown = "".join(f"{name}: {' '.join(words[0] for words in loop)}\n" for name, loop in sorted(loops.items()))
    if write:
        open(golden_path, "w", encoding="ascii").write(shown)
    elif re.search(r"GCC:.*\b12\.\d", compiler_of(objdump, path)) and shown != open(golden_path, encoding="ascii").read():
        wrong.append(f"the loops are not those of {golden_path}:\n{shown}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
