"""Files of features and labels, read into tables."""
