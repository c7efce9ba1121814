"""Job files run by fio and by `loadstone fio`, and what differs."""
