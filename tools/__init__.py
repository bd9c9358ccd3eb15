"""Programs for developers. Not part of the image."""
