"""JavaScript, TypeScript, Go, Rust and Java: what is detected by which file."""

import json
from pathlib import Path

import pytest

from agent_lsp.validation.detect import detect
from agent_lsp.workspace import Place
from tests.validation.test_detect import commands, write


def package(**content: object) -> str:
    """A package.json."""
    return json.dumps(content, indent=2)


def scripts(**texts: str) -> dict[str, str]:
    """A project with just these scripts."""
    return {"package.json": package(scripts=texts)}


@pytest.mark.parametrize(
    ("lock", "script", "program"),
    [
        ({}, "npm run test -- --run", "npx --no-install eslint ."),
        ({"package-lock.json": ""}, "npm run test -- --run", "npx --no-install eslint ."),
        ({"pnpm-lock.yaml": ""}, "pnpm run test --run", "pnpm exec eslint ."),
        ({"yarn.lock": ""}, "yarn run test --run", "yarn run eslint ."),
        ({"bun.lock": ""}, "bun run test --run", "bun run eslint ."),
        ({"bun.lockb": ""}, "bun run test --run", "bun run eslint ."),
    ],
)
@pytest.mark.requirement("F42")
def test_detect_uses_the_package_manager_of_the_lock_file(
    lock: dict[str, str], script: str, program: str, tmp_path: Path
) -> None:
    write(tmp_path, {**scripts(test="vitest"), "eslint.config.js": "", **lock})

    assert commands(tmp_path) == {"eslint": program, "vitest": script}


@pytest.mark.parametrize(
    ("named", "expected"), [("pnpm@9.1.0", "pnpm run lint"), ("odd@1", "npm run lint"), (1, "npm run lint")]
)
def test_detect_uses_the_package_manager_that_is_named(named: object, expected: str, tmp_path: Path) -> None:
    write(tmp_path, {"package.json": package(scripts={"lint": "eslint ."}, packageManager=named)})

    assert commands(tmp_path) == {"eslint": expected}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            scripts(lint="eslint . --max-warnings 0", typecheck="vue-tsc --noEmit", test="jest --ci"),
            {"eslint": "npm run lint", "tsc": "npm run typecheck", "jest": "npm run test"},
        ),
        (
            scripts(**{"lint": "next lint", "type-check": "tsc -p .", "test": "node --test"}),
            {"eslint": "npm run lint", "tsc": "npm run type-check", "npm-test": "npm run test"},
        ),
        (
            scripts(**{"lint": "eslint --fix .", "lint:check": "eslint ."}),
            {"eslint": "npm run lint:check"},
        ),
        (scripts(lint="biome check --write ."), {"biome": "npm run lint"}),
        (scripts(test='echo "Error: no test specified" && exit 1'), {}),
        (scripts(test="vitest run --coverage"), {"vitest": "npm run test"}),
        (scripts(test="tsc && vitest"), {"vitest": "npm run test -- --run"}),
        (scripts(test="vitest --watch src"), {"vitest": "npx --no-install vitest run src"}),
        (scripts(test="vitest -w"), {"vitest": "npx --no-install vitest run"}),
        (scripts(test="jest --watchAll --runInBand"), {"jest": "npx --no-install jest --runInBand"}),
        (scripts(test="jest --watch=true"), {"jest": "npx --no-install jest"}),
        (scripts(test="jest -w 2"), {"jest": "npm run test"}),
        (scripts(test="npm run test -w packages/a"), {"npm-test": "npm run test"}),
        (scripts(test="echo $X && jest --watch"), {}),
        (scripts(**{"test": "mocha --watch", "test:ci": "mocha"}), {"npm-test:ci": "npm run test:ci"}),
        (scripts(test="nodemon --exec mocha"), {}),
        (scripts(test="react-scripts test"), {"npm-test": "npm run test -- --watchAll=false"}),
        (scripts(test="ng test"), {"npm-test": "npm run test -- --watch=false"}),
        (scripts(test="ng test --watch=false"), {"npm-test": "npm run test"}),
        (scripts(typecheck="tsc --noEmit --watch", tsc="tsc --noEmit"), {"tsc": "npm run tsc"}),
        (
            {"package.json": "{}", "tsconfig.json": '{"extends": "x"} // y'},
            {"tsc": "npx --no-install tsc --noEmit --pretty false"},
        ),
        (
            {"package.json": "{}", "tsconfig.json": '{"files": [], /* */ "references": [{"path": "a"},],}'},
            {"tsc": "npx --no-install tsc --build --noEmit --pretty false"},
        ),
        (
            {"package.json": "{}", ".eslintrc.json": "{}"},
            {"eslint": "npx --no-install eslint --ext .js,.jsx,.mjs,.cjs,.ts,.tsx ."},
        ),
        (
            {"package.json": package(eslintConfig={})},
            {"eslint": "npx --no-install eslint --ext .js,.jsx,.mjs,.cjs,.ts,.tsx ."},
        ),
        (
            {"eslint.config.mjs": "", "biome.jsonc": ""},
            {"eslint": "npx --no-install eslint .", "biome": "npx --no-install biome check ."},
        ),
        ({"package.json": "{}", "vitest.config.ts": ""}, {"vitest": "npx --no-install vitest run"}),
        ({"package.json": package(jest={})}, {"jest": "npx --no-install jest"}),
        (
            {"package.json": package(devDependencies={"vitest": "^3"})},
            {"vitest": "npx --no-install vitest run --passWithNoTests"},
        ),
        ({"package.json": package(devDependencies={"eslint": "9", "typescript": "5", "@biomejs/biome": "2"})}, {}),
    ],
)
def test_detect_knows_javascript_by(files: dict[str, str], expected: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path, files)

    assert commands(tmp_path) == expected


