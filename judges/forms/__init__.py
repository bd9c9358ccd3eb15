"""What people type about judges and runs, checked for its shape; the verbs check the rest."""
