import pytest

import l2m_core as l2m


@pytest.fixture(scope="session")
def general():
    return l2m.load()
