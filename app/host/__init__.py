"""What hosts the app with no page open: settings, services, identity, guards, uploads and downloads."""
