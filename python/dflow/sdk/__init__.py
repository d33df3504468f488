"""The vendor-shaped interface: the classes and functions that existing host scripts import.

``cs_python`` puts the modules of the vendor's names on the path; they take everything from here.
"""
