"""Python client of WebVerdict: `Client`."""

from webverdict_client.client import Client, Upload
from webverdict_client.operations import Operation, UnknownArgumentError
from webverdict_client.resumable import Refused
from webverdict_client.rows import Rows

__all__ = ["Client", "Operation", "Refused", "Rows", "UnknownArgumentError", "Upload"]
