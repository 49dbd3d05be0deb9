"""What the product talks about: pure values and rules. No I/O, no clock, no event loop, no logging."""
