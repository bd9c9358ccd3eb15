"""A receiver of webhooks that verifies and prints them; docs/webhooks.md explains it."""

import base64
import hmac
import http.server
import json
import os
import time

KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        number, at = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        right = "v1," + base64.b64encode(hmac.digest(KEY, f"{number}.{at}.".encode() + body, "sha256")).decode()
        signed = any(hmac.compare_digest(right, each) for each in self.headers["webhook-signature"].split())
        genuine = signed and abs(time.time() - int(at)) < 300
        if genuine:
            print(number, json.loads(body)["type"], flush=True)
        self.send_response(204 if genuine else 401)
        self.end_headers()


http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver).serve_forever()
