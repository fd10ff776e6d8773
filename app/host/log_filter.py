"""Keeps patients' values out of the log."""

from __future__ import annotations

import logging
import traceback
import warnings

from app.streamlit_contact import loggers
from l2m_core.tables.entered_values import UnseenLevelWarning


class WithoutValues(logging.Filter):
    """Keeps where an error happened in a log record, and removes the error's words, which may quote a patient's values."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            where = "".join(traceback.format_tb(error.__traceback__))
            record.exc_info = None
            record.exc_text = None
            record.msg = f"{record.getMessage()}\n{where}{type(error).__name__} (its message is not logged)"
            record.args = ()
        return True


def install() -> None:
    # It quotes the value. Whoever sent or entered it is told by other ways.
    warnings.filterwarnings("ignore", category=UnseenLevelWarning)
    for name in (*loggers.OF_ERRORS, "uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(WithoutValues())
