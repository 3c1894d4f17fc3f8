"""What was red before the agent's first change: the project as it was, kept aside, and the validators run on that.

Invariant: the user's tree, index and repository stay as they are. The snapshot is made by git with an index and an
object store of its own, and laid out in a private directory.
"""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio.to_thread

from agent_lsp.processes import Program, run_program
from agent_lsp.validation.run import Surroundings, ValidatorResult, run_validators, without_numbers, without_times
from agent_lsp.validation.validator import Finding

SNAPSHOT_SECONDS = 2.0  # the first change of a prompt waits no longer
CHECKOUT_SECONDS = 30.0
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
        await _git(root, own, *await _without_filters(root, environment), "add", "--all", "--", ".")
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
    unclear = [result.validator.name for result in failed if result.validator.kind != "lint"]
    if unclear:  # imports, installations and links lead out of a copy, and then the present files would be tested
        raise Unknown(f"{', '.join(unclear)} cannot be trusted on a copy")
    tree = snapshot.folder / "tree"
    if not tree.exists():
        await _lay_out(snapshot, tree)
    root = tree / snapshot.root.relative_to(snapshot.top)
    directories = {".", *(result.validator.directory for result in failed)}
    await anyio.to_thread.run_sync(_link_dependencies, snapshot.root, root, directories)
    elsewhere = Surroundings(root=root, environment=around.environment, logs=around.logs)
    results = await run_validators([result.validator for result in failed], elsewhere, timeout=timeout)
    if missing := [result.validator.name for result in results if result.status in ("missing", "not run")]:
        raise Unknown(f"{', '.join(missing)} could not be run on a copy")
    return {result.validator.name: _as_if_at(result, root, snapshot.root) for result in results}


def _as_if_at(result: ValidatorResult, copy: Path, root: Path) -> ValidatorResult:
    return replace(result, text=result.text.replace(str(copy), str(root)))


async def _lay_out(snapshot: Snapshot, tree: Path) -> None:
    """Write the snapshot's files; a part of them is never taken for all."""
    part = snapshot.folder / "tree.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    quiet = await _without_filters(snapshot.top, snapshot.environment)
    checkout = ("checkout-index", "--all", f"--prefix={part}{os.sep}")
    await _git(snapshot.top, snapshot.environment, *quiet, *checkout, seconds=CHECKOUT_SECONDS)
    part.rename(tree)


async def _without_filters(directory: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """What keeps git from running the filter programs that a repository's configuration names (F70, F22)."""
    try:
        listed = await _git(directory, environment, "config", "--name-only", "--get-regexp", r"^filter\.")
    except Unknown:  # there are none
        return ()
    names = {line.removeprefix("filter.").rpartition(".")[0] for line in listed.splitlines()}
    unset = [
        f"filter.{name}.{key}" for name in sorted(names) for key in ("clean=", "smudge=", "process=", "required=false")
    ]
    return tuple(word for setting in unset for word in ("-c", setting))


def _link_dependencies(root: Path, copy: Path, directories: set[str]) -> None:
    for directory in directories:
        for name in _DEPENDENCIES:
            original, link = root / directory / name, copy / directory / name
            if original.is_dir() and link.parent.is_dir() and not link.exists():
                link.symlink_to(original, target_is_directory=True)


def new_findings(now: ValidatorResult, before: ValidatorResult | None) -> tuple[Finding, ...] | None:
    """The findings that were not there before; None where all of the failure is new, or nobody can tell.

    An empty answer means that the very same failed before. Lines are not compared: they move.
    """
    if before is None or not before.failed:
        return None
    if now.exit_code != before.exit_code:
        return None
    if now.findings and before.findings:
        known = Counter(map(_key, before.findings))
        fresh = []
        for finding in now.findings:
            known[_key(finding)] -= 1
            if known[_key(finding)] < 0:
                fresh.append(finding)
        same_words = without_numbers(now.text) == without_numbers(before.text)
        return tuple(fresh) if fresh or same_words else None
    return () if without_times(now.text) == without_times(before.text) else None


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.path, finding.code, finding.message


async def _git(
    directory: Path, environment: Mapping[str, str], *arguments: str, seconds: float = SNAPSHOT_SECONDS
) -> str:
    """Run git and give what it prints. Raises Unknown."""
    program = Program(command=("git", *_QUIET_GIT, *arguments), cwd=directory, environment=environment, timeout=seconds)
    try:
        ran = await run_program(program)
    except OSError as error:
        raise Unknown(f"git cannot be run: {error}") from error
    if ran.exit_code != 0 and arguments[0] == "rev-parse":
        raise Unknown("there is no git repository")
    if ran.exit_code != 0:
        said = "it took too long" if ran.timed_out else ran.stderr.text().strip().partition("\n")[0]
        raise Unknown(f"git: {said}")
    return ran.stdout.text().strip()
