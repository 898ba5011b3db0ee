"""Hand-overs between the cube core and the vector cores."""
