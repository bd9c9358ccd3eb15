"""The rubric verifier: weighted criteria, each graded from the action log and from the most relevant screenshots.

Source: published descriptions of Microsoft's Universal Verifier and of Stagehand's verifier. Differences:

- Screenshots are duplicates if their bytes are equal (same SHA-256). Images that only look alike count separately.
- The two passes of a criterion are two calls in the full mode, so the first never sees an image.
- Penalties are points, which are subtracted from the earned points before the division.
- A refusal, or an empty or cut-off reply, leaves a criterion ungraded, or the trajectory unscored.
"""
