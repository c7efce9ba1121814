"""Series and samples of numbers, whatever they were measured of: tests, intervals, trends, knees."""
