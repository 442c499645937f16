"""Extract facts from a project's manifest: name, description, commands and dependencies.

The files are untrusted. Values of an unexpected type are ignored; a file that cannot be parsed is a ValueError.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NAMES_MAX = 60  # in one line
VALUE_MAX = 160  # characters


def facts(name: str, text: str) -> list[str] | None:
    """Return lines about a project from its manifest, the first with its name.

    Returns:
        None if the file name is not that of a manifest.

    Raises:
        ValueError: The file cannot be parsed.
    """
    reader = _READERS.get(name)
    if reader is None:
        return None
    try:
        return [line for line in reader(text) if line]
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _pyproject(text: str) -> list[str]:
    import tomllib

    whole = tomllib.loads(text)
    project = _table(whole, "project")
    poetry = _table(whole, "tool", "poetry")
    groups = _table(whole, "dependency-groups")
    packages = [*_texts(project.get("dependencies")), *_table(poetry, "dependencies")]
    extra = [item for group in _table(project, "optional-dependencies").values() for item in _texts(group)]
    extra += [item for group in groups.values() for item in _texts(group)]
    scripts = {**_table(poetry, "scripts"), **_table(project, "scripts")}
    return [
        _title(project.get("name") or poetry.get("name")),
        _labelled("description", project.get("description") or poetry.get("description")),
        _labelled("python", project.get("requires-python")),
        _labelled("build", _table(whole, "build-system").get("build-backend")),
        _labelled_list("workspace", _texts(_table(whole, "tool", "uv", "workspace").get("members"))),
        *_commands(scripts),
        *_commands(_table(whole, "tool", "poe", "tasks"), "poe task"),
        *_commands(_table(whole, "tool", "hatch", "envs", "default", "scripts"), "hatch run"),
        _labelled_list("dependencies", map(_python_name, packages)),
        _labelled_list("for development and extras", map(_python_name, extra)),
        _labelled_list("tools", _table(whole, "tool")),
    ]


def _package(text: str) -> list[str]:
    import json

    whole = json.loads(text)
    if not isinstance(whole, dict):
        raise ValueError("it is not an object")
    workspaces = whole.get("workspaces")
    members = _texts(workspaces) or _texts(_table(whole, "workspaces").get("packages"))
    return [
        _title(whole.get("name")),
        _labelled("description", whole.get("description")),
        _labelled("package manager", whole.get("packageManager")),
        _labelled("node", _table(whole, "engines").get("node")),
        _labelled_list("workspaces", members),
        *_commands(_table(whole, "scripts"), "script"),
        _labelled_list("dependencies", _table(whole, "dependencies")),
        _labelled_list("for development", _table(whole, "devDependencies")),
    ]


def _as_dependency(text: str) -> list[str]:
    import tomllib

    whole = tomllib.loads(text)
    package = _table(whole, "package")
    binaries = whole.get("bin")
    names = (
        [each.get("name") for each in binaries if isinstance(each, dict)]
        if isinstance(binaries, list)
        else []
    )
    return [
        _title(package.get("name")),
        _labelled("description", package.get("description")),
        _labelled("edition", package.get("edition")),
        _labelled_list("workspace", _texts(_table(whole, "workspace").get("members"))),
        _labelled_list("programs", _texts(names)),
        _labelled_list("features", _table(whole, "features")),
        _labelled_list(
            "dependencies", [*_table(whole, "dependencies"), *_table(whole, "workspace", "dependencies")]
        ),
        _labelled_list("for development", _table(whole, "dev-dependencies")),
    ]


def _as_go_module(text: str) -> list[str]:
    module = version = ""
    direct = []
    inside = False
    for line in text.splitlines():
        code, _, remark = line.partition("//")
        words = code.split()
        if not words:
            continue
        if words[0] == "module" and len(words) == 2:
            module = words[1]
        elif words[0] == "go" and len(words) == 2:
            version = words[1]
        elif words[:2] == ["require", "("]:
            inside = True
        elif words[0] == ")":
            inside = False
        elif (inside or words[0] == "require") and "indirect" not in remark:
            direct.append(words[0] if inside else words[1] if len(words) > 1 else "")
    if not module:
        raise ValueError("it names no module")
    return [_title(module), _labelled("go", version), _labelled_list("dependencies", direct)]


_READERS: dict[str, Callable[[str], list[str]]] = {
    "pyproject.toml": _pyproject,
    "package.json": _package,
    "Cargo.toml": _as_dependency,
    "go.mod": _as_go_module,
}


def _table(value: object, *keys: str) -> dict[str, object]:
    """Return a nested table; empty if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    """Return the strings in a list."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _one_line(value: object) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text if len(text) <= VALUE_MAX else text[: VALUE_MAX - 1].rstrip() + "…"


def _title(value: object) -> str:
    return _one_line(value) or "a project without a name"


def _labelled(what: str, value: object) -> str:
    text = _one_line(value)
    return f"{what}: {text}" if text else ""


def _labelled_list(what: str, names: Iterable[str]) -> str:
    found = [name for name in dict.fromkeys(map(_one_line, names)) if name]
    more = f" and {len(found) - NAMES_MAX} more" if len(found) > NAMES_MAX else ""
    return f"{what}: {', '.join(found[:NAMES_MAX])}{more}" if found else ""


def _commands(scripts: dict[str, object], what: str = "command") -> list[str]:
    return [
        f"{what} {_one_line(name)}: {_one_line(run)}"
        for name, run in scripts.items()
        if isinstance(run, str) and run.strip()
    ]


def _python_name(requirement: str) -> str:
    """Return `pydantic` for `pydantic[email] >= 2; python_version > "3.9"`."""
    for at, char in enumerate(requirement):
        if not (char.isalnum() or char in "._-"):
            return requirement[:at]
    return requirement
