"""Evidence bundles: what a submission rests on, in one signed file that anybody can check offline."""