def test_detect_names_the_line_of_a_script(tmp_path: Path) -> None:
    write(tmp_path, {"web/package.json": package(name="web", scripts={"lint": "eslint ."})})

    (found,) = detect(tmp_path)

    assert (found.place, found.why) == (
        Place(source=str(tmp_path / "web/package.json"), line=4, column=1),
        'script "lint" in web/package.json',
    )


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (
            {"package.json": package(workspaces=["packages/*"], scripts={"test": "vitest run"}), "yarn.lock": ""},
            {"vitest": "yarn run test", "packages/a/eslint": "yarn run lint"},
        ),
        (
            {
                "package.json": package(scripts={"test": "pnpm -r test"}),
                "pnpm-workspace.yaml": "",
                "pnpm-lock.yaml": "",
            },
            {"pnpm-test": "pnpm run test", "packages/a/eslint": "pnpm run lint"},
        ),
        (
            {"package.json": package(scripts={"test": "node --test"})},
            {"npm-test": "npm run test", "packages/a/jest": "npm run test", "packages/a/eslint": "npm run lint"},
        ),
    ],
)
def test_detect_takes_a_workspaces_script_for_its_members(
    root: dict[str, str], expected: dict[str, str], tmp_path: Path
) -> None:
    write(tmp_path, {**root, "packages/a/package.json": package(scripts={"test": "jest", "lint": "eslint ."})})

    assert commands(tmp_path) == expected


SHORT = "--message-format short"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"go.mod": "module a\n"}, {"go-vet": "go vet ./...", "go-test": "go test ./..."}),
        (
            {"Cargo.toml": '[package]\nname = "a"\n'},
            {"cargo-check": f"cargo check {SHORT}", "cargo-test": f"cargo test {SHORT}"},
        ),
        (
            {
                "Cargo.toml": '[workspace]\nmembers = ["a"]\n',
                "a/Cargo.toml": '[package]\nname = "a"\n',
                "clippy.toml": "",
            },
            {
                "clippy": f"cargo clippy --workspace {SHORT}",
                "cargo-check": f"cargo check --workspace {SHORT}",
                "cargo-test": f"cargo test --workspace {SHORT}",
            },
        ),
        (
            {"Cargo.toml": '[package]\nname = "a"\n[lints.clippy]\nall = "deny"\n'},
            {
                "clippy": f"cargo clippy {SHORT}",
                "cargo-check": f"cargo check {SHORT}",
                "cargo-test": f"cargo test {SHORT}",
            },
        ),
        (
            {"Cargo.toml": "[package]\n", "rust-toolchain.toml": '[toolchain]\ncomponents = ["clippy"]\n'},
            {
                "clippy": f"cargo clippy {SHORT}",
                "cargo-check": f"cargo check {SHORT}",
                "cargo-test": f"cargo test {SHORT}",
            },
        ),
        ({"Cargo.toml": "[profile.release]\n"}, {}),
        ({"pom.xml": "<project/>"}, {"maven": "mvn -q test"}),
        ({"pom.xml": "", "mvnw": ""}, {"maven": "sh mvnw -q test"}),
        ({"pom.xml": "<modules><module>a</module></modules>", "a/pom.xml": ""}, {"maven": "mvn -q test"}),
        ({"a/pom.xml": "", "b/pom.xml": ""}, {"a/maven": "mvn -q test", "b/maven": "mvn -q test"}),
        ({"build.gradle": ""}, {"gradle": "gradle test --console=plain"}),
        (
            {"settings.gradle.kts": "", "app/build.gradle.kts": ""},
            {"gradle": "gradle test --console=plain"},
        ),
        ({"gradlew": "", "app/build.gradle": ""}, {"app/gradle": "sh ../gradlew test --console=plain"}),
    ],
)
def test_detect_knows_compiled_languages_by(files: dict[str, str], expected: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path, files)

    assert commands(tmp_path) == expected


def test_detect_prefers_a_wrapper_that_can_be_executed(tmp_path: Path) -> None:
    write(tmp_path, {"build.gradle": "", "gradlew": "#!/bin/sh\n", "lib/build.gradle": ""})
    (tmp_path / "gradlew").chmod(0o755)

    assert commands(tmp_path) == {
        "gradle": "./gradlew test --console=plain",
        "lib/gradle": "../gradlew test --console=plain",
    }
