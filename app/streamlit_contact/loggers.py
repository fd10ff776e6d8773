"""Names of the loggers under which Streamlit reports an error of a page, in the error's own words."""

OF_ERRORS = (
    "streamlit.error_util",
    "streamlit.runtime.scriptrunner.script_runner",
    "streamlit.runtime.backend_operation_handler",
)
