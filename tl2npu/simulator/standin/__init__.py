"""The ``tilelang`` package that a user's script imports while it runs on the simulator."""
