"""The linker: an object's sections in memory, its references filled in, its code executable.

LLVM would do the same, but importing its library takes longer than everything else that a process
does which finds its programs on disk.  It takes what LLVM emits for the host on Linux: relocatable
ELF for x86-64 and aarch64, position independent, small code model.

    code | entries | read-only data        | data
    executable     | readable              | writable       each from a page of its own

An entry is 16 bytes for a symbol: a jump to it, then its address.  Calls of what lies far away go
to the jump; references through a global offset table (GOT) read the address.  Memory is written
first and executable afterwards, never both.  References: ELF-64 Object File Format 1.5; System V
ABI, AMD64 supplement 1.0, 4.4; ELF for the Arm 64-bit Architecture, 2024Q3, 5.7.  Relies on libc
and libgcc alone; `target.py` relies on it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys

from ...errors import CheckError

X86, ARM = 62, 183                               # e_machine
MACHINES = {"x86_64": X86, "aarch64": ARM}
HEAD = b"\x7fELF\x02\x01"                        # 64 bits, little endian
FILE = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
REFERENCE = struct.Struct("<QIIq")               # offset, type, symbol, addend
RELOCATABLE, REFERENCES, SYMBOLS, NOBITS = 1, 4, 2, 8
WRITABLE, IN_MEMORY, EXECUTABLE = 1, 2, 4        # sh_flags
ABSOLUTE, RESERVED = 0xFFF1, 0xFF00              # section indices that are none
LOCAL = 0                                        # st_info >> 4
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
READ, WRITE, EXECUTE, PRIVATE_ANONYMOUS = 1, 2, 4, 0x22          # of mmap and mprotect, Linux
FAILED = ctypes.c_void_p(-1).value

ENTRY = 16                                       # bytes
JUMPS = {                                        # the first 8 bytes of an entry
    X86: b"\xff\x25\x02\x00\x00\x00\x0f\x0b",    # jmp *2(%rip); ud2
    ARM: struct.pack("<II", 0x58000050, 0xD61F0200)}             # ldr x16, .+8; br x16

WORD, SIGNED, PAGES, PART, BRANCH = "word", "signed", "pages", "part", "branch"
# machine → type → (how the value is written, its bytes or scale, by entry?); SIGNED, PAGES and
# BRANCH are relative to their place.
# by entry: "" never, "far" where nobody in the object defines the symbol, "got" its address there.
KINDS = {
    X86: {
        1:   (WORD,   8, ""),             # 64
        2:   (SIGNED, 4, ""),             # PC32
        4:   (SIGNED, 4, "far"),          # PLT32
        9:   (SIGNED, 4, "got"),          # GOTPCREL
        24:  (SIGNED, 8, ""),             # PC64
        41:  (SIGNED, 4, "got"),          # GOTPCRELX
        42:  (SIGNED, 4, "got"),          # REX_GOTPCRELX
    },
    ARM: {
        257: (WORD,   8, ""),             # ABS64
        260: (SIGNED, 8, ""),             # PREL64
        261: (SIGNED, 4, ""),             # PREL32
        275: (PAGES,  0, ""),             # ADR_PREL_PG_HI21
        277: (PART,   0, ""),             # ADD_ABS_LO12_NC
        278: (PART,   0, ""),             # LDST8_ABS_LO12_NC
        282: (BRANCH, 0, "far"),          # JUMP26
        283: (BRANCH, 0, "far"),          # CALL26
        284: (PART,   1, ""),             # LDST16_ABS_LO12_NC
        285: (PART,   2, ""),             # LDST32_ABS_LO12_NC
        286: (PART,   3, ""),             # LDST64_ABS_LO12_NC
        299: (PART,   4, ""),             # LDST128_ABS_LO12_NC
        311: (PAGES,  0, "got"),          # ADR_GOT_PAGE
        312: (PART,   3, "got"),          # LD64_GOT_LO12_NC
    },
}


class Section:
    """A section's header; for references `info` is the section they lie in."""
    __slots__ = ("name", "type", "flags", "address", "offset", "size", "link", "info", "align",
                 "entry")

    def __init__(self, *header):
        for name, value in zip(self.__slots__, header):
            setattr(self, name, value)


