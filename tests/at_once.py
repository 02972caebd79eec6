"""Running the same work in several threads at once."""

import threading


def at_once(work, *calls):
    """work(*arguments) for each tuple of arguments, in a thread each; gives up after a minute."""
    workers = [threading.Thread(target=work, args=arguments) for arguments in calls]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert not any(worker.is_alive() for worker in workers)
