"""Vendor-shaped names."""
