"""Sends one radar frame to the collector on this machine: an observation of a made-up object.

    python docs/how-to/radar_frame.py 31 7031 $(sda now --ns)

The arguments are the radar's number, the port at which the collector listens for it, and the time of measurement,
Unix time UTC in nanoseconds.
"""

import math
import socket
import struct
import sys

number, port, timestamp_ns = map(int, sys.argv[1:])
native_track_id, range_m, range_rate_m_s = 7, 1_204_300.0, -2_150.0
azimuth_rad, elevation_rad = math.radians(143.2), math.radians(38.5)
range_sigma_m, range_rate_sigma_m_s = 15.0, 0.2

frame = struct.pack("<IIQ", number, native_track_id, timestamp_ns)
frame += struct.pack("<dddd", range_m, range_rate_m_s, azimuth_rad, elevation_rad)
frame += struct.pack("<ff4x", range_sigma_m, range_rate_sigma_m_s)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as radar:
    radar.sendto(frame, ("127.0.0.1", port))