class Symbol:
    """A symbol; `section` is 0 where the object does not define it."""
    __slots__ = ("name", "local", "section", "value")

    def __init__(self, name, local, section, value):
        self.name, self.local, self.section, self.value = name, local, section, value


class Object:
    """An object file, taken apart.  references: (section they lie in, bytes of the table)."""

    def __init__(self, data, machine, sections, symbols, references):
        self.data, self.machine, self.sections = data, machine, sections
        self.symbols, self.references = symbols, references


class Layout:
    """Where things lie from the base on, in bytes.

    sections: section → offset.  entries: symbol → offset.  readable, writable: where those pages
    begin.  frames: offsets of the tables for unwinding.  align: that of the base.
    """

    def __init__(self, sections, entries, readable, writable, size, frames, align):
        self.sections, self.entries = sections, entries
        self.readable, self.writable, self.size = readable, writable, size
        self.frames, self.align = frames, align


# ---------------------------------------------------------------------------- reading


def loads(data):
    """Can this process load the object here?  What it says no to, LLVM's own loader takes."""
    machine = MACHINES.get(os.uname().machine) if sys.platform == "linux" else None
    return (machine is not None and data[:len(HEAD)] == HEAD and len(data) >= FILE.size
            and FILE.unpack_from(data)[1:3] == (RELOCATABLE, machine) and system() is not None)


def read(data):
    """The Object that these bytes are.  Raises CheckError where they are none."""
    try:
        _, _, machine, _, _, _, at, _, _, _, _, size, count, _ = FILE.unpack_from(data)
        sections = [Section(*SECTION.unpack_from(data, at + k * size)) for k in range(count)]
        tables = [s for s in sections if s.type == SYMBOLS]
        symbols = [found for table in tables for found in symbols_of(data, sections, table)]
        references = [(s.info, data[s.offset:s.offset + s.size]) for s in sections
                      if s.type == REFERENCES and sections[s.info].flags & IN_MEMORY]
    except (struct.error, IndexError, ValueError) as error:
        raise CheckError(f"an object cannot be read: {error}", where=None) from None
    return Object(data, machine, sections, symbols, references)


def symbols_of(data, sections, table):
    """The Symbols of a table."""
    names = sections[table.link].offset
    for name, info, _, section, value, _ in SYMBOL.iter_unpack(
            data[table.offset:table.offset + table.size]):
        start = names + name
        text = data[start:data.index(b"\0", start)].decode()
        yield Symbol(text, info >> 4 == LOCAL, section, value)


# ---------------------------------------------------------------------------- laying out


def laid_out(found):
    """The Layout of an Object."""
    places, frames, at, align = {}, [], 0, PAGE
    groups = [[], [], []]                        # executable, readable, writable
    for k, section in enumerate(found.sections):
        if section.flags & IN_MEMORY:
            group = 2 if section.flags & WRITABLE else 0 if section.flags & EXECUTABLE else 1
            groups[group].append((k, section))
    starts = []
    for group in groups:
        at = rounded(at, PAGE)
        starts.append(at)
        for k, section in group:
            at = places[k] = rounded(at, max(section.align, 1))
            align = max(align, section.align)
            at += section.size
            if is_frames(found, section):
                frames.append(places[k])
                at += 8                          # zeros end the table
        if not starts[1:]:
            at, entries = with_entries(found, rounded(at, ENTRY))
    return Layout(places, entries, starts[1], starts[2], at, frames, align)


