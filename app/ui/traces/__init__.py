"""The parts of the traces page: the list, the replay, comparing, verifying, and files that go out and come in."""
