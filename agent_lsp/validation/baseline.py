"""What was red before the agent's first change: the project as it was, kept aside, and the validators run on that.

Invariant: the user's tree, index and repository stay as they are. The snapshot is made by git with an index and an
object store of its own, and laid out in a private directory.
"""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from agent_lsp.processes import Program, run_program
from agent_lsp.validation.run import Surroundings, ValidatorResult, run_validators
from agent_lsp.validation.validator import Finding

SNAPSHOT_SECONDS = 10.0
_DEPENDENCIES = (".venv", "venv", "node_modules")  # not in the snapshot, because they are ignored; used where they are
_QUIET_GIT = ("-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false")


class Unknown(Exception):
    """What failed before cannot be known; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A workspace as it was; ``environment`` makes git use the snapshot's own index and objects."""

    root: Path
    top: Path
    folder: Path
    environment: Mapping[str, str]

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


async def take_snapshot(root: Path, environment: Mapping[str, str]) -> Snapshot:
    """Keep a workspace as it is now: tracked and untracked files, without ignored ones. Raises Unknown."""
    top = Path(await _git(root, environment, "rev-parse", "--show-toplevel"))
    index = top / await _git(top, environment, "rev-parse", "--git-path", "index")
    objects = top / await _git(top, environment, "rev-parse", "--git-path", "objects")
    folder = Path(tempfile.mkdtemp(prefix="agent-lsp-baseline-"))
    own = {
        **environment,
        "GIT_INDEX_FILE": str(folder / "index"),
        "GIT_OBJECT_DIRECTORY": str(folder / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
    }
    snapshot = Snapshot(root=root, top=top, folder=folder, environment=own)
    try:
        await anyio.to_thread.run_sync(_prepare, folder, index)
        await _git(top, own, "add", "--all", ".")
    except BaseException:
        snapshot.remove()
        raise
    return snapshot


def _prepare(folder: Path, index: Path) -> None:
    (folder / "objects").mkdir()
    if index.exists():
        shutil.copyfile(index, folder / "index")


async def run_on(
    snapshot: Snapshot, failed: Sequence[ValidatorResult], around: Surroundings, *, timeout: float
) -> dict[str, ValidatorResult]:
    """Run the validators that failed on the snapshot; results by name. Raises Unknown."""
    tree = snapshot.folder / "tree"
    if not tree.exists():
        await _git(snapshot.top, snapshot.environment, "checkout-index", "--all", f"--prefix={tree}{os.sep}")
        tree.mkdir(exist_ok=True)
    root = tree / snapshot.root.relative_to(snapshot.top)
    directories = {".", *(result.validator.directory for result in failed)}
    await anyio.to_thread.run_sync(_link_dependencies, snapshot.root, root, directories)
    elsewhere = Surroundings(root=root, environment=around.environment, logs=around.logs)
    results = await run_validators([result.validator for result in failed], elsewhere, timeout=timeout)
    return {result.validator.name: result for result in results}


def _link_dependencies(root: Path, copy: Path, directories: set[str]) -> None:
    for directory in directories:
        for name in _DEPENDENCIES:
            original, link = root / directory / name, copy / directory / name
            if original.is_dir() and link.parent.is_dir() and not link.exists():
                if _installs(original, root):
                    raise Unknown(f"{name} has the project itself installed, so a copy would test the present files")
                link.symlink_to(original, target_is_directory=True)


def _installs(environment: Path, root: Path) -> bool:
    """Whether a virtual environment points back to the project, as an editable installation does."""
    for place in (*environment.glob("lib/python*/site-packages"), *environment.glob("Lib/site-packages")):
        for file in (*place.glob("*.pth"), *place.glob("__editable__*.py"), *place.glob("*.egg-link")):
            try:
                if str(root) in file.read_text(encoding="utf-8", errors="replace"):
                    return True
            except OSError:
                continue
    return False


def new_findings(now: ValidatorResult, before: ValidatorResult | None) -> tuple[Finding, ...] | None:
    """The findings that were not there before; None where all of the failure is new, or nobody can tell.

    An empty answer means that the very same failed before. Lines are not compared: they move.
    """
    if before is None or not before.failed:
        return None
    if now.findings and before.findings:
        known = Counter(map(_key, before.findings))
        fresh = []
        for finding in now.findings:
            known[_key(finding)] -= 1
            if known[_key(finding)] < 0:
                fresh.append(finding)
        return tuple(fresh)
    return () if now.fingerprint == before.fingerprint else None


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.path, finding.code, finding.message


async def _git(directory: Path, environment: Mapping[str, str], *arguments: str) -> str:
    """Run git and give what it prints. Raises Unknown."""
    program = Program(
        command=("git", *_QUIET_GIT, *arguments), cwd=directory, environment=environment, timeout=SNAPSHOT_SECONDS
    )
    try:
        ran = await run_program(program)
    except OSError as error:
        raise Unknown(f"git cannot be run: {error}") from error
    if ran.exit_code != 0 and arguments[0] == "rev-parse":
        raise Unknown("there is no git repository")
    if ran.exit_code != 0:
        said = (ran.stderr.text().strip().splitlines() or ["it took too long"])[0]
        raise Unknown(f"git {arguments[0]}: {said}")
    return ran.stdout.text().strip()
