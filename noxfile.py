"""One session a promise: `nox` runs what CI runs, `nox -l` lists the rest."""

import os
import runpy
from pathlib import Path

import nox

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["tests(cpu)", "lint", "types", "layers", "docs"]

runpy.run_path("conftest.py")  # its variables: no session writes into the user's home
PROJECT = nox.project.load_toml("pyproject.toml")
CUDA_EXTRA = os.environ.get("XDEV_CUDA_EXTRA", "cu13")  # or cu12, as the driver is

DEVICES = ["cpu", "fake", "cuda"]
# Where tests meet arrays of other libraries.
MEETINGS = [
    *("device", "facade", "interop", "random/test_libraries.py"),
    *("transfer/test_foreign.py", "ufunc/test_kernel_writes.py"),
    *("ufunc/test_foreign_arrays.py", "ufunc/test_foreign_order.py"),
]
# By the dependency group: which libraries must be there, and where their tests are.
# Those of PyTorch and JAX have arrays that pass through (Dask's do in all sessions),
# the others work on ours.
LIBRARIES = {
    "torch": ("torch", [*MEETINGS, "memory/test_torch_bridge.py"]),
    "jax": ("jax", MEETINGS),
    "interop": (
        "array_api_extra,scipy,sklearn,warp,xarray",
        ["interop", "ufunc/test_overrides.py"],
    ),
}
# What a library's wheels from the default index need for CUDA; PyTorch's need nothing.
ON_CUDA = {"jax": [f"jax[cuda{CUDA_EXTRA.removeprefix('cu')}]"]}
# Beside each other, a file's tests in one process: they share what they compile.
SPREAD = ["-n", "2", "--dist", "loadfile"]
QUICK = "not cuda and not soak"
# Laws that the compiled part and its stand-in share: calls, the pool, threads.
SHARED_LAWS = [
    *("facade/test_calls.py", "facade/test_ufuncs.py", "memory/test_pools.py"),
    *("memory/test_free.py", "transfer/test_copies.py", "ufunc/test_cuda.py"),
    *("ufunc/test_cpu_threads.py", "ufunc/test_kernel.py"),
    "ufunc/test_vectorize_object.py",
]


def install(session, *groups, package="."):
    """Install the package and dependency groups at the locked versions."""
    needs = nox.project.dependency_groups(PROJECT, *groups)
    session.install("-c", "requirements.lock", "-e", package, *needs)


def install_tools(session, *groups):
    """Install dependency groups for what reads the package and does not build it."""
    needs = nox.project.dependency_groups(PROJECT, *groups)
    session.install("-c", "requirements.lock", *needs)


def tests_of_libraries(session, group):
    """Run the tests with other libraries; XDEV_TEST_DEVICES=cpu,cuda: on CUDA too."""
    promised, rooms = LIBRARIES[group]
    needs, options = [*nox.project.dependency_groups(PROJECT, group)], []
    if "cuda" in os.environ.get("XDEV_TEST_DEVICES", ""):
        needs += ["-e", f".[{CUDA_EXTRA}]", *ON_CUDA.get(group, ())]
    else:
        options = [*SPREAD, "-m", QUICK]
    # First, and not at the locked versions: PyTorch pins NVIDIA's libraries itself.
    session.install(*needs)
    install(session, "test")
    paths = [f"tests/{room}" for room in rooms]
    promises = {"XDEV_TEST_LIBRARIES": promised}
    session.run("pytest", *options, *paths, *session.posargs, env=promises)


@nox.session
@nox.parametrize("device", [*DEVICES, *LIBRARIES], ids=[*DEVICES, *LIBRARIES])
def tests(session, device):
    """Run the tests; tests(cuda) fails where no GPU answers, tests(fake) is a part."""
    if device in LIBRARIES:
        tests_of_libraries(session, device)
        return
    if device == "cuda":
        install(session, "test", package=f".[{CUDA_EXTRA}]")
    else:
        install(session, "test", "cuda")
    promised = {"cuda": "cpu,cuda"}.get(device, "cpu")
    # On a GPU one after the other. Beside others (-n) only what is -m "not full_card".
    marks = {"cpu": QUICK, "fake": "fake and not soak"}
    options = [*SPREAD, "-m", marks[device]] if device in marks else []
    also = {"XDEV_TEST_DEVICES": promised, "XDEV_TEST_LIBRARIES": "dask"}
    session.run("pytest", *options, *session.posargs, env=also)
    if device == "cpu" and not session.posargs:
        laws = [f"tests/{file}" for file in SHARED_LAWS]
        session.run("pytest", *options, *laws, env={**also, "XDEV_NATIVE": "0"})


