"""The web app: pages, background work, storage, and the HTTP face for other systems."""
