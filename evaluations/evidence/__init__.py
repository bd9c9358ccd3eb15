"""Evidence bundles: the evidence of a submission in one signed file that anybody can check offline."""
