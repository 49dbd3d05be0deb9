"""What the product costs, measured: `make bench [BENCH=name] [JSON=1]`. Nothing here is asserted; figures go to the README."""