def with_entries(found, at):
    """(the end, symbol → offset) of the entries that an Object needs, laid from an offset on."""
    kinds, entries = KINDS[found.machine], {}
    for _, table in found.references:
        for _, type, symbol, _ in REFERENCE.iter_unpack(table):
            entry = kinds.get(type, "   ")[2]
            if entry == "got" or entry == "far" and not found.symbols[symbol].section:
                entries.setdefault(symbol, at + ENTRY * len(entries))
    return at + ENTRY * len(entries), entries


def is_frames(found, section):
    """Does the section hold the table by which a stack is unwound?"""
    names = found.sections[FILE.unpack_from(found.data)[-1]].offset + section.name
    return found.data.startswith(b".eh_frame\0", names)


def rounded(n, to):
    """The least multiple of `to` that is not below n.

    >>> rounded(17, 16), rounded(32, 16)
    (32, 32)
    """
    return -(-n // to) * to


# ---------------------------------------------------------------------------- filling in


def linked(found, layout, base, resolve):
    """(the memory's content, symbol's number → its address) of an Object at a base.

    resolve: name → address of what the object does not define.
    """
    memory = bytearray(layout.size)
    for k, at in layout.sections.items():
        section = found.sections[k]
        if section.type != NOBITS:
            memory[at:at + section.size] = found.data[section.offset:section.offset + section.size]
    addresses = [address(symbol, layout, base, resolve) for symbol in found.symbols]
    for symbol, at in layout.entries.items():
        memory[at:at + ENTRY] = JUMPS[found.machine] + struct.pack("<Q", addresses[symbol])
    for section, table in found.references:
        fill(memory, table, layout.sections[section], found, layout, base, addresses)
    return memory, addresses


def address(symbol, layout, base, resolve):
    """The address of a symbol, 0 for one that lies nowhere."""
    if symbol.section in layout.sections:
        return base + layout.sections[symbol.section] + symbol.value
    if symbol.section == ABSOLUTE:
        return symbol.value
    if symbol.section or not symbol.name:        # a file's name, a section that is not loaded
        return 0
    return resolve(symbol.name)


def fill(memory, table, start, found, layout, base, addresses):
    """Fills in the references of one section, which lies from `start` on."""
    kinds, entries = KINDS[found.machine], layout.entries
    for offset, type, symbol, addend in REFERENCE.iter_unpack(table):
        if type not in kinds:
            raise CheckError(f"an object refers to {found.symbols[symbol].name!r} in a way that "
                             f"the linker does not know: type {type}", where=None)
        how, size, by_entry = kinds[type]
        at = start + offset
        value = addresses[symbol] + addend
        if by_entry == "got":
            value = base + entries[symbol] + 8 + addend
        elif by_entry and symbol in entries:
            value = base + entries[symbol] + addend
        try:
            if how is SIGNED:
                value -= base + at
                memory[at:at + size] = value.to_bytes(size, "little", signed=True)
            elif how is WORD:
                memory[at:at + size] = (value % 2**64).to_bytes(size, "little")
            else:
                instruct(memory, at, how, size, value, base + at)
        except OverflowError:
            raise CheckError(f"{found.symbols[symbol].name!r} is too far from the code that "
                             "refers to it", where=None) from None


def instruct(memory, at, how, scale, value, place):
    """Puts a value into the immediate of an instruction of aarch64.

    PAGES: adrp, the distance in pages of 4 KiB.  PART: add, ldr and str, the place within the page
    in units of 2**scale bytes.  BRANCH: b and bl, the distance in instructions.
    """
    [word] = struct.unpack_from("<I", memory, at)
    if how is PAGES:
        pages = within((value >> 12) - (place >> 12), 21)
        word = word & 0x9F00001F | (pages & 3) << 29 | pages >> 2 << 5
    elif how is PART:
        word = word & ~(0xFFF << 10) | (value & 0xFFF) >> scale << 10
    else:
        word = word & 0xFC000000 | within((value - place) >> 2, 26)
    struct.pack_into("<I", memory, at, word)


def within(n, bits):
    """A signed number as so many bits.  Raises OverflowError where it needs more."""
    if not -(1 << bits - 1) <= n < 1 << bits - 1:
        raise OverflowError(n)
    return n & (1 << bits) - 1


# ---------------------------------------------------------------------------- in memory


class System:
    """The functions of libc and libgcc that put code into a process."""

    def __init__(self, mmap, munmap, mprotect, clear_cache, register_frame, deregister_frame):
        self.mmap, self.munmap, self.mprotect = mmap, munmap, mprotect
        self.clear_cache = clear_cache
        self.register_frame, self.deregister_frame = register_frame, deregister_frame


@functools.cache
def system():
    """The System of this process, or None where it lacks one of them."""
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    try:
        libc, libgcc = ctypes.CDLL(None), ctypes.CDLL("libgcc_s.so.1")
        return System(
            made(libc.mmap, pointer, pointer, size, number, number, number, ctypes.c_long),
            made(libc.munmap, number, pointer, size),
            made(libc.mprotect, number, pointer, size, number),
            made(libgcc.__clear_cache, None, pointer, pointer),
            made(libgcc.__register_frame, None, pointer),
            made(libgcc.__deregister_frame, None, pointer))
    except (OSError, AttributeError):
        return None


def made(function, result, *arguments):
    """The foreign function with its types."""
    function.restype, function.argtypes = result, arguments
    return function


class Library:
    """A loaded object.  Its code stays in memory until `close`, however many addresses are held."""

    def __init__(self, data, resolve):
        found = read(data)
        layout = laid_out(found)
        self.size = layout.size + layout.align - PAGE
        self.memory = reserved(self.size)        # None once it is closed
        base = rounded(self.memory, layout.align)
        self.frames = []
        try:
            content, addresses = linked(found, layout, base, resolve)
            self.place(base, content, layout)
        except BaseException:
            self.close()
            raise
        self.addresses = {symbol.name: place for symbol, place in zip(found.symbols, addresses)
                          if symbol.section and not symbol.local}

    def place(self, base, content, layout):
        """Writes the memory and then takes the right to write where it is not meant for data."""
        ctypes.memmove(base, bytes(content), layout.size)
        protect(base, layout.readable, READ | EXECUTE)
        protect(base + layout.readable, layout.writable - layout.readable, READ)
        system().clear_cache(base, base + layout.readable)
        for at in layout.frames:
            system().register_frame(base + at)
            self.frames.append(base + at)

    def address(self, symbol):
        """The address of a function or variable that the object defines; CheckError for others."""
        try:
            return self.addresses[symbol]
        except KeyError:
            raise CheckError(f"{symbol} cannot be linked: the object does not define it",
                             where=None) from None

    def close(self):
        """Frees the code.  Nobody may hold an address of it, or be running it."""
        self.addresses = {}
        while self.frames:
            system().deregister_frame(self.frames.pop())
        if self.memory is not None:
            system().munmap(self.memory, self.size)
            self.memory = None


def reserved(size):
    """The address of new memory, whole pages, zeros."""
    start = system().mmap(None, max(size, 1), READ | WRITE, PRIVATE_ANONYMOUS, -1, 0)
    if start == FAILED:
        raise MemoryError(f"no memory for {size} bytes of code")
    return start


def protect(start, size, rights):
    """Sets what may be done with some pages.  Raises CheckError where the system forbids it."""
    if size and system().mprotect(start, size, rights):
        raise CheckError("the system does not let this process run code that it has made",
                         where=None)


@functools.cache
def process():
    """The functions of this process, by name, as ctypes finds them."""
    return ctypes.CDLL(None)


def in_process(name):
    """The address of what this process defines under a name.  Raises CheckError for nothing."""
    try:
        return ctypes.cast(getattr(process(), name), ctypes.c_void_p).value
    except AttributeError:
        raise CheckError(f"an object cannot be linked: nobody defines {name}", where=None) from None
