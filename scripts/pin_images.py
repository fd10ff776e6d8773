"""Pins the images of Dockerfile and compose.yaml by their digests, which no one can move to another content as a tag can.

    python scripts/pin_images.py

Asks the registry by `docker buildx imagetools`, starts nothing, and rewrites both files: `name:tag` becomes
`name:tag@sha256:…`. Run it again after a change of a tag, and look at the difference before you commit it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
FILES = ("Dockerfile", "compose.yaml")
OURS = "l2m"
IMAGE = re.compile(r"^(FROM |\s+image: )([\w./-]+:[\w.-]+)(@sha256:[0-9a-f]{64})?", re.MULTILINE)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def main() -> int:
    for name in FILES:
        file = TOP / name
        file.write_text(pinned(file.read_text("utf-8"), digest_of), "utf-8")
        print(*sorted(images(file.read_text("utf-8"))), sep="\n")
    return 0


def images(text: str) -> set[str]:
    """Those of others, each with its digest where it has one."""
    found = {f"{match[2]}{match[3] or ''}" for match in IMAGE.finditer(text)}
    return {image for image in found if not image.startswith(f"{OURS}:")}


def pinned(text: str, digest: Callable[[str], str]) -> str:
    """digest: of an image by its name and tag."""

    def pin(match: re.Match[str]) -> str:
        return match[0] if match[2].startswith(f"{OURS}:") else f"{match[1]}{match[2]}@{digest(match[2])}"

    return IMAGE.sub(pin, text)


def digest_of(image: str) -> str:
    command = ["docker", "buildx", "imagetools", "inspect", "--format", "{{.Manifest.Digest}}", image]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    digest = said.stdout.strip()
    if said.returncode != 0 or DIGEST.fullmatch(digest) is None:
        raise SystemExit(f"docker does not know the digest of {image}: {said.stderr.strip()[:300]}")
    return digest


if __name__ == "__main__":
    sys.exit(main())
