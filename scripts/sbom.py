"""Writes a bill of materials (SBOM) of the image and its packages: CycloneDX 1.6 as JSON, the same for the same files.

    python scripts/sbom.py > sbom.json

It lists every package of constraints.txt with its exact version, with the hash of its file where `hashes/` has one, and the
images that Dockerfile and compose.yaml build on. "excluded" are packages that tests and CUDA need and the CPU's image lacks.
Debian's packages inside of the images are not listed: ask the built image, for example with `docker sbom` or `syft`.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from l2m_core import __version__  # noqa: E402
from scripts import pin_images  # noqa: E402

TOP = pin_images.TOP
LINE = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)(?: --hash=sha256:([0-9a-f]{64}))?", re.MULTILINE)


def main() -> int:
    json.dump(bill(), sys.stdout, indent=1)
    print()
    return 0


def bill() -> dict[str, Any]:
    components = [*packages(), *images()]
    content = json.dumps([__version__, components], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "l2m",
                "name": "learning-to-measure",
                "version": __version__,
                "purl": f"pkg:pypi/learning-to-measure@{__version__}",
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": "l2m", "dependsOn": sorted(component["bom-ref"] for component in components)}],
    }


def packages() -> list[dict[str, Any]]:
    of_image = {normal(name): digest for name, _, digest in pins("hashes/cpu-*.txt")}
    found = []
    for name, version, _ in pins("constraints.txt"):
        purl = f"pkg:pypi/{normal(name)}@{version}"
        digest = of_image.get(normal(name))
        found.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "purl": purl,
                "scope": "required" if digest else "excluded",
                **({"hashes": [{"alg": "SHA-256", "content": digest}]} if digest else {}),
                **licence_of(name, version),
            }
        )
    return found


def pins(pattern: str) -> list[tuple[str, str, str]]:
    """Name, version and hash of each line of these files."""
    return [found for file in sorted(TOP.glob(pattern)) for found in LINE.findall(file.read_text("utf-8"))]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def licence_of(name: str, version: str) -> dict[str, Any]:
    """As the package states it by an SPDX expression, where that very version is installed here."""
    try:
        found = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return {}
    expression = found.get("License-Expression")
    return {"licenses": [{"expression": expression}]} if expression and found["Version"] == version else {}


def images() -> list[dict[str, Any]]:
    named = {image for name in pin_images.FILES for image in pin_images.images((TOP / name).read_text("utf-8"))}
    found = []
    for image in sorted(named):
        tagged, _, digest = image.partition("@")
        name, _, tag = tagged.partition(":")
        purl = f"pkg:docker/{name}@{digest or tag}" + (f"?tag={tag}" if digest else "")
        found.append({"type": "container", "bom-ref": purl, "name": name, "version": tag, "purl": purl})
    return found


if __name__ == "__main__":
    sys.exit(main())
