"""TL174 to TL176: thread-private storage and reducers."""
