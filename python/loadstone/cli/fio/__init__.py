"""The drop-in: fio's command line in, what fio writes out."""
