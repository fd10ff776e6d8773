"""The paper's tables and figures, each beside what this project's records say."""
