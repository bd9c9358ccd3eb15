"""Trajectories of web agents and the labels of people."""
