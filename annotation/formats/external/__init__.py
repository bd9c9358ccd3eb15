"""One module or package for each external format; `annotation.formats.registry` finds them."""
