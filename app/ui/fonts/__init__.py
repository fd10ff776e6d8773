"""The fonts of files that people take away: Latin, Greek, Cyrillic and the usual signs, whatever a server has."""

from pathlib import Path

FOLDER = Path(__file__).parent
REGULAR, BOLD = FOLDER / "DejaVuSansCondensed.ttf", FOLDER / "DejaVuSansCondensed-Bold.ttf"
NAME = "DejaVu Sans"
