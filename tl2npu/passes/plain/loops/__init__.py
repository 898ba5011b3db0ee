"""TL119 to TL121: loops in the forms that the front end of the NPU knows."""
