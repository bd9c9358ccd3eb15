"""The pages: each view authorises, checks a form, calls one verb, and renders."""
