"""What each data set is, where it comes from and where to put it: what a person needs to read when it is absent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from l2m_core.errors import CohortError


@dataclass(frozen=True)
class Origin:
    """A data set's provenance."""

    title: str
    where: str
    put: str

    def require(self, path: Path) -> Path:
        """The path, if it is there."""
        if not Path(path).exists():
            raise CohortError(f"{self.title} is not at {Path(path).name}. It comes from {self.where}. {self.put}")
        return Path(path)


METABRIC = Origin(
    "METABRIC (breast cancer, gene expression and PAM50 subtype)",
    "Kaggle, raghadalharbi/breast-cancer-gene-expression-profiles-metabric, file METABRIC_RNA_Mutation.csv "
    "(original: cBioPortal, brca_metabric)",
    "Download it (a free account is needed) and give the CSV's path, or put it into the data folder.",
)
MINIBOONE = Origin(
    "MiniBooNE particle identification",
    "the UCI Machine Learning Repository, data set 199, file MiniBooNE_PID.txt",
    "Download and unzip it (no account is needed) and give the file's path, or put it into the data folder.",
)
MNIST = Origin(
    "MNIST handwritten digits",
    "yann.lecun.com/exdb/mnist or any mirror: train-images-idx3-ubyte(.gz) and train-labels-idx1-ubyte(.gz)",
    "Give the folder that holds both files, or an .npz with the arrays images and labels.",
)
MIMIC = Origin(
    "MIMIC-IV in MEDS form",
    "PhysioNet, mimiciv 3.1: credentialed access (a PhysioNet account, the CITI course and a signed data use "
    "agreement), then turned into MEDS by the package MIMIC-IV-MEDS (command MEDS_extract-MIMIC_IV)",
    "Give the folder that holds data/ and metadata/, or put it into the data folder as mimic_iv_meds.",
)
