"""Exports, agreement, comparison with judges, evidence bundles and audits."""