@nox.session
def public(session):
    """Run what states the public promises only: a new inside must pass it."""
    install(session, "test", "cuda")
    options = [*SPREAD, "-m", f"not internal and {QUICK}", "tests", "docs", "README.md"]
    for native in "1", "0":
        also = {"XDEV_TEST_LIBRARIES": "dask", "XDEV_NATIVE": native}
        session.run("pytest", *options, *session.posargs, env=also)


@nox.session(python=nox.project.python_versions(PROJECT)[0])
def minimum(session):
    """Run the CPU's tests on the lowest versions that pyproject.toml allows."""
    needs = nox.project.dependency_groups(PROJECT, "test")
    needs = [*PROJECT["project"]["dependencies"], *needs]
    session.install("-e", ".", *(need.replace(">=", "==") for need in needs))
    rooms = "device", "facade", "memory", "random", "transfer", "ufunc"
    paths = [f"tests/{room}" for room in rooms]
    session.run("pytest", *SPREAD, "-m", QUICK, *paths, *session.posargs)


@nox.session
def soak(session):
    """Run what takes hours: NumPy's tests on the pool, 1000 exits, random programs."""
    install(session, "test", "cuda")
    session.install("meson", "ninja")  # some of NumPy's tests compile
    rooms = [f"numpy.{room}" for room in ("_core", "lib", "linalg", "fft")]
    # As in an empty folder; what sets handlers of its own is not for the bridge.
    alone = ["-c", os.devnull, "--rootdir=.", "-p", "no:cacheprovider"]
    options = ["-p", "xdev", "-n", "auto", "-k", "not test_mem_policy"]
    numpys = ["pytest", *alone, *options, "--pyargs", *rooms]
    session.run(*numpys, env={"XDEV_NUMPY_POOL": "1"})
    # Tests that are a sample otherwise: those of files that ask for the profile.
    asking = "HYPOTHESIS_PROFILE", "max_examples"
    for file in sorted(Path("tests").rglob("test_*.py")):
        if any(word in file.read_text(encoding="utf-8") for word in asking):
            session.run("pytest", str(file), env={"HYPOTHESIS_PROFILE": "deep"})
    session.run("pytest", "-m", "soak and not cuda", "tests")
    session.run("python", "benchmarks/harness.py")


@nox.session
@nox.parametrize("device", ["cpu", "cuda"], ids=["cpu", "cuda"])
def conformance(session, device):
    """Run array-api-tests: nox -s "conformance(cpu)" -- PATH [--examples N]."""
    install(session, "test", package="." if device == "cpu" else f".[{CUDA_EXTRA}]")
    session.install("ndindex>=1.8", "pytest-json-report")  # what the suite imports
    program = "tools/conformance.py"
    session.run("python", program, "--device", device, "--jobs", "2", *session.posargs)


@nox.session
def lint(session):
    """Check style and format."""
    session.install("-c", "requirements.lock", "ruff")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session):
    """Check types, strictly; and that users' editors see the same."""
    install_tools(session, "types")
    session.run("mypy")
    session.run("pyright")


@nox.session
def layers(session):
    """Check that imports go down only."""
    install_tools(session, "lint")
    session.run("lint-imports", env={"PYTHONPATH": "."})


@nox.session
def docs(session):
    """Build the site to site/; a broken link, or any other warning, fails."""
    install(session, "docs")
    quiet = {"NO_MKDOCS_2_WARNING": "1"}
    session.run("mkdocs", "build", "--strict", "--site-dir", "site", env=quiet)


@nox.session
def bench(session):
    """Run the benchmark programs beside all peers: to benchmarks/results/ and docs."""
    install(session, "test", "cuda")
    # Peers have their own idea of CUDA's libraries: not at the locked versions.
    session.install(*nox.project.dependency_groups(PROJECT, "bench"))
    session.run("python", "-m", "benchmarks", *session.posargs)
