"""Modules of the vendor's names, in front of dflow. On the path under ``cs_python`` only."""
