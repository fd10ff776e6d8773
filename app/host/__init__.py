"""What runs with no page open: services, identity, the guard of requests, uploads, downloads and sign-in."""
