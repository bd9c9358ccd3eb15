"""Figures and tables of the pages as files for papers: SVG, PDF, LaTeX and CSV."""
