"""What the kernel takes away from a confined process, on the machine of the test and on others."""

from __future__ import annotations

import errno
import platform
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from judges.scorers.rubric import kernel

CONFINED = f"""
import os, sys, asyncio
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from pathlib import Path
from judges.scorers.rubric import child
child.enter("judges.scorers", child.HERE.parent)
from judges.scorers.rubric import confinement
confinement.limit(confinement.ProcessLimits())
missing = confinement.confine(Path.cwd(), hook=False)
print(missing)
"""


def lines_of(source: str, folder: Path) -> list[str]:
    """What a process prints that runs this."""
    call = [sys.executable, "-I", "-W", "ignore", "-c", source]
    return subprocess.run(
        call, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False, env={}
    ).stdout.splitlines()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's part is Linux's")
def test_a_landlock_that_lacks_a_part_is_told(tmp_path):
    newer = CONFINED.replace("confinement.limit", "confinement.kernel.WHOLE = 1000\nconfinement.limit")

    assert "Landlock" in lines_of(newer, tmp_path)[0]


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's part is Linux's")
def test_the_kernel_refuses_what_the_interpreter_lets_through(tmp_path):
    """Without the hook of the interpreter, in a process that only the kernel confines."""
    lines = {
        "socket": "__import__('socket').socket()",
        "pair": "__import__('socket').socketpair()",
        "fork": "os.fork()",
        "kill": "os.kill(os.getppid(), 0)",
        "passwd": "open('/etc/passwd')",
        "environ": "open(f'/proc/{os.getppid()}/environ')",
        "exec": "os.execv('/bin/true', ['true'])",
        "project": f"open({__file__!r})",
        "left": "open('/tmp/left-behind', 'w')",
        "limit": "__import__('resource').setrlimit(0, (10**6, 10**6))",
        "owner": "__import__('fcntl').fcntl(0, 8, os.getppid())",
        "which": "__import__('fcntl').fcntl(0, 10, 10)",
        "memory": "os.memfd_create('x')",
        "date": "os.utime('own.txt')",
        "attribute": "os.setxattr('own.txt', 'user.x', b'x')",
    }
    allowed = {
        "thread": "(t := __import__('threading').Thread(target=int)).start() or t.join()",
        "own": "open('own.txt', 'w').write('x')",
        "flags": "__import__('fcntl').fcntl(0, 3)",
        "self": "__import__('signal').pthread_kill(__import__('threading').get_ident(), 0)",
        "library": "open(os.__file__)",
    }
    (tmp_path / "own.txt").write_text("x")
    source = (
        CONFINED
        + f"""
for name, line in {lines | allowed!r}.items():
    try: eval(line)
    except (OSError, ValueError): print(name, 'refused')
    else: print(name, 'done')
sys.stdout.flush()
os._exit(0)
"""
    )
    missing, *said = lines_of(source, tmp_path)

    if missing != "[]":
        pytest.skip(f"this kernel cannot confine: {missing}")
    assert dict(line.split() for line in said) == dict.fromkeys(lines, "refused") | dict.fromkeys(allowed, "done")


def answer_of(program: bytes, machine: int, number: int, *arguments: int) -> int:
    """What a filter says to a call: the instructions that ours consist of, followed one by one."""
    call = struct.pack("IIQ6Q", number, machine, 0, *arguments, *(0,) * (6 - len(arguments)))
    at = held = 0
    while True:
        code, yes, no, value = struct.unpack_from("HBBI", program, at * 8)
        at += 1
        if code == kernel.LOAD:
            (held,) = struct.unpack_from("I", call, value)
        elif code == kernel.RETURN:
            return int(value)
        else:
            true = {
                kernel.JUMP_IF_EQUAL: held == value,
                kernel.JUMP_IF_AT_LEAST: held >= value,
                kernel.JUMP_IF_SET: bool(held & value),
            }[code]
            at += yes if true else no


@pytest.mark.parametrize("name", kernel.MACHINES)
def test_the_filter_refuses_what_it_should_on_every_machine(name):
    column, machine = kernel.MACHINES[name]
    program = kernel.filter_program(column, machine, 4711)
    no, unknown = kernel.ERROR | errno.EPERM, kernel.ERROR | errno.ENOSYS
    clone, limits = kernel.CLONE[column], kernel.PRLIMIT[column]
    refused = {numbers[column] for numbers in kernel.REFUSED.values()} - {0}
    signal = kernel.TGKILL[column]

    for number in range(500):
        if number not in {clone, limits, signal, kernel.CLONE3[column]}:
            assert answer_of(program, machine, number) == (no if number in refused else kernel.ALLOW), number
    assert answer_of(program, machine, kernel.CLONE3[column]) == unknown
    assert answer_of(program, machine, clone, 0x3D0F00) == kernel.ALLOW  # what a thread is started with
    assert answer_of(program, machine, clone, 0x1200011) == no  # what a process is started with
    assert answer_of(program, machine, limits, 0, 7, 0, 0x7FFF00000000) == kernel.ALLOW
    assert answer_of(program, machine, limits, 0, 7, 0x7FFF00000000) == no  # only its upper half is set
    assert answer_of(program, machine, limits, 0, 7, 1) == no
    assert answer_of(program, machine, signal, 4711, 4711, 6) == kernel.ALLOW
    assert answer_of(program, machine, signal, 4710, 4710, 9) == no
    fcntl, ioctl, prctl = ((72, 25)[column], (16, 29)[column], (157, 167)[column])
    for call in (  # the upper half of an argument is nothing to the kernel, and must hide nothing
        *((fcntl, 3, command | upper) for command in (8, 10, 15) for upper in (0, 1 << 32)),
        *((ioctl, 3, command | upper) for command in (0x8901, 0x8902) for upper in (0, 1 << 32)),
        *((prctl, 1 | upper) for upper in (0, 1 << 32)),
    ):
        assert answer_of(program, machine, *call) == no, call
    for call in ((fcntl, 3, 4), (fcntl, 8, 0), (ioctl, 3, 0x5401), (prctl, 38), (prctl, 15)):
        assert answer_of(program, machine, *call) == kernel.ALLOW, call
    assert answer_of(program, machine ^ 1, 0) == kernel.KILL
    if name == "x86_64":
        assert answer_of(program, machine, kernel.X32 | 41) == kernel.KILL


def test_no_call_is_named_twice():
    for column in (0, 1):
        numbers = [numbers[column] for numbers in kernel.REFUSED.values() if numbers[column]]
        assert len(set(numbers)) == len(numbers)


def test_a_machine_without_a_filter_says_so(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")

    with pytest.raises(kernel.Unavailable, match=r"riscv64|Linux"):
        kernel.refuse_calls()
