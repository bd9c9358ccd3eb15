"""Pages: each view authorises, validates a form, calls one transition, and renders."""
