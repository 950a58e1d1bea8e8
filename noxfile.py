"""One session a promise: `nox` runs what CI runs, `nox -l` lists the rest."""

import os

import nox

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["tests(cpu)", "lint", "types", "layers", "docs"]

PROJECT = nox.project.load_toml("pyproject.toml")
CUDA_EXTRA = os.environ.get("XDEV_CUDA_EXTRA", "cu13")  # or cu12, as the driver is


def install(session, *groups, package="."):
    """Install the package and dependency groups at the locked versions."""
    needs = nox.project.dependency_groups(PROJECT, *groups)
    session.install("-c", "requirements.lock", "-e", package, *needs)


@nox.session
@nox.parametrize("device", ["cpu", "cuda"], ids=["cpu", "cuda"])
def tests(session, device):
    """Run the tests; tests(cuda) fails where no GPU answers."""
    if device == "cpu":
        install(session, "test", "cuda")
    else:
        install(session, "test", package=f".[{CUDA_EXTRA}]")
    promised = {"cpu": "cpu", "cuda": "cpu,cuda"}[device]
    workers = ["-n", "2"] if device == "cpu" else []
    session.run(
        "pytest", *workers, *session.posargs, env={"XDEV_TEST_DEVICES": promised}
    )


@nox.session
def lint(session):
    """Check style and format."""
    session.install("-c", "requirements.lock", "ruff")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session):
    """Check types, strictly."""
    install(session, "types")
    session.run("mypy")


@nox.session
def layers(session):
    """Check that imports go down only."""
    install(session, "lint")
    session.run("lint-imports")


@nox.session
def docs(session):
    """Build the documentation; a broken link fails."""
    install(session, "docs")
    session.run("mkdocs", "build", "--strict", "--site-dir", "site")


@nox.session
def bench(session):
    """Run the benchmark programs; results go to benchmarks/results/."""
    install(session, "test")
    session.run("python", "-m", "benchmarks", *session.posargs)
