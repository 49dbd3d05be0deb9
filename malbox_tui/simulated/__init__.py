"""Machines, guests, plugins and disks of one simulated world: for the simulation, the demo and the pictures.

They pass the contract suites of their ports, never leave the loop's thread and know no wall time, so they run under a turned clock.
"""
