"""Run modules in processes that have their libraries already: one server imports these, and forks for each.

``python -m companion.book.warm MODULE ARGUMENTS`` does what ``python -m MODULE ARGUMENTS`` does, with the
same streams, folder, environment and exit code. A figure takes two such processes, its job and its kernel,
a result one, and each would spend seconds on importing torch, matplotlib and Jupyter. Without a server it
starts Python anew, so that every job runs by itself as well.

The server imports nothing of this project: what it forks sees the code as it is when it begins.
"""

import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from tempfile import TemporaryDirectory
from threading import Thread

SERVER = "ATTNLIB_WARM"  # in the environment: the path of a server's socket
PATIENCE = 30  # seconds in which whoever is told to stop may tidy up
CALLER = "ATTNLIB_CALLER"  # a pipe whose end says that the attnlib which started this Snakemake has ended
LIBRARIES = ("torch", "scipy.stats", "pandas", "matplotlib.backends.backend_svg", "matplotlib.figure")
LIBRARIES += ("papermill", "jupytext", "nbconvert.preprocessors", "ipykernel.kernelapp", "ipykernel.ipkernel")
LIBRARIES += ("pydantic.type_adapter", "jinja2", "yaml", "tabulate", "fontTools.subset")
LIBRARIES += ("torch._dynamo",)  # which is loaded when torch makes an embedding


def folder_of_sockets() -> TemporaryDirectory:
    """The path of a socket has at most 108 characters, so not below ``TMPDIR``."""
    return TemporaryDirectory(prefix="attnlib-", dir="/tmp" if os.access("/tmp", os.W_OK) else None)


@contextmanager
def server() -> Iterator[None]:
    """A server for the processes that this one starts meanwhile; it ends with this one, even a killed one."""
    with folder_of_sockets() as folder, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path := f"{folder}/warm")
        listening.listen()  # whoever comes before the server is ready waits
        command = [sys.executable, "-P", __file__, "--serve", str(listening.fileno())]
        with subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[listening.fileno()]) as process:
            listening.close()
            os.environ[SERVER] = path
            try:
                yield
            finally:
                del os.environ[SERVER]
                process.terminate()  # which leaves what it has forked


def warm(command: list[str]) -> list[str]:
    """The command that runs ``[python, "-m", MODULE, …]`` in a forked process."""
    return [command[0], "-P", __file__, *command[2:]] if command[1] == "-m" else command


def main(module: str, *arguments: str) -> int:
    """Have a module run, by the server if there is one; its exit code."""
    with socket.socket(socket.AF_UNIX) as connection:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the forked process hears Ctrl-C itself
        try:
            connection.connect(os.environ[SERVER])
        except (KeyError, OSError):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execv(sys.executable, [sys.executable, "-m", module, *arguments])
        request = {"argv": [module, *arguments], "cwd": os.getcwd(), "environment": dict(os.environ)}
        socket.send_fds(connection, [b"\n"], [0, 1, 2])
        connection.sendall(json.dumps(request).encode() + b"\n")
        answer = b"".join(iter(lambda: connection.recv(1), b""))  # the end comes once the process has ended
    return answer[0] if answer else 1


def serve(listening: socket.socket) -> int:
    """Fork for each who asks, until standard input ends; in the forked process, run what was asked."""
    for library in LIBRARIES:
        import_module(library)
    # How wide pandas prints a table is settled when it is imported; this is what it chooses in a kernel.
    import_module("pandas").set_option("display.max_columns", 20)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forked ones here
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the forked ones and who started this
    while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            return _run(connection)
        connection.close()
    return 0


def _run(connection: socket.socket) -> int:
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    request = json.loads(connection.makefile().readline())
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["argv"]
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    Thread(target=_end_with, args=[connection], daemon=True).start()
    code = 1
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    finally:
        connection.send(bytes([code]))
    return code


def end_with_caller() -> None:
    """Stop this process group, as Ctrl-C does, where the attnlib that started it is killed."""

    def follow(pipe: int) -> None:
        os.read(pipe, 1)
        os.killpg(0, signal.SIGINT)
        time.sleep(PATIENCE)
        os.killpg(0, signal.SIGKILL)

    Thread(target=follow, args=[int(os.environ[CALLER])], daemon=True).start()


def _end_with(connection: socket.socket) -> None:
    """End this process where the one that asked for it has been killed."""
    connection.recv(1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        sys.exit(serve(socket.socket(fileno=int(sys.argv[2]))))
    sys.exit(main(*sys.argv[1:]))
