"""Live capture of cited pages into a cache: an explicit command, and the only thing here that opens addresses.

Addresses come from answers of agents, so each is somebody else's: only http and https, only hosts whose every address
is public, checked after the name was resolved and again at every redirect, and the connection goes to what was checked.
"""

from judges.capturing.capture import Captured, capture
from judges.capturing.fetching import CaptureError, FetchLimits
from judges.capturing.targets import TargetRefused, resolve_host

__all__ = ["CaptureError", "Captured", "FetchLimits", "TargetRefused", "capture", "resolve_host"]
