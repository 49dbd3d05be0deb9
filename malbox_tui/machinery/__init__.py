"""Hypervisors: machines of libvirt, here and on other hosts."""
