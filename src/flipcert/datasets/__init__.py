"""Where data come from: files of features and labels."""
