"""The parts of the Evidence page: gathering in the background, and the figures."""
