"""TL162 to TL165: reductions and scans."""
