"""Restrictions of the Linux kernel that a process cannot undo: calls (seccomp) and files (Landlock).

Both need no privileges and apply to every thread and child. Numbers and structures are those of the kernel's own
headers (linux/seccomp.h, linux/filter.h, linux/landlock.h). Standard library only.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

# Numbers of calls on x86_64 and on aarch64; 0 if there is none. Names as in asm/unistd.h.
# io_uring_setup: it connects without any of the calls above.
NETWORK = {
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}  # fmt: skip
# memfd_create: its pages do not count towards any limit of this process.
PROCESSES = {
    "execve": (59, 221), "execveat": (322, 281), "fork": (57, 0), "vfork": (58, 0), "kill": (62, 129),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "memfd_create": (319, 279),
    "memfd_secret": (447, 447), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "setrlimit": (160, 164), "setpriority": (141, 140), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
}  # fmt: skip
SHARED = {
    "shmget": (29, 194), "shmat": (30, 196), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "mq_unlink": (241, 181), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
}  # fmt: skip
MACHINE = {
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "mount_setattr": (442, 442), "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266), "sethostname": (170, 161),
    "syslog": (103, 116), "personality": (135, 92), "quotactl": (179, 60), "fanotify_init": (300, 262),
    "mknod": (133, 0), "mknodat": (259, 33), "chmod": (90, 0), "fchmod": (91, 52), "fchmodat": (268, 53),
    "fchmodat2": (452, 452), "chown": (92, 0), "fchown": (93, 55), "lchown": (94, 0), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "removexattrat": (466, 466),
    "utime": (132, 0), "utimes": (235, 0), "futimesat": (261, 0), "utimensat": (280, 88), "setuid": (105, 146),
    "setgid": (106, 144), "setresuid": (117, 147), "setresgid": (119, 149), "capset": (126, 91), "modify_ldt": (154, 0),
    "iopl": (172, 0), "ioperm": (173, 0),
}  # fmt: skip
REFUSED = NETWORK | PROCESSES | SHARED | MACHINE
CLONE, CLONE3, PRLIMIT, TGKILL = (56, 220), (435, 435), (302, 261), (234, 131)
SECCOMP = (317, 277)  # the call that installs a filter
# Calls that are refused by one argument: their numbers, its offset (in the structure that a filter reads), and refused
# values. The kernel uses the lower half of each. F_SETOWN, F_SETSIG, F_SETOWN_EX, FIOSETOWN and SIOCSPGRP choose who
# gets the signal of a file; PR_SET_PDEATHSIG would let the process continue without its parent.
BY_ARGUMENT = {
    "fcntl": ((72, 25), 24, (8, 10, 15)),
    "ioctl": ((16, 29), 24, (0x8901, 0x8902)),
    "prctl": ((157, 167), 16, (1,)),
}
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, and the kernel's identifier
X32 = 0x40000000  # calls of another interface on x86_64, which would bypass the numbers above

# Instructions and answers of a filter.
LOAD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, JUMP_IF_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
CLONE_THREAD = 0x10000
NUMBER_AT, MACHINE_AT, FIRST_ARGUMENT_AT, THIRD_ARGUMENT_AT = 0, 4, 16, 32  # in the structure that a filter reads

NO_NEW_PRIVILEGES, DIE_WITH_PARENT, NOT_DUMPABLE = 38, 1, 4
ALL_THREADS = 1

LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446  # the same on every machine
READ_FILE, READ_FOLDER, WRITE_FILE, TRUNCATE = 1 << 2, 1 << 3, 1 << 1, 1 << 14
CHANGE_FOLDER = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8  # remove and make folders and plain files
RIGHTS_BY_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
RIGHTS = (1 << 16) - 1  # from version 5 on
CONNECT_AND_BIND = 3  # from version 4 on
SOCKETS_AND_SIGNALS = 3  # to processes outside; from version 6 on
WHOLE = 6  # the version that has all of these


class Unavailable(Exception):
    """This system does not support the restriction; the message says why."""


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends. Does nothing except on Linux."""
    if sys.platform == "linux":
        _load_library().prctl(DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        _load_library().prctl(NOT_DUMPABLE, 0, 0, 0, 0)


def refuse_calls() -> None:
    """Refuse sockets, processes, signals to others and higher limits from here on; raise Unavailable.

    Threads may still be started, and existing sockets still work.
    """
    column, machine = _find_machine()
    program = filter_program(column, machine, os.getpid())
    library = _load_library()
    _forbid_new_privileges(library)
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    if library.syscall(SECCOMP[column], 1, ALL_THREADS, ctypes.create_string_buffer(header, len(header))):
        raise Unavailable(f"the kernel rejected the seccomp filter ({os.strerror(ctypes.get_errno())})")


def filter_program(column: int, machine: int, process: int) -> bytes:
    """Return the filter as the kernel reads it: 8 bytes per instruction. Signals may go to ``process`` only."""
    no, unknown = ERROR | errno.EPERM, ERROR | errno.ENOSYS
    steps = [(LOAD, 0, 0, MACHINE_AT), (JUMP_IF_EQUAL, 1, 0, machine), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER_AT)]
    if column == 0:
        steps += [(JUMP_IF_AT_LEAST, 0, 1, X32), (RETURN, 0, 0, KILL)]
    for numbers in REFUSED.values():
        if numbers[column]:
            steps += [(JUMP_IF_EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, no)]
    # Libraries fall back to clone if clone3 is unknown; a filter cannot see the flags of clone3.
    steps += [(JUMP_IF_EQUAL, 0, 1, CLONE3[column]), (RETURN, 0, 0, unknown)]
    steps += [(JUMP_IF_EQUAL, 0, 4, CLONE[column]), (LOAD, 0, 0, FIRST_ARGUMENT_AT)]
    steps += [(JUMP_IF_SET, 1, 0, CLONE_THREAD), (RETURN, 0, 0, no), (RETURN, 0, 0, ALLOW)]
    for numbers, place, values in BY_ARGUMENT.values():
        steps += [(JUMP_IF_EQUAL, 0, len(values) + 3, numbers[column]), (LOAD, 0, 0, place)]
        steps += [(JUMP_IF_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
        steps += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, no)]
    steps += [(JUMP_IF_EQUAL, 0, 4, TGKILL[column]), (LOAD, 0, 0, FIRST_ARGUMENT_AT)]
    steps += [(JUMP_IF_EQUAL, 0, 1, process), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, no)]
    # Limits may be read but not set: to read, the third argument is a null pointer, in both of its halves.
    steps += [(JUMP_IF_EQUAL, 0, 5, PRLIMIT[column]), (LOAD, 0, 0, THIRD_ARGUMENT_AT), (JUMP_IF_EQUAL, 0, 2, 0)]
    steps += [(LOAD, 0, 0, THIRD_ARGUMENT_AT + 4), (JUMP_IF_EQUAL, 1, 0, 0), (RETURN, 0, 0, no)]
    steps += [(RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def confine_files(readable: Iterable[Path], writable: Iterable[Path]) -> int:
    """Allow only files below these paths from here on; return the version of Landlock, or raise Unavailable."""
    if sys.platform != "linux":
        raise Unavailable("Landlock exists only on Linux")
    library = _load_library()
    version = library.syscall(LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        raise Unavailable("the kernel has no Landlock")
    handled = RIGHTS_BY_VERSION.get(version, RIGHTS)
    attributes = struct.pack(
        "QQQ", handled, CONNECT_AND_BIND if version >= 4 else 0, SOCKETS_AND_SIGNALS if version >= 6 else 0
    )[: 24 if version >= 6 else 16 if version >= 4 else 8]
    rules = library.syscall(
        LANDLOCK_CREATE, ctypes.create_string_buffer(attributes, len(attributes)), len(attributes), 0
    )
    if rules < 0:
        raise Unavailable(f"Landlock rejected its rules ({os.strerror(ctypes.get_errno())})")
    try:
        for path in readable:
            _allow(library, rules, path, handled & (READ_FILE | READ_FOLDER))
        for path in writable:
            _allow(library, rules, path, handled & (READ_FILE | READ_FOLDER | WRITE_FILE | TRUNCATE | CHANGE_FOLDER))
        _forbid_new_privileges(library)
        if library.syscall(LANDLOCK_RESTRICT, rules, 0):
            raise Unavailable(f"Landlock could not be switched on ({os.strerror(ctypes.get_errno())})")
        return int(version)
    finally:
        os.close(rules)


def _allow(library: ctypes.CDLL, rules: int, path: Path, rights: int) -> None:
    """Add a rule for a path; a path that does not exist needs none."""
    try:
        place = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights &= -1 if path.is_dir() else READ_FILE | WRITE_FILE | TRUNCATE
        rule = struct.pack("=Qi", rights, place)
        if library.syscall(LANDLOCK_ADD, rules, 1, ctypes.create_string_buffer(rule, len(rule)), 0):
            raise Unavailable(f"Landlock rejected {path} ({os.strerror(ctypes.get_errno())})")
    finally:
        os.close(place)


def _find_machine() -> tuple[int, int]:
    if sys.platform != "linux" or sys.maxsize < 2**32:
        raise Unavailable("seccomp exists only on 64-bit Linux")
    try:
        return MACHINES[platform.machine()]
    except KeyError:
        raise Unavailable(f"no filter exists for {platform.machine()}") from None


def _forbid_new_privileges(library: ctypes.CDLL) -> None:
    if library.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise Unavailable("the kernel does not let a process give up its privileges")


def _load_library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return library
