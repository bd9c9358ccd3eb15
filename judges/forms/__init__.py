"""Forms for judges and runs, which check the format; the functions they call check the rest."""
