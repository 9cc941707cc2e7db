"""Lines that tools/run_tests counts."""
import sys

count = failures = 0


def ok(good, what):
    global count, failures
    count += 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)


def finish():
    print(f"1..{count}")
    sys.exit(1 if failures else 0)
